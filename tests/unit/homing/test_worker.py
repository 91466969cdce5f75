"""What a worker's processes do when they start, end and fail."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from homing import worker
from homing.composition import build_runtime as build_from
from jobs.broker import QUEUES
from jobs.config.loading import load
from jobs.services import runtime as runtimes
from reconciler import ticking
from reconciler.schedule import TICKS


def test_a_bad_configuration_prints_every_fault_and_ends_with_status_two(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environ = {"HOMING_REDIS_URL": "http://x", "HOMING_DATABASE_URL": "mysql://x", "HOMING_REDIS_ULR": "redis://x"}

    with pytest.raises(SystemExit) as ended:
        worker.read_configuration(environ)

    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(name in said for name in environ)


def test_the_application_knows_every_task_that_has_a_queue() -> None:
    worker.app.loader.import_default_modules()

    assert set(QUEUES) <= set(worker.app.tasks)


@pytest.mark.parametrize(("pool", "starts"), [("threads", 1), ("prefork", 0)])
def test_a_pool_of_threads_works_in_the_main_process(monkeypatch: pytest.MonkeyPatch, pool: str, starts: int) -> None:
    done: list[str] = []
    child = SimpleNamespace(start=lambda: done.append("start"), stop=lambda: done.append("stop"))
    monkeypatch.setattr(worker, "_child", child)

    worker.start_in_threads(SimpleNamespace(pool_cls=pool))
    worker.stop_in_threads(SimpleNamespace(pool_cls=pool))

    assert done == ["start", "stop"][: 2 * starts]


def test_a_plugin_lies_beside_the_configuration_file_and_a_missing_one_ends_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A child without its handlers would take messages and fail each."""
    config = tmp_path / "homing.toml"
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "plugin_beside_its_file.py").write_text("")
    config.write_text('[plugins]\nmodules = ["plugin_beside_its_file"]')
    monkeypatch.setattr(worker, "_configuration", load({"HOMING_CONFIG": str(config)}))
    worker.try_plugins()
    config.write_text('[plugins]\nmodules = ["plugin_that_is_nowhere"]')
    monkeypatch.setattr(worker, "_configuration", load({"HOMING_CONFIG": str(config)}))

    with pytest.raises(SystemExit) as ended:
        worker.try_plugins()

    assert ended.value.code == 2
    assert "plugin_that_is_nowhere cannot be imported" in capsys.readouterr().err


def test_a_child_has_parts_sweeps_and_a_watch_of_its_own(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"HOMING_DATABASE_URL": sqlite_url, "HOMING_DATA_DIR": str(tmp_path)}
    monkeypatch.setattr(worker, "build_runtime", lambda _read, **_: build_from(load(environ)))
    child = worker.Child()

    child.start()
    try:
        reconciler = ticking.current()
        assert reconciler.runtime is runtimes.current()
        assert {name for tick in TICKS for name in tick.sweeps} == set(reconciler.sweeps)
        assert "watchdog" in [thread.name for thread in threading.enumerate()]
    finally:
        child.stop()
        ticking.install(None)
        runtimes.install(None)

    assert "watchdog" not in [thread.name for thread in threading.enumerate()]


def test_a_child_that_never_started_can_end() -> None:
    worker.Child().stop()


def test_what_is_thrown_away_is_said() -> None:
    with capture_logs() as logs:
        worker.log_failure("id-1", ValueError("no"), sender=SimpleNamespace(name="jobs.polling.poll"))
        worker.log_unknown("jobs.of.the.next.release", "id-2")
        worker.log_rejected(SimpleNamespace(content_type="application/x-python-serialize"), TypeError("pickle"))

    assert [log["event"] for log in logs] == ["task failed", "unknown task", "message rejected"]
    assert logs[0]["task"] == "jobs.polling.poll"
