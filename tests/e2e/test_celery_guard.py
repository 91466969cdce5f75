"""A worker outlives its Redis, with a task in its hands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_HERE = Path(__file__).parent


@contextmanager
def _worker(redis: RedisService, folder: Path, *, guard: bool) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "celery", "-A", "guarded_app", "worker", "-c", "2", "--loglevel", "info"]
    command += ["--without-mingle", "--without-gossip", "-n", "guarded@here"]
    environment = {**os.environ, "BROKER": redis.url, "GUARD": "yes" if guard else "no"}
    environment["PYTHONPATH"] = os.pathsep.join([str(_HERE), str(_HERE.parents[1])])
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _send(redis: RedisService, folder: Path, word: str, hold_s: float) -> None:
    from celery import Celery

    with Celery("sender", broker=redis.url) as sender:
        sender.send_task("tell", args=[str(folder), word, hold_s])


def test_a_worker_survives_redis_dying_under_a_running_task_and_works_on(tmp_path: Path) -> None:
    redis = RedisService.start_in(tmp_path / "redis")
    with _worker(redis, tmp_path, guard=True) as worker:
        _send(redis, tmp_path, "first", 3)
        wait_until((tmp_path / "first.began").exists, within_s=20, what="the task's begin")

        redis.kill()
        wait_until((tmp_path / "first.ended").exists, within_s=10, what="the task's end without Redis")
        redis.start()

        _send(redis, tmp_path, "second", 0)
        wait_until((tmp_path / "second.ended").exists, within_s=30, what="work after Redis is back")
        assert worker.poll() is None, (tmp_path / "worker.log").read_text()[-3000:]
    redis.kill()


def test_without_the_guard_the_same_worker_exits(tmp_path: Path) -> None:
    """What the guard is for. The day this fails, celery has mended it, and the guard can go."""
    redis = RedisService.start_in(tmp_path / "redis")
    with _worker(redis, tmp_path, guard=False) as worker:
        _send(redis, tmp_path, "first", 3)
        wait_until((tmp_path / "first.began").exists, within_s=20, what="the task's begin")

        redis.kill()

        wait_until(lambda: worker.poll() is not None, within_s=30, what="the worker's exit")
        assert worker.returncode != 0
