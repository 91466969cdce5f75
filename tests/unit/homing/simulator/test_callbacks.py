"""Webhooks and what befalls them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from homing.simulator import DEMO_SECRET
from homing.simulator.faults import Fault, Faults
from homing.simulator.webhooks import other_secret
from jobs.core.errors import SignatureError
from jobs.core.signatures import parse_secrets, verify
from tests.unit.homing.simulator.stage import QUICK, Received, Receiver, Stage, planned

Build = Callable[..., Stage]


def is_good(received: Received, stage: Stage, *, scheme: str = "standard-webhooks", secret: str = DEMO_SECRET) -> bool:
    try:
        verify(
            scheme,
            headers=received.headers,
            body=received.body,
            secrets=parse_secrets(scheme, [secret]),
            now=stage.clock.now(),
        )
    except SignatureError:
        return False
    return True


def play(build_stage: Build, fault: Fault | None, *, jitter: float = 0.5, **settings: Any) -> Stage:
    """Let one run with this fault live and everything about it arrive."""
    stage = build_stage(fault_plan=planned(Faults(webhook=fault, jitter=jitter)), **settings)
    stage.submit()
    stage.pass_time(30)
    return stage


def ledger_rows(stage: Stage, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in stage.ledger["webhooks"]]


def test_each_change_is_told_once_signed_and_written_down(build_stage: Build, receiver: Receiver) -> None:
    stage = play(build_stage, None)

    assert receiver.statuses == ["processing", "succeeded"]
    assert all(is_good(item, stage) for item in receiver.received)
    assert ledger_rows(stage, "status", "attempt", "fault", "answer") == [
        ("processing", 1, None, 200), ("succeeded", 1, None, 200),
    ]  # fmt: skip
    assert [row["id"] for row in stage.ledger["webhooks"]] == [item.event["id"] for item in receiver.received]


def test_an_event_holds_what_the_client_needs(stage: Stage, receiver: Receiver) -> None:
    run_id = stage.run_to_end({"model": "export", "text": "one two two", "duration_s": 1})["id"]

    event = receiver.received[1].event

    assert set(event) == {"id", "job", "status", "progress", "output", "error", "artifacts", "occurred_at"}
    assert (event["job"], event["progress"], event["error"]) == (run_id, 1.0, None)
    assert event["id"].startswith("evt_")
    assert receiver.received[1].headers["webhook-id"] == event["id"]
    assert event["occurred_at"].startswith("2026-01-01T00:00:01.")
    assert event["output"]["words"] == 3
    assert {file["content_type"] for file in event["artifacts"]} == {"application/json", "text/csv"}


def test_a_failure_and_a_cancel_are_told_too(stage: Stage, receiver: Receiver) -> None:
    stage.run_to_end({**QUICK, "fail": "moderated"})
    stage.client.post(f"/jobs/{stage.submit().json['id']}/cancel")

    assert receiver.statuses == ["processing", "failed", "canceled"]
    assert receiver.received[1].event["error"] == {"code": "generation_failed", "message": "moderated"}


@pytest.mark.parametrize(("scheme", "secret"), [("hmac-body", "sesame-sesame-00"), ("stripe", "sesame-sesame-00")])
def test_the_scheme_can_be_chosen(build_stage: Build, receiver: Receiver, scheme: str, secret: str) -> None:
    stage = play(build_stage, None, webhook_scheme=scheme, webhook_secret=secret)

    assert [is_good(item, stage, scheme=scheme, secret=secret) for item in receiver.received] == [True, True]


def test_the_account_url_hears_of_jobs_without_one(build_stage: Build, receiver: Receiver) -> None:
    stage = build_stage(listen=False, webhook_url=receiver.url + "/account")

    stage.run_to_end()

    assert receiver.statuses == ["processing", "succeeded"]


def test_nobody_is_told_where_there_is_no_url(build_stage: Build) -> None:
    stage = build_stage(listen=False)

    assert stage.run_to_end()["status"] == "succeeded"
    assert stage.ledger["webhooks"] == []


def test_a_refused_delivery_is_retried_five_times_each_signed_anew(stage: Stage, receiver: Receiver) -> None:
    """F48: same id, same bytes, fresh timestamp on every try."""
    receiver.answers[:] = [200, *[503] * 6]
    stage.submit()

    stage.pass_time(60)

    tries = receiver.received[1:]
    assert len(tries) == 6
    assert len({item.body for item in tries}) == 1
    assert len({item.headers["webhook-id"] for item in tries}) == 1
    stamps = [int(item.headers["webhook-timestamp"]) for item in tries]
    assert stamps == sorted(stamps)
    assert stamps[-1] - stamps[0] >= 15
    assert ledger_rows(stage, "attempt", "answer")[1:] == [(n, 503) for n in range(1, 7)]


def test_an_accepted_retry_is_the_last(stage: Stage, receiver: Receiver) -> None:
    receiver.answers[:] = [500, 200]
    stage.submit()

    stage.pass_time(30)

    assert receiver.statuses == ["processing", "processing", "succeeded"]


def test_a_receiver_that_is_not_there_is_tried_again(build_stage: Build) -> None:
    stage = build_stage(listen=False, webhook_url="http://127.0.0.1:1/nobody")
    stage.run_to_end()

    stage.pass_time(30)

    assert set(ledger_rows(stage, "answer")) == {("ConnectionError",)}
    assert stage.ledger["totals"]["sent"] == 12


def test_a_dropped_callback_never_arrives_and_the_run_still_ends(build_stage: Build, receiver: Receiver) -> None:
    stage = play(build_stage, Fault.DROPPED)

    assert receiver.received == []
    assert stage.ledger["runs"][0]["status"] == "succeeded"
    assert ledger_rows(stage, "status", "fault", "answer") == [
        ("processing", "dropped", None), ("succeeded", "dropped", None),
    ]  # fmt: skip
    assert (stage.ledger["totals"]["dropped"], stage.ledger["totals"]["sent"]) == (2, 0)


def test_a_duplicated_event_arrives_twice_with_one_id_and_the_same_bytes(
    build_stage: Build, receiver: Receiver
) -> None:
    stage = play(build_stage, Fault.DUPLICATED)

    terminal = [item for item in receiver.received if item.event["status"] == "succeeded"]
    assert len(receiver.received) == 4
    assert len(terminal) == 2
    assert terminal[0].body == terminal[1].body
    assert terminal[0].headers["webhook-id"] == terminal[1].headers["webhook-id"]
    assert stage.ledger["totals"]["duplicated"] == 2
    assert stage.ledger["totals"]["events"] == 2


def test_some_copies_come_at_once(build_stage: Build, receiver: Receiver) -> None:
    play(build_stage, Fault.DUPLICATED, jitter=0.1)

    assert receiver.statuses == ["processing", "processing", "succeeded", "succeeded"]


def test_a_reordered_run_tells_its_end_before_its_beginning(build_stage: Build, receiver: Receiver) -> None:
    """F17: an older event after a newer one."""
    stage = play(build_stage, Fault.REORDERED)

    assert receiver.statuses == ["succeeded", "processing"]
    assert receiver.received[1].event["occurred_at"] < receiver.received[0].event["occurred_at"]
    assert all(is_good(item, stage) for item in receiver.received)
    assert stage.ledger["totals"]["reordered"] == 1


def test_a_late_event_is_signed_when_it_is_sent(build_stage: Build, receiver: Receiver) -> None:
    stage = build_stage(fault_plan=planned(Faults(webhook=Fault.DELAYED, jitter=0.5)))
    run_id = stage.submit().json["id"]
    stage.pass_time(4.9)
    assert stage.read(run_id).json["status"] == "succeeded"
    assert receiver.statuses == ["processing"]

    stage.pass_time(0.5)

    assert receiver.statuses == ["processing", "succeeded"]
    assert is_good(receiver.received[1], stage)
    assert stage.ledger["totals"]["delayed"] == 1


@pytest.mark.parametrize("fault", [Fault.STALE, Fault.DELAYED_STALE, Fault.BADLY_SIGNED, Fault.FUTURE])
def test_a_terminal_event_that_no_receiver_may_believe_stays_so_on_every_try(
    build_stage: Build, receiver: Receiver, fault: Fault
) -> None:
    receiver.answers[:] = [200, *[403] * 6]

    stage = play(build_stage, fault)

    assert receiver.statuses == ["processing", *["succeeded"] * 6]
    assert [is_good(item, stage) for item in receiver.received] == [True, *[False] * 6]
    assert (stage.ledger["totals"][fault.value], stage.ledger["totals"]["refused"]) == (1, 6)


def test_of_two_signatures_either_secret_finds_its_own(build_stage: Build, receiver: Receiver) -> None:
    stage = play(build_stage, Fault.TWO_SIGNATURES)

    assert [len(item.headers["webhook-signature"].split()) for item in receiver.received] == [2, 2]
    for secret in (DEMO_SECRET, other_secret(DEMO_SECRET)):
        assert all(is_good(item, stage, secret=secret) for item in receiver.received)


def test_a_stale_signature_was_good_ten_minutes_ago(build_stage: Build, receiver: Receiver) -> None:
    stage = play(build_stage, Fault.STALE)

    stage.clock.advance(timedelta(minutes=-10))

    assert is_good(receiver.received[1], stage)


def test_early_webhooks_arrive_before_the_submit_is_answered(build_stage: Build, receiver: Receiver) -> None:
    """F16: the whole life of the run is told before its id is."""
    stage = build_stage(fault_plan=planned(Faults(webhook=Fault.EARLY)))

    answer = stage.submit()

    assert receiver.statuses == ["processing", "succeeded"]
    assert {item.event["job"] for item in receiver.received} == {answer.json["id"]}
    assert (answer.status_code, answer.json["status"]) == (201, "queued")
    assert stage.ledger["totals"]["early"] == 2


def test_a_run_of_a_canceled_reordered_job_tells_both_events(build_stage: Build, receiver: Receiver) -> None:
    stage = build_stage(fault_plan=planned(Faults(webhook=Fault.REORDERED)))
    run_id = stage.submit().json["id"]
    stage.pass_time(0.3)

    stage.client.post(f"/jobs/{run_id}/cancel")

    assert receiver.statuses == ["canceled", "processing"]
