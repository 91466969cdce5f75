"""Sends webhooks: signs each try anew, retries with growing waits, writes every try into the ledger."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import TypeAlias

import requests

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault
from homing.simulator.ledger import Ledger
from homing.simulator.scheduler import Scheduler
from jobs.clock import Clock
from jobs.core.signatures import sign

#: Waits before the retries, five of them, in seconds: long enough to outlive a restart of the receiver,
#: short enough that a demo sees the last one.
RETRY_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)

#: Seconds to connect, seconds to answer.
TIMEOUTS_S = (2.0, 10.0)

#: How old a stale signature is: twice what receivers commonly tolerate.
STALE_BY = timedelta(minutes=10)

_NOW = timedelta(0)

#: Hands work to another thread.
Spawn: TypeAlias = Callable[[Callable[[], object]], object]


class Signing(Enum):
    """How a delivery is signed."""

    GOOD = auto()
    WRONG = auto()
    STALE = auto()
    FUTURE = auto()
    TWICE = auto()
    """By a secret that was rotated out and by the live one."""


@dataclass(frozen=True, slots=True)
class Seal:
    """What a sender signs with.

    Attributes:
        scheme: of `jobs.core.signatures`; none: it signs nothing.
        secret: as the scheme reads it.
        wrong: another one of the same form, that nobody was given.
    """

    scheme: str | None
    secret: str = field(default="", repr=False)
    wrong: str = field(default="", repr=False)


UNSIGNED = Seal(None)


@dataclass(frozen=True, slots=True)
class Habits:
    """How a sender tries again.

    Attributes:
        waits_s: before each retry, in seconds.
        stops_on_4xx: whether a refusal ends it.
        only_200: whether any other 2xx is a failure.
    """

    waits_s: tuple[float, ...] = RETRY_WAITS_S
    stops_on_4xx: bool = False
    only_200: bool = False


_OUR_HABITS = Habits()


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event on its way to one URL.

    Attributes:
        event_id: also the delivery id of the signature; a copy has the same.
        fault: what is wrong with it, for the ledger.
        seal: what it is signed with; none: as the simulator was told.
        habits: how it is tried again.
        then: sent once the first try of this one is over.
    """

    event_id: str
    run_id: str
    status: str
    url: str
    body: bytes
    fault: Fault | None = None
    signing: Signing = Signing.GOOD
    seal: Seal | None = None
    habits: Habits = _OUR_HABITS
    then: Delivery | None = None


_SIGNED_FOR = {Signing.STALE: -STALE_BY, Signing.FUTURE: STALE_BY}


class Sender:
    """Delivers webhooks on threads of its own."""

    def __init__(
        self, config: SimulatorConfig, *, clock: Clock, scheduler: Scheduler, ledger: Ledger, spawn: Spawn
    ) -> None:
        """`spawn` runs one try; retries wait in the scheduler and occupy no thread."""
        self._config = config
        self._clock = clock
        self._scheduler = scheduler
        self._ledger = ledger
        self._spawn = spawn
        self._local = threading.local()
        self._sessions: list[requests.Session] = []

    def send(self, delivery: Delivery, *, delay_s: float = 0.0) -> None:
        """Send it, and retry as needed, without making the caller wait."""
        if delay_s > 0:
            self._scheduler.after(delay_s, lambda: self.send(delivery))
        else:
            self._spawn(lambda: self.send_now(delivery))

    def send_now(self, delivery: Delivery, *, attempt: int = 1) -> None:
        """Make one try in this thread; a failed one has its retry scheduled."""
        answer = self._post(delivery)
        self._ledger.record_webhook(
            event_id=delivery.event_id,
            run_id=delivery.run_id,
            status=delivery.status,
            attempt=attempt,
            fault=delivery.fault,
            answer=answer,
        )
        if attempt == 1 and delivery.then is not None:
            self.send(delivery.then)
        if not _is_over(answer, delivery.habits) and attempt <= len(delivery.habits.waits_s):
            wait_s = delivery.habits.waits_s[attempt - 1] * self._config.time_scale
            self._scheduler.after(wait_s, lambda: self._spawn(lambda: self._retry(delivery, attempt)))

    def close(self) -> None:
        """Close its connections; nothing may be under way."""
        for session in self._sessions:
            session.close()

    def _retry(self, delivery: Delivery, attempt: int) -> None:
        self.send_now(delivery, attempt=attempt + 1)

    def _post(self, delivery: Delivery) -> int | str:
        headers = {"Content-Type": "application/json", "User-Agent": "homing-simulator"} | self._sign(delivery)
        try:
            with self._session().post(
                delivery.url,
                data=delivery.body,
                headers=headers,
                timeout=TIMEOUTS_S,
                allow_redirects=False,
                stream=True,
            ) as answer:
                _ = answer.raw.read(4096)  # a connection with its short answer read can be used again
                return answer.status_code
        except (requests.RequestException, OSError, ValueError) as error:
            return type(error).__name__

    def _sign(self, delivery: Delivery) -> dict[str, str]:
        seal, at = delivery.seal or self._own_seal(), self._clock.now() + _SIGNED_FOR.get(delivery.signing, _NOW)
        scheme = seal.scheme
        if scheme is None:
            return {}

        def by(secret: str) -> dict[str, str]:
            return sign(
                scheme, secret=secret, body=delivery.body, delivery_id=delivery.event_id, at=at, url=delivery.url
            )

        if delivery.signing is Signing.TWICE:
            return _both(by(seal.wrong), by(seal.secret))
        return by(seal.wrong if delivery.signing is Signing.WRONG else seal.secret)

    def _own_seal(self) -> Seal:
        secret = self._config.webhook_secret
        return Seal(self._config.webhook_scheme, secret, other_secret(secret))

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.trust_env = False  # a proxy of the environment has no business between two local servers
            self._local.session = session
            self._sessions.append(session)
        return session


def _is_over(answer: int | str, habits: Habits) -> bool:
    if not isinstance(answer, int):
        return False
    taken = answer == 200 if habits.only_200 else 200 <= answer < 300
    return taken or (habits.stops_on_4xx and 400 <= answer < 500)


def _both(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    """The headers of two signatures in one, as Standard Webhooks writes them: with a blank between."""
    return {name: value if old[name] == value else f"{old[name]} {value}" for name, value in new.items()}


def other_secret(secret: str) -> str:
    """A secret of the same form that nobody was given."""
    if secret.startswith("whsec_"):
        return "whsec_" + base64.b64encode(b"nobody-was-given-this-secret-00").decode()
    return f"not-{secret}"
