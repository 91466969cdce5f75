"""What an answer says of its provider's health."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.core.breaker import Seen
from jobs.core.errors import Transient, UnknownOutcome
from jobs.net.http import NoAnswer, NotSent
from jobs.providers.answers import AWAY, DECLINED
from jobs.providers.port import AlreadyFinished, Gone, KeyReused, Refused, Report
from jobs.services.accounts.outages import reason_of, seen_of


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (Report("p-1"), Seen.ANSWERED),
        ((), Seen.ANSWERED),
        (None, Seen.ANSWERED),
        (Gone("404"), Seen.ANSWERED),
        (AlreadyFinished("409"), Seen.ANSWERED),
        (Refused("422"), Seen.ANSWERED),
        (KeyReused("422"), Seen.ANSWERED),
        (Transient("HTTP 429", retry_after=timedelta(seconds=1)), Seen.ANSWERED),
        (UnknownOutcome("HTTP 503", retry_after=timedelta(seconds=1), slug=AWAY), Seen.ANSWERED),
        (Transient("HTTP 401", slug=DECLINED), Seen.ANSWERED),
        (NotSent("connection refused"), Seen.AWAY),
        (Transient("HTTP 502", slug=AWAY), Seen.AWAY),
        (UnknownOutcome("HTTP 504", slug=AWAY), Seen.AWAY),
        (NoAnswer("timed out"), Seen.FAILED),
        (Transient("not an answer"), Seen.FAILED),
        (UnknownOutcome("HTTP 500"), Seen.FAILED),
        (KeyError("a defect of ours"), Seen.UNCLEAR),
    ],
    ids=str,
)
def test_an_answer_is_an_answer_whatever_it_says(answer: object, seen: Seen) -> None:
    """F25, F26, F27"""
    assert seen_of(answer) is seen


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Transient('answered: HTTP 500, {"error": "cannot draw a heron"}'), "answered: HTTP 500"),
        (UnknownOutcome("answered: HTTP 502, no body", slug=AWAY), "answered: HTTP 502"),
        (Transient("asked about run p-1, answered about p-2"), "no usable answer"),
        (NoAnswer("no answer came: timed out"), "no answer came: timed out"),
        (
            NotSent("nothing was sent: Pool(host='renders'): retries exceeded with url: /jobs/p-1?a=b (refused)"),
            "nothing was sent: Pool(host='renders'): retries exceeded (refused)",
        ),
    ],
    ids=str,
)
def test_the_reason_of_an_outage_tells_nothing_of_whose_call_it_was(answer: object, reason: str) -> None:
    """All tenants of an account read it; a provider's fault may quote the input of one of them."""
    assert reason_of(answer) == reason
