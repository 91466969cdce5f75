"""A run that was killed goes on where it was last audited."""

from __future__ import annotations

from pathlib import Path

from tests.crashing.journal import Journal


def test_deaths_count_once_an_audit_has_followed_them(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("start", database="sqlite")
    journal.write("death", database="sqlite", point="a")
    journal.write("trouble", database="sqlite", name="Redis killed", deaths=1)
    journal.write("audit", database="sqlite", violations=[])
    journal.write("death", database="sqlite", point="b")

    assert journal.deaths("sqlite") == 2
    assert journal.deaths_by_point("sqlite") == {"a": 1}


def test_what_a_killed_run_had_not_audited_is_not_counted_with_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("death", database="sqlite", point="a")
    with journal.path.open("a") as file:
        file.write('{"kind": "dea')  # it was killed while it wrote
    journal.write("start", database="sqlite")
    journal.write("death", database="sqlite", point="b")
    journal.write("audit", database="sqlite", violations=[])

    assert journal.deaths_by_point("sqlite") == {"b": 1}


def test_a_round_with_violations_counts_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("death", database="sqlite", point="a")
    journal.write("audit", database="sqlite", violations=["rows stuck: 1"])

    assert journal.deaths("sqlite") == 0


def test_databases_are_counted_apart(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for database in ("sqlite", "postgresql"):
        journal.write("death", database=database, point="a")
        journal.write("audit", database=database, violations=[])

    assert journal.deaths("sqlite") == journal.deaths("postgresql") == 1
