"""What exhausted its tries, seen and decided from a shell."""

from __future__ import annotations

import pytest

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


def a_redrive(**fields: object) -> dict[str, object]:
    counts = {"total": 3, "done": 0, "redriven": 0, "noop": 0, "failed": 0, "reasons": {}}
    return {"id": "rd_1", "state": "running", "rate": "5/s", **counts, **fields}


def test_redrive_of_all_is_asked_for_once_and_watched(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.cli.bulk_redrive._LOOK_EVERY_S", 0.0)
    api.on("POST /v1/dead-letters/redrive", a_redrive(), 202)
    path = "GET /v1/dead-letters/redrives/rd_1"
    api.on(path, a_redrive(done=1, redriven=1))
    api.on(path, a_redrive(state="done", done=3, redriven=2, noop=1, reasons={"it is over": 1}))

    ended = run("dead-letters", "redrive", "--all", "--kind", "inbox", "--reason", "boom", "--rate", "5/s")

    assert ended.code == 0
    assert api.asked[0].body == {"kind": "inbox", "reason": "boom", "rate": "5/s"}
    assert api.asked[0].headers["Idempotency-Key"].startswith("cli-")
    assert ended.out.splitlines() == [
        "rd_1: 0 of 3 at 5/s: 0 redriven, 0 with nothing to do, 0 failed",
        "rd_1: 1 of 3 at 5/s: 1 redriven, 0 with nothing to do, 0 failed",
        "rd_1: 3 of 3 at 5/s: 2 redriven, 1 with nothing to do, 0 failed; done",
        "  1 x it is over",
    ]


def test_redrive_of_all_can_be_left_to_itself(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/dead-letters/redrive", a_redrive(), 202)

    ended = run("dead-letters", "redrive", "--all", "--detach", "--json")

    assert (ended.code, ended.document["state"], len(api.asked)) == (0, "running", 1)


@pytest.mark.parametrize("end", [{"state": "failed"}, {"state": "canceled"}, {"state": "done", "failed": 1}])
def test_a_redrive_that_did_not_do_it_is_a_failure(run: Run, api: FakeApi, end: dict[str, object]) -> None:
    api.on("POST /v1/dead-letters/redrive", a_redrive(done=1, **end), 202)

    assert run("dead-letters", "redrive", "--all").code == 1


def test_all_of_nothing_is_no_failure(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/dead-letters/redrive", a_redrive(state="done", total=0), 202)

    ended = run("dead-letters", "redrive", "--all")

    assert (ended.code, ended.out.strip()) == (0, "no dead letters")
