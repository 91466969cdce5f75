"""The suite's Redis."""

from __future__ import annotations

import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from homing.up.ports import free_port
from homing.up.redis_server import RedisPlace, find_redis, redis_command
from tests.services.waiting import wait_until

_START_S = 10


@dataclass
class RedisService:
    """One server; may be killed and started again in the same place."""

    place: RedisPlace
    process: subprocess.Popen[bytes] | None = field(default=None)

    @classmethod
    def start_in(cls, folder: Path) -> RedisService:
        service = cls(RedisPlace(folder=folder, port=free_port(), password=secrets.token_hex(8)))
        service.start()
        return service

    @property
    def url(self) -> str:
        return self.place.url

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=2, retry=Retry(NoBackoff(), 0))

    def start(self) -> None:
        command = redis_command(find_redis(), self.place)
        with (self.place.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        wait_until(self._answers, within_s=_START_S, what=f"Redis ({command[0]}) answering")

    def kill(self) -> None:
        """As the machine would: no goodbye."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def wipe(self) -> None:
        with self.client() as client:
            client.flushall()

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            log = (self.place.folder / "redis.log").read_text(errors="replace")
            raise AssertionError(f"Redis ended with status {self.process.returncode}:\n{log[-2000:]}")
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False
