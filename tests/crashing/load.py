"""A client of the fleet under test: submits without rest, believes an answer only when it has it, cancels some."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

import requests

from homing.demo.options import OWN_JOBS
from homing.simulator.job_lines import read_job_lines
from jobs.core.errors import JobsError
from tests.crashing.stage import PROVIDERS

_CANCELED = 0.08
_CALLED_BACK = 0.15
_TIMEOUT_S = 6
_AGAIN_S = 0.2
_SUBMITTERS = 3
_PAUSE_S = (0.1, 0.6)


@dataclass(frozen=True, slots=True)
class Acked:
    """A job the API has taken.

    Attributes:
        key: The Idempotency-Key it was sent with.
        ails: The entry it was sent to, where its work is in vain until that is healed.
    """

    job_id: str
    key: str
    ails: str | None = None


class Stopped(Exception):
    """The load was ended before an answer came."""


@dataclass(slots=True)
class Load:
    """Submits through several threads while it is let.

    Attributes:
        acked: What was taken, by job id; written from all threads.
        conflicts: Keys answered with two different jobs.
        faults: Answers that must not be given, such as a 4xx to a good request.
    """

    url: str
    api_key: str
    prefix: str
    rng: Random
    callback_url: str
    is_full: Callable[[], bool]
    acked: dict[str, Acked] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _go: threading.Event = field(default_factory=threading.Event)
    _end: threading.Event = field(default_factory=threading.Event)
    _count: int = 0
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> ThreadPoolExecutor:
        pool = ThreadPoolExecutor(_SUBMITTERS, "load")
        for _ in range(_SUBMITTERS):
            pool.submit(self._work)
        return pool

    def resume(self) -> None:
        self._go.set()

    def pause(self) -> None:
        """Nothing new; returns when everything that was begun is answered."""
        self._go.clear()
        while self._under_way:
            time.sleep(0.05)

    def stop(self) -> None:
        self._end.set()
        self._go.set()

    def _work(self) -> None:
        lines = read_job_lines(OWN_JOBS)
        while not self._end.is_set():
            self._go.wait()
            if self._must_wait():
                time.sleep(_AGAIN_S)
                continue
            with self._lock:
                if not self._go.is_set() or self._end.is_set():
                    continue
                self._count += 1
                self._under_way += 1
                number, dice = self._count, Random(self.rng.random())
            try:
                self._one(number, dice, dict(dice.choice(lines).input))
            except Exception as error:  # noqa: BLE001 - a thread would die in silence; the round ends on it
                self.faults.append(f"{type(error).__name__}: {error}")
            finally:
                with self._lock:
                    self._under_way -= 1
            time.sleep(dice.uniform(*_PAUSE_S))

    def _must_wait(self) -> bool:
        """Also where the database, which is under fire as well, cannot say how full the fleet is."""
        try:
            return self.is_full()
        except JobsError:
            return True

    def _one(self, number: int, dice: Random, given: dict[str, Any]) -> None:
        key = f"{self.prefix}-{number:05d}"
        given |= {"duration_s": round(dice.uniform(0.2, 1.5), 2), "seed": number}
        body: dict[str, Any] = {"provider": dice.choice(sorted(PROVIDERS)), "input": given}
        if dice.random() < _CALLED_BACK:
            body["callback_url"] = self.callback_url
        job_id = self.order(body, key)
        is_canceled = dice.random() < _CANCELED
        if number % 7 == 0 and self.order(body, key) != job_id:
            self.conflicts.append(key)
        if is_canceled:
            time.sleep(dice.uniform(0, 0.5))
            self.insist(f"/v1/jobs/{job_id}/cancel")

    def order(self, body: dict[str, Any], key: str, *, ails: str | None = None) -> str:
        """Has a job taken, however often it must ask; returns its id.

        Raises:
            Stopped: The load was ended meanwhile.
        """
        job_id = str(self.insist("/v1/jobs", body, {"Idempotency-Key": key})["id"])
        self.acked[job_id] = Acked(job_id, key, ails)
        return job_id

    def insist(
        self, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Asks until there is an answer; a fleet under fire refuses and breaks off, and may never answer 4xx.

        Raises:
            Stopped: The load was ended meanwhile.
        """
        return self.ask(path, body, headers)[1]

    def ask(
        self, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """The same, with the answer's status.

        Raises:
            Stopped: The load was ended meanwhile.
        """
        while not self._end.is_set():
            try:
                answer = requests.post(
                    self.url + path,
                    json=body or {},
                    headers={"Authorization": f"Bearer {self.api_key}", **(headers or {})},
                    timeout=_TIMEOUT_S,
                )
            except requests.RequestException:
                time.sleep(_AGAIN_S)
                continue
            if answer.status_code < 300 or answer.status_code == 409:
                return answer.status_code, answer.json()
            if answer.status_code < 500 and answer.status_code not in (408, 429):
                raise AssertionError(f"{path} answered {answer.status_code}: {answer.text[:500]}")
            time.sleep(_AGAIN_S)
        raise Stopped
