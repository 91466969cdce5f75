"""What exhausted its tries, seen and decided from a shell."""

from __future__ import annotations

from tests.fakes.api import FakeApi
from tests.unit.homing.cli.conftest import Run

LETTER = {"id": "dl_1", "kind": "inbox", "job": "job_1", "reason": "boom", "attempts": 5, "last_failed_at": "…"}


def test_list_shows_open_letters_unless_asked_for_all(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/dead-letters", {"data": [LETTER], "next_cursor": None})

    assert "dl_1" in run("dead-letters", "list", "--kind", "inbox").out
    run("dead-letters", "list", "--closed")

    assert api.asked[0].query == {"kind": "inbox", "open": "true", "limit": "50"}
    assert "open" not in api.asked[1].query


def test_show_prints_the_evidence(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/dead-letters/dl_1", {**LETTER, "evidence": {"error": "KeyError"}})

    assert "KeyError" in run("dead-letters", "show", "dl_1").out


def test_redrive_of_one_says_what_came_of_it(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/dead-letters/dl_1/redrive", {**LETTER, "redriven_at": "…"}, 202)
    api.on("POST /v1/dead-letters/dl_1/redrive", {"status": "noop", "why": "it was redriven before"})

    assert "redriven" in run("dead-letters", "redrive", "dl_1").out
    again = run("dead-letters", "redrive", "dl_1", "--json")

    assert again.document == {"id": "dl_1", "status": "noop", "why": "it was redriven before"}
    assert again.code == 0


def test_all_decides_on_each_open_letter_that_fits(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/dead-letters", {"data": [LETTER], "next_cursor": "c"})
    api.on("GET /v1/dead-letters", {"data": [{**LETTER, "id": "dl_2"}], "next_cursor": None})
    for letter in ("dl_1", "dl_2"):
        api.on(f"POST /v1/dead-letters/{letter}/discard", {**LETTER, "id": letter})

    ended = run("dead-letters", "discard", "--all", "--job", "job_1", "--json")

    assert [each["id"] for each in ended.document["data"]] == ["dl_1", "dl_2"]
    assert api.asked[0].query == {"job": "job_1", "open": "true"}


def test_all_of_nothing_is_no_failure(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/dead-letters", {"data": [], "next_cursor": None})

    ended = run("dead-letters", "redrive", "--all")

    assert (ended.code, ended.out.strip()) == (0, "no dead letters")
