"""The page says what the journal says."""

from __future__ import annotations

from typing import Any

from tests.crashing.report import write_report

_FIGURES = dict.fromkeys(
    (
        "jobs", "billed", "submits", "webhooks", "events", "transactional_effects", "plain_calls", "plain_events",
        "deliveries", "delivery_calls", "files",
    ),
    7,
)  # fmt: skip


def _audit(database: str, fleet: int, **figures: Any) -> dict[str, Any]:
    facts = {
        "letters": {"of kind handler": 2, "discarded": 1},
        "recoveries": [["web main killed", 2.5]],
        "points": ["a.before x", "a.after x"],
        "took_s": 60,
    }
    return {"kind": "audit", "database": database, "fleet": fleet, "violations": [], **facts, **_FIGURES, **figures}


def _death(database: str, point: str | None, *, with_parent: bool = False) -> dict[str, Any]:
    return {"kind": "death", "database": database, "point": point, "name": "web", "at": 1.0, "with_parent": with_parent}


ENTRIES = [
    _death("sqlite", "a.before x"),
    {"kind": "trouble", "database": "sqlite", "name": "Redis flushed", "began": 1, "ended": 2, "deaths": 0},
    _audit("sqlite", 0, jobs=40),
    _death("sqlite", None),
    _audit("sqlite", 0, jobs=90),
    _death("sqlite", "a.before x", with_parent=True),
    _death("sqlite", "letter.before x"),
    _audit("sqlite", 3, jobs=10),
    {"kind": "trouble", "database": "postgresql", "name": "PostgreSQL killed", "began": 1, "ended": 2, "deaths": 1},
    _audit("postgresql", 0, jobs=5),
]
STARTS = [{"kind": "start", "commit": "abc", "machine": {"machine": "2 x some"}, "at": "2026-01-01 00:00 UTC"}]


def _page() -> str:
    return write_report(ENTRIES, STARTS, command="make crash-proof")


def test_deaths_of_processes_and_of_services_are_counted() -> None:
    page = _page()

    assert "## 5 processes died" in page
    assert "| processes killed | 4 | 1 |" in page


def test_a_fleets_figures_are_taken_once_however_often_it_was_audited() -> None:
    assert "| jobs submitted, and home | 100 | 5 |" in _page()


def test_each_way_to_die_has_its_line() -> None:
    page = _page()

    assert "| web | at a point | 2 | 0 |" in page
    assert "| web | at a point, its main process too | 1 | 0 |" in page
    assert "| web | at any moment | 1 | 0 |" in page


def test_commit_machine_command_and_points_are_told() -> None:
    page = _page()

    assert "`make crash-proof` · commit `abc` · 2026-01-01 00:00 UTC · 4 minutes" in page
    assert "3 found, 2 of them with a death" in page
    assert "| `a.before x` | 2 |" in page
    assert "| web main killed | 4 | 2.5 s | 2.5 s |" in page


def test_what_became_of_dead_letters_is_counted_once_for_each_fleet() -> None:
    page = _page()

    assert "| of kind handler | 4 | 2 |" in page
    assert "| discarded | 2 | 1 |" in page
    assert "| processes killed at the write of a letter | 1 | 0 |" in page
