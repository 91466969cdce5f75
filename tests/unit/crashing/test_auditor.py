"""The auditor can fail: each way to break a promise is seen, and an honest run is not accused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.crashing.auditor import CHECKS, audit
from tests.crashing.evidence import Evidence
from tests.crashing.load import Acked
from tests.crashing.person import Seen


def _honest() -> Evidence:
    """Two jobs that came home, and one that was canceled before anything was sent; a handler's letter was redriven."""
    return Evidence(
        acked={
            "a": Acked("a", "key-a", "ail_handler"),
            "b": Acked("b", "key-b"),
            "c": Acked("c", "key-c"),
        },
        conflicts=[],
        jobs=[
            {"id": "a", "state": "succeeded", "review_reason": None},
            {"id": "b", "state": "failed", "review_reason": None},
            {"id": "c", "state": "canceled", "review_reason": None},
        ],
        attempts=[
            {"job_id": "a", "number": 1, "provider_job_id": "p-a", "token": "t-a"},
            {"job_id": "b", "number": 1, "provider_job_id": "p-b", "token": "t-b"},
            {"job_id": "c", "number": 1, "provider_job_id": None, "token": "t-c"},
        ],
        steps=[
            {"job_id": "a", "from_state": "pending", "to_state": "running"},
            {"job_id": "a", "from_state": "running", "to_state": "succeeded"},
            {"job_id": "b", "from_state": "pending", "to_state": "failed"},
            {"job_id": "c", "from_state": "pending", "to_state": "canceled"},
        ],
        events=[
            {"id": "e1", "type": "job.running", "job_id": "a", "sequence": 1, "position": 1},
            {"id": "e2", "type": "job.succeeded", "job_id": "a", "sequence": 2, "position": 2},
            {"id": "e3", "type": "job.failed", "job_id": "b", "sequence": 1, "position": 3},
            {"id": "e4", "type": "job.canceled", "job_id": "c", "sequence": 1, "position": 4},
        ],
        effects={"e2": 1, "e3": 1, "e4": 1},
        told={"e2": 1, "e3": 3, "e4": 1},
        delivered={"e2": 1, "e3": 2, "e4": 1},
        deliveries=[
            {"id": f"d-{event}", "event_id": event, "event_type": "job", "state": "succeeded", "is_callback": False}
            for event in ("e2", "e3", "e4")
        ],
        inbox=frozenset({"evt_a"}),
        files=[{"id": "f", "state": "stored", "reason": None}],
        letters=[_letter("l1", redriven_at="then")],
        announced={"l1": 1},
        done={"step": "then"},
        seen=Seen(letters={"l1"}, done={"step": "then"}),
        unfinished={},
        ledger={
            "runs": [
                {"id": "p-a", "reference": "t-a", "status": "succeeded"},
                {"id": "p-b", "reference": "t-b", "status": "failed"},
            ],
            "webhooks": [
                {"id": "evt_a", "job": "p-a", "answer": 200},
                {"id": "evt_refused", "job": "p-a", "answer": 503},
                {"id": "evt_dropped", "job": "p-b", "answer": None},
            ],
        },
    )


def _letter(letter_id: str, **facts: Any) -> dict[str, Any]:
    about = {"kind": "handler", "ref": "7", "job_id": "a", "reason": "it failed", "evidence": {}}
    return {"id": letter_id, **about, "redriven_at": None, "discarded_at": None, **facts}


def _changed(name: str, change: Callable[[Any], Any]) -> Evidence:
    evidence = _honest()
    value = copy.deepcopy(getattr(evidence, name))
    returned = change(value)
    return replace(evidence, **{name: value if returned is None else returned})


def _extra_run(reference: str) -> Callable[[Any], None]:
    def change(ledger: Any) -> None:
        ledger["runs"].append({"id": "p-x", "reference": reference, "status": "succeeded"})

    return change


CRIMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "confirmed jobs lost": ("acked", lambda acked: acked.update(z=Acked("z", "key-z"))),
    "jobs nobody asked for": ("acked", lambda acked: {name: acked[name] for name in "ab"}),
    "keys answered with two jobs": ("conflicts", lambda conflicts: conflicts.append("key-a")),
    "jobs not home": ("jobs", lambda jobs: jobs[0].update(state="running")),
    "jobs that need a person": ("jobs", lambda jobs: jobs[0].update(review_reason="ambiguous_submit")),
    "attempts billed twice": ("ledger", _extra_run("t-a")),
    "runs billed and not ordered": ("ledger", _extra_run("t-of-nobody")),
    "runs ordered and not billed": ("ledger", lambda ledger: {**ledger, "runs": ledger["runs"][:1]}),
    "second attempts": ("attempts", lambda attempts: attempts[0].update(number=2)),
    "ends that are not the provider's": ("ledger", lambda ledger: ledger["runs"][0].update(status="failed")),
    "jobs that ended twice": ("events", lambda events: events[0].update(type="job.failed")),
    "ends without an event": ("events", lambda events: events[2].update(type="job.overdue")),
    "illegal history": ("steps", lambda steps: steps[1].update(from_state="pending")),
    "gaps in the feed": ("events", lambda events: events[3].update(position=5)),
    "gaps in a job's events": ("events", lambda events: events[1].update(sequence=3)),
    "transactional effects not exactly once": ("effects", lambda effects: effects.update(e2=2)),
    "plain effects lost": ("told", lambda told: {"e2": 1, "e3": 3} if told else told),
    "deliveries lost": ("deliveries", lambda deliveries: deliveries[0].update(state="pending")),
    "deliveries of nothing": ("delivered", lambda delivered: delivered.update(e9=1)),
    "acknowledged webhooks lost": ("inbox", lambda _: frozenset()),
    "files lost": ("files", lambda files: files[0].update(state="rejected")),
    "dead letters": ("letters", lambda letters: letters[0].update(redriven_at=None)),
    "dead letters lost": ("letters", lambda _: [_letter("l2", redriven_at="then")]),
    "dead letters not told of once": ("announced", lambda announced: announced.update(l1=2)),
    "dead letters at odds with their work": ("seen", lambda seen: seen.faults.append("handler 7 was given up")),
    "done work done again": ("done", lambda done: done.update(step="later")),
    "rows stuck": ("unfinished", lambda unfinished: unfinished.update({"jobs.next_poll_at": 1})),
}


def test_an_honest_run_is_not_accused() -> None:
    assert audit(_honest()) == []


def test_there_is_a_crime_for_each_check() -> None:
    assert set(CRIMES) == set(CHECKS)


@pytest.mark.parametrize("check", CRIMES)
def test_each_broken_promise_is_seen(check: str) -> None:
    name, crime = CRIMES[check]

    found = {violation.check for violation in audit(_changed(name, crime))}

    assert check in found


@pytest.mark.parametrize("missing", ["e2", "e3", "e4"])
def test_a_transactional_effect_that_never_came_is_seen(missing: str) -> None:
    found = audit(_changed("effects", lambda effects: effects.pop(missing) and None))

    assert [violation.check for violation in found] == ["transactional effects not exactly once"]


def test_an_event_that_has_no_delivery_is_seen() -> None:
    found = audit(_changed("deliveries", lambda deliveries: deliveries.pop() and None))

    assert "deliveries lost" in {violation.check for violation in found}


@pytest.mark.parametrize(
    ("letter", "accused"),
    [
        (_letter("l1", job_id="b"), True),
        (_letter("l1", job_id="b", reason="3 starts never came to an end", redriven_at="then"), False),
        (_letter("l1", kind="submit", redriven_at="then"), True),
        (_letter("l1", discarded_at="then"), False),
    ],
)
def test_a_letter_needs_what_ails_or_a_death_for_its_reason(letter: dict[str, Any], accused: bool) -> None:
    found = audit(replace(_honest(), letters=[letter]))

    assert [violation.check for violation in found] == (["dead letters"] if accused else [])


def test_a_letter_nobody_was_told_of_is_seen() -> None:
    found = audit(_changed("announced", lambda _: {}))

    assert [violation.check for violation in found] == ["dead letters not told of once"]
