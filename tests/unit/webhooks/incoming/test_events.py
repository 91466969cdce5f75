"""What makes two deliveries the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.core.signatures.scheme import Verified
from jobs.core.states import JobState
from jobs.providers.port import Report
from webhooks.incoming.events import KnownEvent, NewEvent, Origin, new_event
from webhooks.incoming.reading import Reading
from webhooks.incoming.schema import InboxStatus


def an_event(
    *,
    header_id: str | None = "msg_1",
    body_id: str | None = None,
    run: str | None = "p-1",
    state: JobState = JobState.SUCCEEDED,
    raw: bytes = b"{}",
    **origin: Any,
) -> NewEvent:
    reading = Reading(InboxStatus.ACCEPTED, report=Report(run, state), delivery_id=body_id)
    verified = Verified(0, header_id, None)
    came_from = Origin(
        **{"provider": "renders", "tenant": None, "token": None, "scheme": "x", **origin}, verified=verified
    )
    return new_event("evt_1", came_from, raw=raw, headers={}, reading=reading)


def known(event: NewEvent) -> KnownEvent:
    return KnownEvent(event.id, event.digest, event.fact)


def test_the_key_is_the_provider_and_the_delivery_id() -> None:
    assert an_event().key == an_event(raw=b"other", run="p-2").key
    assert an_event().key != an_event(provider="other").key
    assert an_event().key != an_event(header_id="msg_2").key


def test_the_signed_header_wins_over_the_body() -> None:
    assert an_event(header_id="a", body_id="b").delivery_id == "a"
    assert an_event(header_id=None, body_id="b").delivery_id == "b"


def test_without_an_id_the_key_is_token_or_job_and_the_bytes() -> None:
    """F12: no constant key for all that have none."""
    anonymous = an_event(header_id=None)

    assert anonymous.key == an_event(header_id=None).key
    assert anonymous.key != an_event(header_id=None, raw=b"other").key
    assert anonymous.key != an_event(header_id=None, run="p-2").key
    assert anonymous.key != an_event(header_id=None, token="t").key


@given(delivery_id=st.text(min_size=1, max_size=20))
def test_no_delivery_id_can_look_like_a_key_of_another_kind(delivery_id: str) -> None:
    with_id = an_event(header_id=delivery_id)
    others = (an_event(header_id=None), with_id.as_conflict(known_id="evt_0"))

    assert all(with_id.key != other.key for other in others)


def test_an_unusable_body_does_not_take_an_ids_place() -> None:
    origin = Origin("renders", None, None, "x", Verified(0, "msg_1", None))
    broken = new_event("evt_1", origin, raw=b"{", headers={}, reading=Reading(InboxStatus.QUARANTINED, "odd"))

    assert broken.key != an_event(header_id="msg_1").key


def test_the_same_claim_in_other_bytes_is_a_repeat_and_another_claim_is_not() -> None:
    first = known(an_event())

    assert first.is_repeated_by(an_event())
    assert first.is_repeated_by(an_event(raw=b'{"attempt":2}'))
    assert not first.is_repeated_by(an_event(raw=b"1", state=JobState.FAILED))
    assert not first.is_repeated_by(an_event(raw=b"1", run="p-2"))


def test_a_contradiction_has_a_key_of_its_own_which_its_repeats_share() -> None:
    failed = an_event(state=JobState.FAILED, raw=b"1").as_conflict(known_id="evt_0")
    again = an_event(state=JobState.FAILED, raw=b"2").as_conflict(known_id="evt_0")
    canceled = an_event(state=JobState.CANCELED, raw=b"1").as_conflict(known_id="evt_0")

    assert (failed.status, failed.key) == (InboxStatus.CONFLICT, again.key)
    assert canceled.key != failed.key
    assert "evt_0" in (failed.reason or "")


def test_credentials_are_not_kept() -> None:
    origin = Origin("renders", None, None, "x", Verified(0, None, None))
    headers = {"authorization": "Bearer a", "cookie": "b", "x-signature": "c"}

    kept = new_event("evt_1", origin, raw=b"", headers=headers, reading=Reading(InboxStatus.IGNORED)).headers

    assert kept == {"authorization": "[removed]", "cookie": "[removed]", "x-signature": "c"}
    assert json.dumps(kept)
