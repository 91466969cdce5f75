"""The faults. Each returns the seconds from the fault, or from its end where it lasts, until its victims are done."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import redis
import requests
import sqlalchemy as sa

from benchmarks.postgres import start_again
from benchmarks.rescue.scene import CALLS, GIVE_UP_S, MARK, QUIET, SENDER, Scene
from benchmarks.rescue.turnstile import HOOKS, Matches
from benchmarks.signing import sign
from homing.up.redis_server import find_place
from webhooks.incoming.schema import inbox_events

#: How long what is frozen stays so.
FROZEN_S = 10.0
_JOBS = 5
_BURST, _SENDERS = 400, 8


def is_submit(method: str, path: str, _body: bytes) -> bool:
    """A job on its way to the provider."""
    return method == "POST" and path == "/jobs"


def is_poll(method: str, path: str, _body: bytes) -> bool:
    """A status read."""
    return method == "GET" and path.startswith("/jobs/")


def is_download(method: str, path: str, _body: bytes) -> bool:
    """A result file."""
    return method == "GET" and not path.startswith("/jobs")


def is_delivery(_method: str, path: str, body: bytes) -> bool:
    """The event of the marked job on its way to a customer."""
    return path.startswith(HOOKS) and MARK.encode() in body


def caught(
    scene: Scene, matches: Matches, *, provider: str = CALLS, model: str = "predict", main: bool = False
) -> float:
    """Kills the child (or main process) of worker-io whose request the other side holds."""
    scene.settle()
    with scene.gate.holding(matches) as held:
        job = scene.submit_marked(provider, model=model)
        assert held.arrived.wait(60), "no such request came"
        pid = scene.fleet.running.pids["worker-io"][0] if main else scene.pid_behind(held.port, "worker-io")
        begin = _kill(pid)
        scene.wait_home(job)
        if matches is is_delivery:
            scene.wait(lambda: any(job.encode() in body for body in scene.gate.delivered), "the delivery")
        return time.monotonic() - begin


def caught_handling(scene: Scene) -> float:
    """Kills the child that runs a Python handler."""
    scene.settle()
    holder, done = scene.hold_file.with_name("holder"), scene.hold_file.with_name("handled")
    holder.unlink(missing_ok=True)
    scene.hold_file.write_text("hold")
    job = scene.submit_marked(CALLS)
    scene.wait(lambda: holder.exists() and holder.read_text().isdigit(), "the handler at work")
    begin = _kill(int(holder.read_text()))
    scene.hold_file.unlink()
    scene.wait(lambda: done.exists() and job in done.read_text(), "the handler's end")
    return time.monotonic() - begin


def caught_applying(scene: Scene) -> float:
    """Kills the children of worker-events while they hold stored webhooks."""
    for _ in range(20):
        scene.settle()
        with _burst(scene):
            scene.wait(lambda: _claimed(scene) > 0, "rows in somebody's hands")
            begin = max(_kill(pid) for pid in scene.fleet.running.pids["worker-events"][1:])
        time.sleep(0.5)
        if _claimed(scene):
            scene.wait(lambda: _unsettled(scene) == 0, "every webhook applied")
            return time.monotonic() - begin
    raise AssertionError("they were never caught at it")


def killed(scene: Scene, name: str, number: int = 0) -> float:
    """Kills a process by its place in ``run.json``, and brings jobs home that are sent at the same moment."""
    scene.settle()
    begin = _kill(scene.fleet.running.pids[name][number])
    scene.wait_home(scene.submit(CALLS), scene.submit(QUIET))
    return time.monotonic() - begin


def under_way(scene: Scene, harm: Callable[[Scene], float]) -> float:
    """Does harm while jobs are under way; returns the time until all are home."""
    scene.settle()
    jobs = [scene.submit(provider) for _ in range(_JOBS) for provider in (CALLS, QUIET)]
    begin = harm(scene)
    scene.wait_home(*jobs, scene.submit(CALLS))
    return time.monotonic() - begin


def kill_redis(scene: Scene) -> float:
    """Comes back with its append-only file."""
    return _kill(scene.fleet.running.pids["redis"][0])


def empty_redis(scene: Scene) -> float:
    """Comes back with nothing."""
    begin = _kill(scene.fleet.running.pids["redis"][0])
    shutil.rmtree(scene.hold_file.parent / "redis" / "appendonlydir", ignore_errors=True)
    return begin


def flush_redis(scene: Scene) -> float:
    """Loses everything, and stays."""
    place = find_place(scene.hold_file.parent / "redis")
    assert place is not None
    with redis.Redis.from_url(place.url) as client:
        client.flushall()
    return time.monotonic()


def freeze_redis(scene: Scene) -> float:
    """Stopped, not dead."""
    return _freeze([scene.fleet.running.pids["redis"][0]])


def hold_the_writer(scene: Scene) -> float:
    """A process takes SQLite's writer lock, keeps it for seconds, and is killed with it."""
    program = (
        "import sys, time; from jobs.storage.database import Database\n"
        "with Database.connect(sys.argv[1]).write(): print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(scene.database.engine.url)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        time.sleep(FROZEN_S)
        return _kill(holder.pid)


def restart_postgres(scene: Scene) -> float:
    """An immediate shutdown, started again at once."""
    service = scene.postgres
    assert service is not None
    begin = time.monotonic()
    service.process.send_signal(signal.SIGQUIT)
    service.process.wait()
    start_again(service)
    return begin


def freeze_postgres(scene: Scene) -> float:
    """The server and every session stopped, not dead."""
    assert scene.postgres is not None
    postmaster = psutil.Process(scene.postgres.process.pid)
    return _freeze([postmaster.pid, *(child.pid for child in postmaster.children(recursive=True))])


def _freeze(pids: list[int]) -> float:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(FROZEN_S)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    return time.monotonic()


def _kill(pid: int) -> float:
    os.kill(pid, signal.SIGKILL)
    return time.monotonic()


@contextmanager
def _burst(scene: Scene) -> Iterator[None]:
    """Webhooks of a sender of events, from several connections, while the block lasts and until all are sent."""
    url, stamp = f"{scene.fleet.running.url}/webhooks/{SENDER}", str(time.time_ns())

    def send(part: int) -> None:
        with requests.Session() as session:
            for number in range(part, _BURST, _SENDERS):
                name = f"{stamp}-{number}"
                signed = sign(name, f"msg-{name}", stamp=str(int(time.time())))
                session.post(url, data=signed.body, headers=signed.headers, timeout=GIVE_UP_S)

    threads = [threading.Thread(target=send, args=(part,)) for part in range(_SENDERS)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def _claimed(scene: Scene) -> int:
    return _count(scene, inbox_events.c.next_try_at.is_not(None), inbox_events.c.lease_token.is_not(None))


def _unsettled(scene: Scene) -> int:
    return _count(scene, inbox_events.c.next_try_at.is_not(None))


def _count(scene: Scene, *conditions: sa.ColumnElement[bool]) -> int:
    with scene.database.read() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(inbox_events).where(*conditions)).scalar_one())
