"""Whole lives of jobs at Runway, HeyGen, AssemblyAI, Mux and ElevenLabs, their answers lost and late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.services.canceling import request_cancel
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from tests.contract.vendor_cases import ASSEMBLYAI, DUBBING, HEYGEN, MUX, RUNWAY, SPEECH, Case
from tests.contract.vendor_server import Asked, Lost, Reply, Says, Vendor, vendor
from tests.factories import PROVIDER
from tests.fakes.stage import Stage, a_stage

Life = Callable[..., tuple[Stage, Vendor, str]]


@pytest.fixture
def begin(database: Database, clock: FakeClock) -> Iterator[Life]:
    """A job of a vendor, and what the vendor will say."""
    with ExitStack() as opened:

        def start(case: Case, *replies: Reply) -> tuple[Stage, Vendor, str]:
            server = opened.enter_context(vendor(case.adapter, clock, *replies))
            stage = a_stage(database, clock)
            stage.runtime.providers[PROVIDER] = ProviderEntry(  # type: ignore[index]  # a dict, in tests
                PROVIDER, server.config, server.config.policy, server.adapter
            )
            return stage, server, stage.new_job(input=dict(case.input))

        yield start


def posts(server: Vendor) -> list[Asked]:
    return [asked for asked in server.asked if asked.line.startswith("POST")]


@pytest.mark.parametrize("case", [RUNWAY, ASSEMBLYAI, SPEECH, DUBBING], ids=lambda case: case.adapter)
def test_where_nobody_can_be_asked_a_lost_answer_goes_to_a_person(begin: Life, case: Case) -> None:
    """F30 e: no blind second POST."""
    stage, server, job_id = begin(case, Lost())

    stage.live(timedelta(minutes=30))

    job = stage.job(job_id)
    assert (job["state"], job["review_reason"]) == ("pending", "ambiguous_submit")
    assert len(server.asked) == 1


def test_heygen_is_sent_the_same_request_under_the_same_key_until_it_names_the_run(begin: Life) -> None:
    """F30 a, c: the first answer is lost, then the first request is still at work."""
    busy = Says({"error": {"code": "request_in_progress"}}, "409 Conflict")
    stage, server, job_id = begin(HEYGEN, Lost(), busy, Says(HEYGEN.accepted), Says(HEYGEN.shows("processing")))

    stage.live(timedelta(minutes=2))

    assert stage.job(job_id)["provider_job_id"] == "v-1"
    assert len({(asked.body, asked.headers["idempotency-key"]) for asked in posts(server)}) == 1
    assert len(posts(server)) == 3


def test_mux_is_searched_for_the_run_and_sent_nothing_more(begin: Life) -> None:
    """F30 d"""
    stage, server, job_id = begin(MUX, Lost(), Says({"data": []}))
    stage.sweep()
    token = posts(server)[0].json["meta"]["external_id"]
    server.will_say(Says({"data": [{"id": "as-1", "status": "preparing", "meta": {"external_id": token}}]}))
    server.will_say(Says(MUX.shows("ready")))

    stage.live(timedelta(minutes=5), until=job_id)

    job = stage.job(job_id)
    assert (job["state"], job["provider_job_id"], len(posts(server))) == ("succeeded", "as-1", 1)


def test_runway_is_read_no_more_often_than_it_asks(begin: Life) -> None:
    stage, server, job_id = begin(RUNWAY, Says(RUNWAY.accepted), Says(RUNWAY.shows("RUNNING")))

    stage.live(timedelta(minutes=1))

    reads = len(server.asked) - 1
    assert 1 <= reads <= 60 / 5 + 1  # the first comes when the policy says, each later one 5 s after another
    assert stage.job(job_id)["state"] == "running"


@pytest.mark.parametrize("case", [RUNWAY, HEYGEN, ASSEMBLYAI, MUX, DUBBING, SPEECH], ids=lambda case: case.adapter)
def test_a_word_nobody_knows_and_a_gateways_page_do_not_keep_a_job_from_home(begin: Life, case: Case) -> None:
    """F24, F25"""
    done = next(word for word, state in case.words.items() if state == "succeeded")
    page = Says(b"<html>502</html>")
    stage, _, job_id = begin(
        case, Says(case.accepted), page, Says(case.shows("defrosting")), Lost(), Says(case.shows(done))
    )

    stage.live(timedelta(minutes=10), until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["review_reason"] is None


def test_a_cancel_ends_the_run_where_the_vendor_can(begin: Life) -> None:
    stage, server, job_id = begin(
        RUNWAY, Says(RUNWAY.accepted), Says(RUNWAY.shows("RUNNING")), Says(b"", "204 No Content")
    )
    stage.submit(job_id)

    request_cancel(stage.runtime, job_id)
    stage.cancel(job_id)

    assert stage.job(job_id)["state"] == "canceled"
    assert server.asked[-1].line == "DELETE /v1/tasks/task-1"
