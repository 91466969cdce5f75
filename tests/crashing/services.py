"""The services under a fleet, on wires: a Redis, and a PostgreSQL that keeps what it has confirmed."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis

from benchmarks.postgres import start_durable
from homing.up.ports import free_port
from homing.up.redis_server import RedisPlace
from tests.crashing.wire import Wire
from tests.services.postgresql import PostgresService
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_DATABASE = "homing"
_START_S = 30


class WiredRedis:
    """A Redis that can be killed, frozen, emptied, and cut off."""

    def __init__(self, folder: Path) -> None:
        self._service = RedisService(RedisPlace(folder, free_port(), secrets.token_hex(8)))
        self._service.start()
        self.wire = Wire(listen=free_port(), target=self._service.place.port)

    @property
    def url(self) -> str:
        return RedisPlace(self._service.place.folder, self.wire.port, self._service.place.password).url

    @property
    def pid(self) -> int:
        assert self._service.process is not None
        return self._service.process.pid

    def kill(self) -> None:
        self._service.kill()

    def start(self) -> None:
        self._service.start()

    def forget(self) -> None:
        """While it is down: what it has on disk is lost."""
        for path in self._service.place.folder.glob("appendonlydir/*"):
            path.unlink()

    def flush(self) -> None:
        with self._service.client() as client:
            client.flushall()

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def drop_clients(self) -> None:
        """Hangs up on everybody, and stays."""
        with self._service.client() as client:
            try:
                client.execute_command("CLIENT", "KILL", "TYPE", "normal")
            except redis.ConnectionError:
                pass  # ourselves among them

    def close(self) -> None:
        self.thaw()
        self._service.kill()
        self.wire.close()


class WiredPostgres:
    """A PostgreSQL with its own durability, that can be killed and cut off."""

    def __init__(self) -> None:
        self._service: PostgresService = start_durable(settings=("restart_after_crash=on",))
        self._service.create(_DATABASE)
        self.wire = Wire(listen=free_port(), target=self._service.port)

    @property
    def url(self) -> str:
        """Over the wire."""
        return f"postgresql+psycopg://homing@127.0.0.1:{self.wire.port}/{_DATABASE}"

    @property
    def direct_url(self) -> str:
        """Past the wire, for the auditor."""
        return self._service.url(_DATABASE)

    @property
    def pid(self) -> int:
        return self._service.process.pid

    @property
    def folder(self) -> Path:
        return self._service.folder

    def kill(self) -> None:
        """The main process, with SIGKILL; its children notice."""
        self._service.process.kill()
        self._service.process.wait()

    def quit(self) -> None:
        """An immediate shutdown: nobody is asked, nothing is written."""
        self._service.process.send_signal(signal.SIGQUIT)
        self._service.process.wait()

    def kill_backend(self) -> bool:
        """One child with SIGKILL: the server takes all the others down with it, and recovers by itself."""
        children = psutil.Process(self._service.process.pid).children()
        busy = [child for child in children if "homing" in " ".join(child.cmdline())]
        for child in busy[:1]:
            child.kill()
        return bool(busy)

    def start(self) -> None:
        """In the same place; children of the one that was killed may still hold it for a moment."""
        give_up_at = time.monotonic() + _START_S
        while not self._start_once():
            if time.monotonic() > give_up_at:
                raise AssertionError(f"PostgreSQL did not come back; see {self._service.folder / 'postgres.log'}")
            time.sleep(0.1)

    def close(self) -> None:
        self.wire.close()
        self._service.stop()

    def _start_once(self) -> bool:
        with (self._service.folder / "postgres.log").open("ab") as log:
            self._service.process = subprocess.Popen(
                self._service.process.args, stdout=log, stderr=subprocess.STDOUT, **self._owner()
            )
        try:
            wait_until(self._has_decided, within_s=_START_S, what="PostgreSQL answering or ending")
        except AssertionError:
            self.kill()
        return self._service.process.poll() is None

    def _has_decided(self) -> bool:
        if self._service.process.poll() is not None:
            return True
        try:
            psycopg.connect(self.direct_url.replace("+psycopg", ""), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _owner(self) -> dict[str, Any]:
        if os.getuid() != 0:
            return {}
        return {"user": self._service.folder.stat().st_uid, "extra_groups": [], "cwd": "/"}
