"""Who has brought a dead letter forth, and what a person does about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.crashing.load import Acked
from tests.crashing.person import _is_hopeless, ails, is_blamed, is_explained

ACKED = {"a": Acked("a", "key-a", "ail_handler"), "b": Acked("b", "key-b")}


def _letter(**facts: Any) -> dict[str, Any]:
    about = {"id": "l1", "kind": "handler", "ref": "7", "job_id": "a", "reason": "it failed", "evidence": None}
    return {**about, "redriven_at": None, "discarded_at": None, **facts}


@pytest.mark.parametrize(
    ("letter", "entry"),
    [
        (_letter(), "ail_handler"),
        (_letter(job_id="b"), None),
        (_letter(kind="submit"), None),
        (_letter(kind="inbox", job_id=None, evidence={"provider": "ail_inbox"}), "ail_inbox"),
        (_letter(kind="inbox", job_id=None, evidence={"provider": "one"}), None),
    ],
)
def test_a_letter_is_of_what_ails_by_its_job_or_its_provider_and_its_kind(
    letter: dict[str, Any], entry: str | None
) -> None:
    assert ails(letter, ACKED) == entry


def test_a_letter_of_lost_starts_is_the_harness_s_own() -> None:
    letter = _letter(job_id="b", reason="the poll was begun 3 times and never came to its end")

    assert is_blamed(letter)
    assert is_explained(letter, ACKED)
    assert not is_explained(_letter(job_id="b"), ACKED)


def test_what_nobody_can_read_is_discarded_after_one_redrive_in_vain() -> None:
    first = _letter(id="l1", kind="inbox", evidence={"delivery_id": "unreadable-x"})
    second = {**first, "id": "l2"}

    assert not _is_hopeless(first, [first])
    assert _is_hopeless(second, [{**first, "redriven_at": "then"}, second])
    assert not _is_hopeless(_letter(), [_letter(redriven_at="then")])
