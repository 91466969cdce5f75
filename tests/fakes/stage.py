"""Everything a job's way home needs, with time and the provider in the test's hand: no broker, only sweeps."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa

from jobs.clock import FakeClock
from jobs.config.providers import ProviderConfig
from jobs.core.policy import Policy
from jobs.core.states import JobState, is_terminal
from jobs.providers.port import Capabilities
from jobs.services import extra_runs
from jobs.services.canceling import cancel_run
from jobs.services.claims import claim_due
from jobs.services.deadlines import ring_alarms
from jobs.services.observe import Observer
from jobs.services.polling import poll_job
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.services.submitting.submission import submit_job
from jobs.storage.database import Database
from jobs.storage.jobs import get_job, update_bookkeeping
from jobs.storage.schema import dead_letters, job_attempts, job_transitions, jobs, outbox, provider_accounts
from jobs.storage.schema import extra_runs as extra_runs_table
from tests.factories import PROVIDER, new_job
from tests.fakes.broker import RecordingBroker
from tests.fakes.provider import REPLAY, FakeProvider
from tests.fakes.runtime import a_runtime

Row = Mapping[str, Any]


@dataclass
class Stage:
    """A runtime over a real database, with fake providers by name."""

    database: Database
    clock: FakeClock
    runtime: Runtime
    providers: dict[str, FakeProvider]
    woken: list[tuple[str, str]] = field(default_factory=list)

    @property
    def provider(self) -> FakeProvider:
        """The provider of :data:`PROVIDER`."""
        return self.providers[PROVIDER]

    @property
    def broker(self) -> RecordingBroker:
        return cast("RecordingBroker", self.runtime.broker)

    # Jobs ----------------------------------------------------------------------------------------------

    def new_job(self, **columns: Any) -> str:
        """A pending job, due to be submitted."""
        return str(new_job(self.database, **columns)["id"])

    def running_job(self, **columns: Any) -> tuple[str, str]:
        """A job that the provider has accepted, and its run; a poll is due soon."""
        job_id = self.new_job(**columns)
        submit_job(self.runtime, job_id)
        return job_id, str(self.job(job_id)["provider_job_id"])

    def job(self, job_id: str) -> Row:
        with self.database.read() as tx:
            return get_job(tx, job_id)

    def attempt(self, job_id: str) -> Row:
        (attempt,) = self.rows(job_attempts, job_id=job_id)
        return attempt

    def rows(self, table: sa.Table, **equal: Any) -> list[dict[str, Any]]:
        """Rows of a table by equality, in the order they were written."""
        order = [column for column in table.primary_key if column.name != "name"] or list(table.primary_key)
        with self.database.read() as tx:
            return tx.rows(sa.select(table).filter_by(**equal).order_by(*order))

    def history(self, job_id: str, *, applied: bool | None = True) -> list[str]:
        """The steps of a job, as ``before>after by source``."""
        rows = self.rows(job_transitions, job_id=job_id)
        wanted = [row for row in rows if applied is None or row["applied"] is applied]
        return [f"{row['from_state']}>{row['to_state']} by {row['source']}" for row in wanted]

    def events(self, job_id: str) -> list[str]:
        with self.database.read() as tx:
            statement = sa.select(outbox.c.type).where(outbox.c.job_id == job_id).order_by(outbox.c.row_id)
            return [row["type"] for row in tx.rows(statement)]

    def letters(self, kind: str | None = None) -> list[dict[str, Any]]:
        rows = self.rows(dead_letters)
        return [row for row in rows if kind in (None, row["kind"])]

    def write(self, job_id: str, **changes: Any) -> None:
        """Changes columns behind everybody's back."""
        with self.database.write() as tx:
            update_bookkeeping(tx, job_id, changes)

    def make_due(self, job_id: str, kind: str) -> None:
        self.write(job_id, **{f"next_{kind}_at": self.clock.now()})

    # Time ----------------------------------------------------------------------------------------------

    def submit(self, job_id: str) -> str:
        """Does the due submit now, without waiting for a sweep."""
        return str(submit_job(self.runtime, job_id))

    def poll(self, job_id: str) -> str:
        """Makes a poll due and does it."""
        self.make_due(job_id, "poll")
        return str(poll_job(self.runtime, job_id))

    def cancel(self, job_id: str) -> str:
        return str(cancel_run(self.runtime, job_id))

    def sweep(self, limit: int = 100) -> int:
        """One pass of every sweep, its messages worked off; how many there were."""
        done = ring_alarms(self.runtime, limit)
        for kind, work in (("submit", submit_job), ("cancel", cancel_run), ("poll", poll_job)):
            for job_id, token in claim_due(self.runtime, kind, limit):
                work(self.runtime, job_id, token)
                done += 1
        for extra_id, token in extra_runs.claim_due(self.runtime, limit):
            extra_runs.stop_extra_run(self.runtime, extra_id, token)
            done += 1
        return done

    def live(self, span: timedelta, *, until: str | None = None) -> None:
        """Lets time pass, sweeping whenever something is due; ``until`` a job has ended."""
        end = self.clock.now() + span
        while self.clock.now() < end:
            self.sweep()
            if until is not None and is_terminal(JobState(self.job(until)["state"])):
                return
            self.clock.advance(min(self._next_due(end), end) - self.clock.now())
        self.sweep()

    def _next_due(self, end: datetime) -> datetime:
        """When the next sweep can do something: work that is held back waits for what holds it."""
        soon = self.clock.now() + timedelta(seconds=1)
        blocked = {row["name"]: row["blocked_until"] for row in self.rows(provider_accounts)}
        ahead = [row["next_alarm_at"] for row in self.rows(jobs) if row["next_alarm_at"] is not None]
        for row in self.rows(jobs):
            held = [at for at in (row["lease_until"], blocked.get(row["provider"])) if at is not None]
            due = [row[f"next_{kind}_at"] for kind in ("submit", "poll", "cancel")]
            ahead += [max(at, *held) if held else at for at in due if at is not None]
        ahead += [row["next_check_at"] for row in self.rows(extra_runs_table) if row["next_check_at"] is not None]
        return min((max(at, soon) for at in ahead), default=end)

    def end_leases(self) -> None:
        """As long as a dead worker's leases take."""
        self.clock.advance(31)


def a_stage(
    database: Database,
    clock: FakeClock,
    *,
    capabilities: Capabilities = REPLAY,
    policy: Policy | None = None,
    others: Mapping[str, Policy] | None = None,
) -> Stage:
    """A stage with one provider, and ``others`` by name with their own rules."""
    policies = {PROVIDER: policy or Policy(), **(others or {})}
    fakes = {name: FakeProvider(clock, capabilities) for name in policies}
    entries = {name: an_entry(name, fakes[name], policies[name]) for name in policies}
    runtime = a_runtime(database, providers=entries)
    runtime = replace(runtime, observer=Observer(policies, random.Random(7)))
    stage = Stage(database, clock, runtime, fakes)
    runtime.wake_parked = lambda provider, run: stage.woken.append((provider, run))
    return stage


def an_entry(name: str, adapter: FakeProvider, policy: Policy) -> ProviderEntry:
    """An entry around a fake."""
    config = ProviderConfig(adapter="simulator", base_url="http://127.0.0.1:1", webhook_scheme="standard-webhooks")
    return ProviderEntry(name, config, policy, adapter)
