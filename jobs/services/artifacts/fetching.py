"""Fetching a result file: within seconds of the success, whole, of the right kind, and only once.

A success makes its files due in its own transaction; a sweep claims them each second. A fetch goes to a temporary
file, is judged by its bytes, and only then moved to its place. Where the link is dead the provider is asked for a
fresh one, twice at most. What cannot be had is ``rejected`` or ``expired``, with the reason, and a dead letter. When
the last file of a recorded success is settled, the job ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

import structlog

from jobs.core.addresses import AddressRefused
from jobs.core.backoff import retry_wait
from jobs.core.errors import JobsError
from jobs.core.events import EventType
from jobs.core.observations import JobError, Observation, Source
from jobs.core.states import JobState, is_terminal
from jobs.net.download import LinkGone, TooLarge
from jobs.services.accounts import outages
from jobs.services.artifacts.download import Fetched, Unfit, fetch_file, fresh_link
from jobs.services.artifacts.store import open_store
from jobs.services.documents import artifact_document
from jobs.services.lease_keeper import LeaseKeeper
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.services.work import ring_relay
from jobs.storage.accounts import find_account
from jobs.storage.artifacts import (
    claim_artifacts,
    end_artifact,
    has_due_artifacts,
    keep_artifact,
    list_artifacts,
    take_artifact,
)
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.jobs import Row, find_job, lock_job, update_job
from jobs.storage.outbox import append_events, event_row
from jobs.storage.premise import Premise, always
from jobs.telemetry import span

LETTER_KIND = "artifact"
# Renewed while the file is fetched, so that only a dead worker's lease ends.
LEASE = timedelta(seconds=20)
_RENEW_EVERY_S = 6.0
MAX_STARTS = 3
#: Tries of a file that cannot be reached, and of one whose content is not what it should be.
MAX_TRIES, MAX_UNFIT = 8, 3
#: How often the provider is asked for a fresh link.
MAX_REFRESHES = 2
_RETRY_BASE, _RETRY_CAP = timedelta(seconds=2), timedelta(minutes=10)
_HELD_TRIES = 5  # half a minute between looks whether the provider is back

_EVENTS = {
    "stored": EventType.ARTIFACT_STORED,
    "rejected": EventType.ARTIFACT_REJECTED,
    "expired": EventType.ARTIFACT_EXPIRED,
}
_log = structlog.get_logger(__name__)


class Came(StrEnum):
    """What came of one message."""

    NOTHING = "nothing"  # not due, or not ours
    STORED = "stored"
    RETRY = "retry"
    REJECTED = "rejected"
    EXPIRED = "expired"


def claim_due(runtime: Runtime, limit: int, *, premise: Premise = always) -> list[tuple[str, str]]:
    """Leases due files, each under a token that its message carries.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.read() as tx:
        if not has_due_artifacts(tx):
            return []
    with runtime.database.write() as tx:
        premise(tx)
        return claim_artifacts(tx, limit, until=tx.now + LEASE)


def fetch_artifact(runtime: Runtime, artifact_id: str, lease_token: str | None = None) -> Came:
    """Fetches one file, if that is due and ours to do.

    Args:
        runtime: The process's parts.
        artifact_id: The file.
        lease_token: Of the claim that sent the message; None: it is claimed here, if it is free and due.

    Raises:
        Unavailable: The database is away; the fetch is repeated when the lease has ended.
    """
    with span("fetch_artifact", clock=runtime.clock, artifact=artifact_id):
        with runtime.database.write() as tx:
            row = take_artifact(tx, artifact_id, held=lease_token, until=tx.now + LEASE)
            job = find_job(tx, row["job_id"]) if row else None
            entry = runtime.providers.get(row["provider"]) if row else None
            if row is not None and entry is None:  # it left the configuration, of this process at least
                end_artifact(tx, row, {"next_fetch_at": tx.now + LEASE})
        if row is None or job is None or entry is None:
            return Came.NOTHING
        came = _work_on(runtime, _Case(runtime, entry, row, job))
        _log.info("artifact", artifact=artifact_id, job=row["job_id"], provider=entry.name, result=str(came))
        return came


@dataclass(frozen=True, slots=True)
class _Case:
    """A file under way: its row as taken, its job, and the account it comes from."""

    runtime: Runtime
    entry: ProviderEntry
    row: Row
    job: Row


def _work_on(runtime: Runtime, case: _Case) -> Came:
    record = _Record(case)
    if case.row["starts"] > MAX_STARTS:
        with runtime.database.write() as tx:
            came = record.settle(tx, "rejected", f"its fetch was begun {MAX_STARTS} times and never came to its end")
    else:
        with LeaseKeeper(_renewal(runtime, case.row), every_s=_RENEW_EVERY_S):
            came = _fetch(case, record)
    ring_relay(runtime, record.has_events)
    return came


def _renewal(runtime: Runtime, row: Row) -> Callable[[], bool]:
    def renew() -> bool:
        with runtime.database.write() as tx:
            return keep_artifact(tx, row, until=tx.now + LEASE)

    return renew


def _fetch(case: _Case, record: _Record) -> Came:
    """The download, outside any transaction; then what came of it, in one."""
    runtime, store = case.runtime, open_store(case.runtime.settings)
    try:
        with store.receive() as (file, place):
            fetched = fetch_file(runtime.guard, case.entry, case.row["link"], file)
            path = f"{case.row['job_id']}/{case.row['id']}"
            store.keep(place, path)
    except LinkGone as gone:
        if _is_away(case):
            with runtime.database.write() as tx:
                return record.held(tx, gone)
        link = fresh_link(case.entry, case.job, case.row)
        with runtime.database.write() as tx:
            return record.gone(tx, gone, link)
    except (JobsError, OSError) as error:
        with runtime.database.write() as tx:
            return record.failed(tx, error)
    with runtime.database.write() as tx:
        return record.stored(tx, fetched, path)


def _is_away(case: _Case) -> bool:
    with case.runtime.database.read() as tx:
        return outages.is_away(find_account(tx, case.entry.name))


@dataclass(slots=True)
class _Record:
    """Writes what came of a fetch, in one open transaction."""

    case: _Case
    has_events: bool = field(default=False)

    def stored(self, tx: Transaction, fetched: Fetched, path: str) -> Came:
        facts = {"content_type": fetched.content_type, "size_bytes": fetched.size, "sha256": fetched.sha256}
        return self.settle(tx, "stored", None, **facts, path=path)

    def gone(self, tx: Transaction, gone: LinkGone, link: Row | JobsError | None) -> Came:
        """A dead link: once more with a fresh one, and the provider is asked only so often."""
        row = self.case.row
        if isinstance(link, JobsError):
            return self.failed(tx, link)
        if row["refreshes"] >= MAX_REFRESHES or link is None:
            return self.settle(tx, "expired", f"the provider no longer gives it away ({gone.detail})")
        is_fresh = link["url"] != row["link"]["url"]
        wait = timedelta(0) if is_fresh else self._wait(row["refreshes"] + 1)
        return self._again(tx, wait, refreshes=row["refreshes"] + 1, link=dict(link))

    def held(self, tx: Transaction, gone: LinkGone) -> Came:
        """A dead link while the provider is away, which is left alone: no try is used up."""
        words = f"{gone.detail}; its provider is away and will be asked for a fresh link"
        return self._again(tx, self._wait(_HELD_TRIES), reason=words)

    def failed(self, tx: Transaction, error: JobsError | OSError) -> Came:
        """Refused for good, or another try."""
        tries = self.case.row["tries"] + 1
        if isinstance(error, AddressRefused | TooLarge):
            rule = f"address: {error.rule}" if isinstance(error, AddressRefused) else f"too_large: {error.detail}"
            return self.settle(tx, "rejected", rule, tries=tries)
        most = MAX_UNFIT if isinstance(error, Unfit) else MAX_TRIES
        words = error.detail if isinstance(error, JobsError) else f"the store: {error.strerror or type(error).__name__}"
        if tries >= most:
            return self.settle(tx, "rejected", f"{words} (after {tries} tries)", tries=tries)
        asked = error.retry_after if isinstance(error, JobsError) else None
        return self._again(tx, max(self._wait(tries), asked or timedelta(0)), tries=tries, reason=words)

    def settle(self, tx: Transaction, state: str, reason: str | None, **facts: Any) -> Came:
        """The end of a file: its row, its job, its event, and the dead letter where there is one to write."""
        job = lock_job(tx, self.case.row["job_id"])
        changes = {"state": state, "reason": reason, "next_fetch_at": None, "settled_at": tx.now, **facts}
        if not end_artifact(tx, self.case.row, changes):
            return Came.NOTHING  # the lease was lost: whoever has it now writes
        self.has_events = True
        row = {**self.case.row, **changes}
        files = list_artifacts(tx, job["id"], attempt=job["attempt"])
        _tell(tx, job, row, files)
        if state != "stored":
            _bury(tx, row)
        self._end_job(tx, files)
        return Came(state)

    def _again(self, tx: Transaction, wait: timedelta, **changes: Any) -> Came:
        kept = end_artifact(tx, self.case.row, {"next_fetch_at": tx.now + wait, **changes})
        return Came.RETRY if kept else Came.NOTHING

    def _wait(self, tries: int) -> timedelta:
        return retry_wait(tries, base=_RETRY_BASE, cap=_RETRY_CAP, rng=self.case.runtime.rng)

    def _end_job(self, tx: Transaction, files: Sequence[Row]) -> None:
        """A recorded success ends with its last file."""
        job = lock_job(tx, self.case.row["job_id"])
        is_open = not is_terminal(JobState(job["state"])) and job["outcome"] is not None
        if is_open and all(file["state"] != "pending" for file in files):
            self.case.runtime.observer.observe(tx, job["id"], _end_of(job, files, tx))


def _end_of(job: Row, files: Sequence[Row], tx: Transaction) -> Observation:
    """How a job ends whose files are settled: by the word that was recorded, unless one could not be had."""
    lost = next((file for file in files if file["state"] != "stored"), None)
    error = JobError(f"artifact_{lost['state']}", lost["reason"] or lost["state"]) if lost else None
    return Observation(
        source=Source(job["outcome"]["source"]),
        at=tx.now,
        attempt=job["attempt"],
        state=JobState.FAILED if lost else JobState.SUCCEEDED,
        output=job["outcome"]["output"],
        error=error,
        collected=True,
        reason="a file could not be stored" if lost else "all files are stored",
    )


def _tell(tx: Transaction, job: Row, row: Row, files: Sequence[Row]) -> None:
    """The job as the world sees it, and the file's own event, with the job's next sequence."""
    sequence = job["event_count"] + 1
    changes: dict[str, Any] = {"event_count": sequence}
    if row["attempt"] == job["attempt"]:
        changes["artifacts"] = [artifact_document(file) for file in files]
    update_job(tx, job, changes)
    event = event_row(
        _EVENTS[row["state"]],
        tenant=job["tenant"],
        at=tx.now,
        data={"artifact": {**artifact_document(row), "job": job["id"]}},
        job_id=job["id"],
        provider=job["provider"],
        sequence=sequence,
    )
    append_events(tx, [event])


def _bury(tx: Transaction, row: Row) -> None:
    dead_letter(
        tx,
        LETTER_KIND,
        row["id"],
        reason=row["reason"],
        attempts=max(row["tries"], 1),
        tenant=row["tenant"],
        job_id=row["job_id"],
        evidence={"provider": row["provider"], "attempt": row["attempt"], "state": row["state"]},
    )
