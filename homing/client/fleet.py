"""`Homing`: one fleet, as a Python program uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from homing.client.address import find_address
from homing.client.api import ApiClient, job_path
from homing.client.documents import Job, OutputPiece, StreamEvent, read_job
from homing.client.errors import WaitTimeout
from homing.client.files import list_files, save_file
from homing.client.following import SILENCE_S, Follower
from jobs.clock import Clock, SystemClock
from jobs.core import instants
from jobs.core.durations import format_duration
from jobs.core.events import Event
from jobs.core.states import JobState
from jobs.ids import new_token

#: A number is seconds; text is like `90s` or `1h 30m`.
Span: TypeAlias = timedelta | float | str
Action: TypeAlias = Literal["settle", "resubmit", "poll", "acknowledge"]


class Homing:
    """A fleet's API. One for each thread; close it, or use it in a `with` block.

    Args:
        url: of the fleet. Default: `HOMING_URL`, else the fleet that runs from `HOMING_DATA_DIR` on this machine.
        api_key: a key made by `homing keys create`. Default: `HOMING_API_KEY`, else that fleet's own.
        clock: measures the time to wait.

    Raises:
        ConfigError: no fleet is to be found; says what to set.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, *, clock: Clock | None = None) -> None:
        """See the class."""
        self.api = ApiClient(find_address(url=url, api_key=api_key))
        self._clock = clock or SystemClock()

    def submit(
        self,
        provider: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002 - its name in the API
        *,
        key: str | None = None,
        expected: Span | None = None,
        deadline: Span | None = None,
        metadata: Mapping[str, Any] | None = None,
        callback_url: str | None = None,
        adopt: str | None = None,
    ) -> Job:
        """Send a job. It is durable when this returns.

        Args:
            provider: a provider entry of the fleet.
            input: what the provider is asked to do.
            key: the same key never makes a second job. Give one of your own where your program may start anew;
                without one, only this call's own retries are safe.
            expected: usual duration.
            deadline: longest duration.
            metadata: words of yours; `list` filters by them.
            callback_url: where the job's end is sent.
            adopt: take charge of this run of the provider instead of submitting.

        Raises:
            Problem: refused; `fields` says which field is wrong.
            Busy, Unreachable: not known to be taken. Call again with the same `key`.
        """
        given = {
            "input": None if input is None else dict(input),
            "expected": _span_text(expected),
            "deadline": _span_text(deadline),
            "metadata": None if metadata is None else dict(metadata),
            "callback_url": callback_url,
            "adopt": adopt,
        }
        body = {"provider": provider, **{name: value for name, value in given.items() if value is not None}}
        return read_job(self.api.submit(body, key=key or f"client-{new_token()}"))

    def get(self, job_id: str) -> Job:
        """Read a job."""
        return read_job(self.api.get(job_path(job_id)))

    def list(
        self,
        *,
        state: str | None = None,
        provider: str | None = None,
        review: bool | str | None = None,
        created_after: datetime | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Iterator[Job]:
        """Yield jobs, newest first, page by page as they are asked for."""
        filters = {
            "state": state,
            "provider": provider,
            "review": str(review).lower() if isinstance(review, bool) else review,
            "created_after": None if created_after is None else instants.to_text(created_after),
            "limit": 200,
            **{f"metadata.{name}": value for name, value in (metadata or {}).items()},
        }
        yield from map(read_job, self.api.pages("/v1/jobs", filters))

    def cancel(self, job_id: str) -> Job:
        """Ask for a job's end. It is canceled once the provider confirms; `wait` for that."""
        return read_job(self.api.post(job_path(job_id, "cancel")))

    def resolve(
        self,
        job_id: str,
        action: Action,
        *,
        reason: str,
        state: JobState | str | None = None,
        provider_job_id: str | None = None,
    ) -> Job:
        """End a review: settle it yourself, submit again, poll again, or take note."""
        further = {"state": state, "provider_job_id": provider_job_id}
        body = {"action": action, "reason": reason}
        body |= {name: str(value) for name, value in further.items() if value is not None}
        return read_job(self.api.post(job_path(job_id, "resolve"), body))

    def changes(
        self,
        job_id: str,
        *,
        timeout: timedelta | float | None = None,
        on_output: Callable[[OutputPiece], object] | None = None,
    ) -> Iterator[Job]:
        """Yield a job now, after every change that is seen, and for the last time at its end or the time-out's.

        Changes that follow each other quickly may be seen as one. A fleet that does not answer is asked again for
        a minute.

        Args:
            job_id: the job.
            timeout: how long at most; seconds where it is a number.
            on_output: is called with each piece of output while it is made, where the provider tells it and a stream
                is served: from the first character on, each once.
        """
        within_s = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        until = None if within_s is None else self._clock.monotonic() + within_s
        yield from map(read_job, Follower(self.api, job_id, self._clock, until, on_output).changes())

    def wait(
        self,
        job_id: str,
        *,
        timeout: timedelta | float | None = None,
        on_change: Callable[[Job], object] | None = None,
        on_output: Callable[[OutputPiece], object] | None = None,
    ) -> Job:
        """Wait for a job's end: by its stream, else by long polls, else by polls that grow rarer.

        Args:
            job_id: the job.
            timeout: how long at most; seconds where it is a number. Default: as long as it takes.
            on_change: is called with the job as it is now, and after every change that is seen.
            on_output: is called with each piece of output while it is made (see `changes`).

        Returns:
            The job as it ended: `succeeded`, `failed` or `canceled`.

        Raises:
            WaitTimeout: it is still open; its `job` is what was seen last.
        """
        for job in self.changes(job_id, timeout=timeout, on_output=on_output):
            if on_change is not None:
                on_change(job)
        if not job.is_terminal:
            raise WaitTimeout(job)
        return job

    def save_files(self, job_id: str, folder: Path | str) -> tuple[Path, ...]:
        """Fetch a job's stored result files into a folder, each whole or not at all.

        Args:
            job_id: the job.
            folder: made where it is not there; files of the same job that are in it are replaced.

        Returns:
            Where each is, by its id and an ending for its type.

        Raises:
            Unreachable: one did not come, or came damaged. Call again.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        stored = [file for file in list_files(self.api, job_id) if file["state"] == "stored"]
        return tuple(save_file(self.api, file, place) for file in stored)

    def stream(self, job_id: str, *, last_event_id: str | None = None) -> Iterator[StreamEvent]:
        """Yield what happens to a job, from a snapshot to its end: its events, progress and pieces of output.

        One connection: where it breaks, `Unreachable` is raised, and a call with the last `id` seen goes on from
        there without gap or repeat.

        Raises:
            NoStream: none is served now; `wait` and `events` need none.
        """
        path = job_path(job_id, "events")
        for message in self.api.stream(path, last_id=last_event_id, silence_s=SILENCE_S):
            if message is not None:
                yield StreamEvent(message.event, message.id, json.loads(message.data))

    def events(self, *, type: str | None = None, job: str | None = None, after: int = 0) -> Iterator[Event]:  # noqa: A002
        """Yield events in commit order, for consumers who lost some.

        Args:
            type: `job.succeeded`, or `job.*`.
            job: only of this job.
            after: only events after this `position`.
        """
        filters = {"type": type, "job": job, "after": after, "limit": 200}
        for document in self.api.pages("/v1/events", filters):
            yield Event(**{name: document[name] for name in Event.__dataclass_fields__})

    def close(self) -> None:
        """Close its connections."""
        self.api.close()

    def __enter__(self) -> Self:
        """Open for as long as the block lasts."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def _span_text(span: Span | None) -> str | None:
    if span is None or isinstance(span, str):
        return span
    return format_duration(span if isinstance(span, timedelta) else timedelta(seconds=span))
