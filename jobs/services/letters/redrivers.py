"""What a redrive does, by kind of dead letter: a table of functions.

Each makes the failed thing due again, in the transaction that marks the letter, and repeats its premise: where there
is nothing left to do it says why and changes nothing. ``webhooks`` adds its own kind through ``Runtime.redrivers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jobs.core.observations import PROVIDER_SOURCES
from jobs.core.states import JobState, is_terminal
from jobs.storage.artifacts import rearm_artifact
from jobs.storage.database import Transaction
from jobs.storage.extra_runs import find_extra_run, leave_extra_run, rearm_extra_run
from jobs.storage.handler_runs import rearm
from jobs.storage.jobs import Row, lock_jobs, update_bookkeeping
from jobs.storage.relay import unpark

#: Makes a letter's thing due again; returns why there is nothing to do, or None where it did it.
Redriver: TypeAlias = Callable[[Transaction, Row], str | None]


def _submit(tx: Transaction, letter: Row) -> str | None:
    job = _locked(tx, letter)
    if job is None or is_terminal(JobState(job["state"])):
        return _over(job)
    if job["provider_job_id"] is not None:
        return f"the provider has accepted the job since, as {job['provider_job_id']}"
    return _make_due(tx, job, {"next_submit_at": tx.now, "submit_tries": 0})


def _poll(tx: Transaction, letter: Row) -> str | None:
    job = _locked(tx, letter)
    if job is None or is_terminal(JobState(job["state"])):
        return _over(job)
    if job["provider_job_id"] is None:
        return "the job has no run at the provider yet: there is nothing to ask about"
    return _make_due(tx, job, {"next_poll_at": tx.now, "poll_failures": 0, "missing_reads": 0})


def _cancel(tx: Transaction, letter: Row) -> str | None:
    """Also for a job that has ended: its run may still cost money."""
    job = _locked(tx, letter)
    if job is None:
        return _over(job)
    if job["provider_job_id"] is None:
        return "the job has no run at the provider: there is nothing to cancel"
    if job["ended_by"] in PROVIDER_SOURCES:
        return f"the provider has ended the run since: {job['state']}"
    return _make_due(tx, job, {"next_cancel_at": tx.now, "cancel_tries": 0})


def _handler(tx: Transaction, letter: Row) -> str | None:
    done = str(letter["ref"]).isdigit() and rearm(tx, int(letter["ref"]))
    return None if done else "the handler is done with this event, or has not given up on it"


def _artifact(tx: Transaction, letter: Row) -> str | None:
    """The file alone: a job that failed for want of it has ended, and an end stays."""
    return None if rearm_artifact(tx, letter["ref"]) else "the file is stored, or is being fetched"


def _event(tx: Transaction, letter: Row) -> str | None:
    return None if unpark(tx, letter["ref"]) else "the event is not parked any more"


def _double_submit(tx: Transaction, letter: Row) -> str | None:
    """Looks at the extra run once more, and stops it where it is ours."""
    extra = _extra_of(tx, letter)
    if extra is None:
        return "the second run belongs to another job; look at both at the provider, then discard this letter"
    if extra["settled"] == "ended":
        return f"the extra run has ended ({extra['reason']}); discard this letter"
    if extra["settled"] is None:
        return "the extra run is being stopped"
    rearm_extra_run(tx, extra["id"])
    return None


def _leave_extra_run(tx: Transaction, letter: Row) -> None:
    extra = _extra_of(tx, letter)
    if extra is not None:
        leave_extra_run(tx, extra["provider"], extra["provider_job_id"], reason="a person discarded its dead letter")


def _extra_of(tx: Transaction, letter: Row) -> Row | None:
    evidence = letter["evidence"] or {}
    found = find_extra_run(tx, str(evidence.get("provider")), str(evidence.get("run")))
    return found if found is not None and found["job_id"] == letter["job_id"] else None


#: The kinds of ``jobs`` itself.
REDRIVERS: Mapping[str, Redriver] = {
    "submit": _submit,
    "poll": _poll,
    "cancel": _cancel,
    "handler": _handler,
    "event": _event,
    "artifact": _artifact,
    "double_submit": _double_submit,
}

#: What a discard has to undo, beside closing the letter.
DISCARDERS: Mapping[str, Callable[[Transaction, Row], None]] = {"double_submit": _leave_extra_run}


def _locked(tx: Transaction, letter: Row) -> Row | None:
    job_id = letter["job_id"]
    return lock_jobs(tx, [job_id]).get(job_id) if job_id else None


def _over(job: Row | None) -> str:
    return f"the job has ended: {job['state']}" if job else "the job is no longer here"


def _make_due(tx: Transaction, job: Row, changes: dict[str, Any]) -> str | None:
    update_bookkeeping(tx, job["id"], {**changes, "starts": 0, "cancel_starts": 0})
    return None
