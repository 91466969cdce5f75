"""Whole lives of jobs at described providers, their answers lost and late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.services.canceling import request_cancel
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from tests.contract.described_cases import BATCH, BFL, HF_JOBS, HIGGSFIELD, LUMA, PRESETS, TOGETHER
from tests.contract.vendor_cases import Case
from tests.contract.vendor_server import Asked, Lost, Reply, Says, Vendor, vendor
from tests.factories import PROVIDER
from tests.fakes.stage import Stage, a_stage

Life = Callable[..., tuple[Stage, Vendor, str]]


@pytest.fixture
def begin(database: Database, clock: FakeClock) -> Iterator[Life]:
    """A job of a vendor, and what the vendor will say."""
    with ExitStack() as opened:

        def start(case: Case, *replies: Reply) -> tuple[Stage, Vendor, str]:
            server = opened.enter_context(vendor(case.adapter, clock, *replies, **case.entry))
            stage = a_stage(database, clock)
            stage.runtime.providers[PROVIDER] = ProviderEntry(  # type: ignore[index]  # a dict, in tests
                PROVIDER, server.config, server.config.policy, server.adapter
            )
            return stage, server, stage.new_job(input=dict(case.input))

        yield start


def posts(server: Vendor) -> list[Asked]:
    return [asked for asked in server.asked if asked.line.startswith("POST")]


@pytest.mark.parametrize("case", PRESETS, ids=lambda case: f"{case.adapter}-{case.run}")
def test_a_word_nobody_knows_and_a_gateways_page_do_not_keep_a_job_from_home(begin: Life, case: Case) -> None:
    """F24, F25"""
    done = next(word for word, state in case.words.items() if state == "succeeded")
    page = Says(b"<html>502</html>")
    stage, server, job_id = begin(
        case, Says(case.accepted), page, Says(case.shows("defrosting")), Lost(), Says(case.shows(done))
    )

    stage.live(timedelta(minutes=20), until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert {asked.line for asked in server.asked[1:]} == {f"GET {case.read}"}
    assert len(posts(server)) == 1


@pytest.mark.parametrize("case", [BFL, TOGETHER, BATCH], ids=lambda case: f"{case.adapter}-{case.run}")
def test_where_nobody_can_be_asked_a_lost_answer_goes_to_a_person(begin: Life, case: Case) -> None:
    """F30 e"""
    stage, server, job_id = begin(case, Lost())

    stage.live(timedelta(minutes=30))

    assert (stage.job(job_id)["state"], stage.job(job_id)["review_reason"]) == ("pending", "ambiguous_submit")
    assert len(server.asked) == 1


def test_higgsfield_is_sent_the_same_bytes_under_the_same_key(begin: Life) -> None:
    """F30 a, c"""
    stage, server, job_id = begin(
        HIGGSFIELD, Lost(), Says({}, "500 Oops"), Says(HIGGSFIELD.accepted), Says(HIGGSFIELD.shows("in_progress"))
    )

    stage.live(timedelta(minutes=5))

    assert stage.job(job_id)["provider_job_id"] == "r-1"
    assert len(posts(server)) == 3
    assert len({(asked.line, asked.body, asked.headers["idempotency-key"]) for asked in posts(server)}) == 1


def test_luma_is_searched_by_the_token_and_sent_nothing_more(begin: Life) -> None:
    """F30 d"""
    stage, server, job_id = begin(LUMA, Lost(), Says({"generations": []}))
    stage.sweep()
    url = posts(server)[0].json["callback_url"]
    server.will_say(Says({"generations": [{"id": "g-1", "request": {"callback_url": url}}]}))
    server.will_say(Says(LUMA.shows("completed")))

    stage.live(timedelta(minutes=10), until=job_id)

    job = stage.job(job_id)
    assert (job["state"], job["provider_job_id"], len(posts(server))) == ("succeeded", "g-1", 1)


def test_hf_jobs_is_searched_by_its_label(begin: Life) -> None:
    """F30 d"""
    stage, server, job_id = begin(HF_JOBS, Lost(), Says([]))
    stage.sweep()
    labels = posts(server)[0].json["labels"]
    server.will_say(Says([{"id": "h-0", "labels": {}}, {"id": "h-1", "labels": labels}]))
    server.will_say(Says(HF_JOBS.shows("COMPLETED")))

    stage.live(timedelta(minutes=10), until=job_id)

    job = stage.job(job_id)
    assert (job["state"], job["provider_job_id"], len(posts(server))) == ("succeeded", "h-1", 1)


def test_an_input_that_cannot_be_sent_fails_the_job_and_sends_nothing(begin: Life) -> None:
    stage, server, _job_id = begin(BFL, Says(BFL.accepted))
    job_id = stage.new_job(input={"prompt": "no model"})

    stage.submit(job_id)

    job = stage.job(job_id)
    assert job["state"] == "failed"
    assert job["error"]["code"] == "invalid_input"
    assert "input.model is missing" in job["error"]["message"]
    assert server.asked == []


def test_a_batch_is_canceled_where_it_is_read(begin: Life) -> None:
    stage, server, job_id = begin(BATCH, Says(BATCH.accepted), Says(BATCH.shows("CANCELLED")))
    stage.submit(job_id)

    request_cancel(stage.runtime, job_id)
    stage.cancel(job_id)

    assert stage.job(job_id)["state"] == "canceled"
    assert server.asked[-1].line == "POST /v1/batches/bt-1/cancel"
