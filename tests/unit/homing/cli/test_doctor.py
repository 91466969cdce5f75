"""The doctor where everything is away: it says so, and makes nothing by looking."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.homing.cli.conftest import Run


@pytest.fixture
def _no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_REDIS_URL", "redis://127.0.0.1:1/0")


@pytest.mark.usefixtures("_no_redis")
def test_with_nothing_there_it_says_what_is_missing_and_exits_1(run: Run, tmp_path: Path) -> None:
    ended = run("doctor")

    assert ended.code == 1
    assert "there is none at" in ended.out
    assert "Redis does not answer" in ended.out
    assert not (tmp_path / "data" / "homing.db").exists()


@pytest.mark.usefixtures("_no_redis")
def test_with_a_database_alone_it_reads_that(run: Run) -> None:
    run("migrate")

    document = run("doctor", "--json").document

    assert document["well"] is False
    assert document["database"]["jobs"] == {}
    assert document["redis"] is None
    whats = " ".join(finding["what"] for finding in document["findings"])
    assert "Redis does not answer" in whats
    assert "nothing has ever swept" in whats


@pytest.mark.usefixtures("_no_redis")
def test_a_database_that_does_not_answer_is_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_DATABASE_URL", "postgresql+psycopg://u:opensesame@127.0.0.1:1/d")

    ended = run("doctor")

    assert ended.code == 1
    assert "database cannot be read" in ended.out
    assert "opensesame" not in ended.out
