"""What is written about an error holds nothing of the data it failed on."""

from __future__ import annotations

from sqlalchemy.exc import DataError

from jobs.core.errors import Transient
from webhooks.incoming.wording import describe, traceback_of

REFUSED = DataError("INSERT INTO inbox_events", {"raw": b"a secret body"}, ValueError("bad value: a secret body"))


def test_a_refused_statement_is_named_and_not_quoted() -> None:
    assert describe(REFUSED) == "ValueError"
    assert traceback_of(REFUSED) == {}


def test_an_error_of_ours_says_what_it_says() -> None:
    assert describe(Transient("not now")) == "Transient: not now"


def test_a_defect_has_its_traceback() -> None:
    defect = KeyError("x")

    assert (describe(defect), traceback_of(defect)) == ("KeyError", {"exc_info": defect})
