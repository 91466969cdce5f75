"""F55 in the web server: a worker that is stopped is dealt its share of the connections as before."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from tests.e2e.web_server import WebServer
from tests.services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a server's workers are not forked"),
]


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[WebServer]:
    started = WebServer(sqlite_url, tmp_path, options=("--workers", "2", "--respawn-failed-workers"))
    started.start()
    yield started
    started.stop()


def test_a_web_worker_that_stays_stopped_gives_way_to_another(server: WebServer) -> None:
    wait_until(lambda: _listeners(server) == 2, within_s=20, what="both workers")
    stopped = server.workers[-1]

    os.kill(stopped, signal.SIGSTOP)
    assert not _are_all_answered(server)  # the fault is real: nobody takes over what it is dealt
    wait_until(lambda: stopped not in server.workers, within_s=30, what="the end of the stopped one", every_s=0.2)
    wait_until(lambda: _listeners(server) == 2, within_s=30, what="another worker")
    assert _are_all_answered(server)

    assert "process stayed stopped and is killed" in (server.folder / "web.log").read_text()


def _listeners(server: WebServer) -> int:
    """How many processes take connections."""
    open_ones = (one for pid in server.workers for one in psutil.Process(pid).net_connections("tcp"))
    return sum(one.status == psutil.CONN_LISTEN for one in open_ones)


def _are_all_answered(server: WebServer) -> bool:
    """With two workers, none of 40 connections would come to one of them once in a million million times."""
    return all(_is_answered(server) for _ in range(40))


def _is_answered(server: WebServer) -> bool:
    try:
        return requests.get(f"{server.url}/healthz", timeout=1).ok
    except requests.RequestException:
        return False
