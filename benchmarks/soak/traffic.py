"""The load: several kinds of clients, each a thread or a few, at a steady rate."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import requests

from benchmarks.signing import Signed, sign
from benchmarks.soak.options import SoakOptions
from benchmarks.soak.place import PROVIDER, SENDER, Place
from homing.client.address import Address
from homing.client.api import ApiClient, job_path
from homing.demo.options import OWN_JOBS
from homing.simulator.job_lines import read_job_lines
from jobs.core.errors import JobsError

#: Of the jobs: canceled while they run; sent twice with one key; told to a callback URL of their own.
CANCELED_SHARE, TWICE_SHARE, CALLBACK_SHARE = 0.05, 0.1, 0.1
#: Of the sender's events: delivered twice.
REPEATED_SHARE = 0.2
_CANCEL_AFTER_S = (0.2, 4.0)
_FOLLOWED_S = (2.0, 20.0)
_LOOK_EVERY_S = 2.0


@dataclass(slots=True)
class Sent:
    """What went out, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    jobs: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Traffic:
    """All clients of one soak."""

    def __init__(self, options: SoakOptions, place: Place) -> None:
        self.sent = Sent()
        self._options = options
        self._place = place
        self._stopping = threading.Event()
        self._recent: deque[str] = deque(maxlen=50)
        self._cancels: deque[tuple[float, str]] = deque()
        self._threads: list[threading.Thread] = []
        self._lines = read_job_lines(OWN_JOBS)

    def start(self) -> None:
        """Begins; a first request makes the endpoint that is told everything."""
        body = {"url": self._place.receiver.url, "events": ["job.*", "webhook.received"], "rate": "100/s"}
        self._client().post("/v1/endpoints", body)
        self._begin("submitter", self._submit)
        self._begin("canceler", self._cancel)
        self._begin("sender", self._send_events)
        self._begin("looker", self._look)
        self._begin("waiter", self._wait_long)
        for number in range(self._options.followers):
            self._begin(f"follower-{number}", self._follow)

    def stop(self) -> None:
        """Ends, and waits for what is under way."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def _begin(self, name: str, work: Callable[[random.Random], None]) -> None:
        rng = random.Random(f"{self._options.seed}-{name}")
        thread = threading.Thread(target=work, args=(rng,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _client(self) -> ApiClient:
        running = self._place.fleet.running
        return ApiClient(Address(running.url, running.api_key))

    def _paced(self, rate: float) -> Iterator[int]:
        """Numbers from 0, at their times; what is late is not made up for in a burst."""
        number, due = 0, time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            yield number
            number, due = number + 1, max(due + 1 / rate, time.monotonic() - 1.0)

    def _try(self, kind: str, ask: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """A fleet whose process was just killed refuses a moment; a client notes it and goes on."""
        try:
            answer = ask(*arguments, **options)
        except (JobsError, requests.RequestException) as error:
            self.sent.errors[f"{kind}: {type(error).__name__}"] += 1
            return None
        self.sent.counts[kind] += 1
        return answer

    def _submit(self, rng: random.Random) -> None:
        client = self._client()
        for number in self._paced(self._options.jobs_per_s):
            line = self._lines[number % len(self._lines)]
            body: dict[str, Any] = {"provider": PROVIDER, "input": {**line.input, "seed": number}}
            if rng.random() < CALLBACK_SHARE:
                body["callback_url"] = self._place.receiver.url
            key = f"soak-{self._options.seed}-{number}"
            job = self._try("jobs", client.submit, body, key=key)
            if job is not None:
                self._remember(job["id"], rng)
            if rng.random() < TWICE_SHARE:
                self._try("jobs repeated", client.submit, body, key=key)

    def _remember(self, job: str, rng: random.Random) -> None:
        self.sent.jobs.append(job)
        self._recent.append(job)
        if rng.random() < CANCELED_SHARE:
            self._cancels.append((time.monotonic() + rng.uniform(*_CANCEL_AFTER_S), job))

    def _cancel(self, _rng: random.Random) -> None:
        client = self._client()
        while not self._stopping.wait(0.2):
            for at, job in [self._cancels.popleft() for _ in range(len(self._cancels))]:
                if at > time.monotonic():
                    self._cancels.append((at, job))
                else:
                    self._try("cancels", client.post, job_path(job, "cancel"))

    def _send_events(self, rng: random.Random) -> None:
        url = f"{self._place.fleet.running.url}/webhooks/{SENDER}"
        with requests.Session() as session:
            for number in self._paced(self._options.events_per_s):
                signed = sign(f"alert-{number}", f"msg-{self._options.seed}-{number}", stamp=str(int(time.time())))
                for _ in range(2 if rng.random() < REPEATED_SHARE else 1):
                    self._try("webhooks", _send, session, url, signed)

    def _look(self, rng: random.Random) -> None:
        """People and monitoring: lists, one job's history, the fleet's health, metrics."""
        client, running = self._client(), self._place.fleet.running
        paths = ["/v1/jobs?limit=50", "/v1/jobs?state=running", "/v1/events?limit=100", "/v1/deliveries?limit=50"]
        while not self._stopping.wait(_LOOK_EVERY_S):
            path = rng.choice(
                [*paths, "/v1/providers", *(f"/v1/jobs/{job}/transitions" for job in [*self._recent][:1])]
            )
            self._try("lists", client.get, path, tries=1)
            if rng.random() < 0.2:
                page = rng.choice(["/metrics", "/fleetz", "/openapi.json", "/console"])
                self._try("pages", requests.get, running.url + page, timeout=10)

    def _wait_long(self, rng: random.Random) -> None:
        client = self._client()
        while not self._stopping.wait(1.0):
            if self._recent:
                path = job_path(rng.choice([*self._recent]))
                job = self._try("reads", client.get, path, tries=1)
                since = {"wait": 5, "since": job["version"]} if job else {}
                self._try("long polls", client.get, path, since, tries=1)

    def _follow(self, rng: random.Random) -> None:
        """Opens a stream, hangs up in the middle as often as not, opens the next."""
        client = self._client()
        while not self._stopping.wait(0.5):
            if self._recent:
                job, until = rng.choice([*self._recent]), time.monotonic() + rng.uniform(*_FOLLOWED_S)
                self._try("streams", self._read, client, job, until)

    def _read(self, client: ApiClient, job: str, until: float) -> None:
        for message in client.stream(job_path(job, "events"), last_id=None, silence_s=30):
            self.sent.counts["messages"] += message is not None
            if time.monotonic() > until or self._stopping.is_set():
                return


def _send(session: requests.Session, url: str, signed: Signed) -> None:
    session.post(url, data=signed.body, headers=signed.headers, timeout=10).raise_for_status()
