"""Which run belongs to which attempt, for one batch of observations: read in one query, written in one statement."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from jobs.storage.attempts import NewRun, list_run_owners, record_runs
from jobs.storage.database import Transaction
from jobs.storage.jobs import find_job


class Owner(NamedTuple):
    """An attempt of a job."""

    job_id: str
    attempt: int


def owner_in_words(tx: Transaction, job_id: str, *, tenant: str, attempt: int | None = None) -> str:
    """Whose a run is, told to a tenant: accounts may be shared, and nobody learns the id of another tenant's job."""
    if find_job(tx, job_id, tenant=tenant) is None:
        return "another tenant's job"
    return f"job {job_id}" if attempt is None else f"job {job_id}, attempt {attempt}"


class RunBook:
    """The runs a batch speaks of, and whose they are."""

    def __init__(self, tx: Transaction, runs: Iterable[tuple[str, str]]) -> None:
        """Reads the owners of some runs, each named by provider entry and provider job id."""
        self._owners = {run: Owner(*owner) for run, owner in list_run_owners(tx, runs).items()}
        self._new: list[NewRun] = []

    def owner(self, provider: str, run: str) -> Owner | None:
        """The attempt that owns a run, None for one nobody knows yet."""
        return self._owners.get((provider, run))

    def enter(self, provider: str, run: str, owner: Owner, *, at: datetime) -> None:
        """Gives a run that nobody owns to an attempt; an attempt that has one already keeps that."""
        if (provider, run) in self._owners:
            return
        self._owners[provider, run] = owner
        self._new.append(NewRun(owner.job_id, owner.attempt, run, at))

    def write(self, tx: Transaction) -> None:
        """Writes what was entered."""
        record_runs(tx, self._new)
