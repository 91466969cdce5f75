"""What each claimed event comes to: an observation of its job, a place in the car park, or a reason to leave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.core.decisions import Verdict
from jobs.core.errors import Transient
from jobs.services.observe import Observed
from jobs.services.polling import request_poll
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from jobs.storage.outbox import append_events
from webhooks.incoming.applying.claims import Settlement, settle
from webhooks.incoming.applying.notices import notice_row
from webhooks.incoming.applying.owners import Claim, Owner, find_owners
from webhooks.incoming.applying.work import Work, observation_of, only_run_of
from webhooks.incoming.letters import write_letter
from webhooks.incoming.schema import InboxStatus

#: How long an event waits for its job to appear: a shared account tells us of runs that are not ours.
PARK_FOR = timedelta(hours=24)
# A parked row is woken by whoever learns its run's id. Looking again is the net under that: after half its age, so
# that a missed wake is healed soon and an event nobody waits for costs a handful of looks.
_SHORTEST_LOOK = timedelta(seconds=5)
_LONGEST_LOOK = timedelta(hours=1)

# Whether the event moved its job, told it nothing that matters, or contradicts what it had been told.
_STATUS_OF = {
    Verdict.APPLIED: InboxStatus.APPLIED,
    Verdict.NOTED: InboxStatus.APPLIED,
    Verdict.UNCHANGED: InboxStatus.APPLIED,
    Verdict.REPEATED: InboxStatus.APPLIED,
    Verdict.OLDER: InboxStatus.IGNORED,
    Verdict.LATE: InboxStatus.IGNORED,
    Verdict.OTHER_ATTEMPT: InboxStatus.IGNORED,
    Verdict.CONFLICT: InboxStatus.CONFLICT,
    Verdict.OTHER_RUN: InboxStatus.CONFLICT,
}
_REPEATED = "repeated: the job knew it already"


@dataclass(slots=True)
class Applied:
    """What came of some rows.

    Attributes:
        count: How many were settled.
        parked: What those claim whose job is not known yet, by event id.
        has_events: Whether the outbox may have something new.
        lags_s: From each event's commit to its effect.
    """

    count: int = 0
    parked: dict[str, Claim] = field(default_factory=dict)
    has_events: bool = False
    lags_s: list[float] = field(default_factory=list)

    def add(self, other: Applied) -> None:
        """Adds what came of other rows."""
        self.count += other.count
        self.parked |= other.parked
        self.has_events |= other.has_events
        self.lags_s += other.lags_s


def apply(runtime: Runtime, tx: Transaction, works: Sequence[Work], *, token: str) -> Applied:
    """Applies claimed rows, all or none, and settles them in the same transaction.

    Raises:
        Stale: A lease was lost, or a job changed under us.
        Transient: This process does not know a row's provider.
    """
    owners = find_owners(tx, [work.claim for work in works if work.claim])
    owned = [(work, owners[work.claim]) for work in works if work.claim and work.claim in owners]
    notices = [work for work in works if work.is_notice]
    ownerless = [_leave(work, now=tx.now) for work in works if work.claim not in owners and not work.is_notice]
    settlements = [*_believe(runtime, tx, owned), *_look(runtime, tx, owned), *_hand_on(tx, notices), *ownerless]
    settle(tx, settlements, token=token)
    letters = list(_quarantined(works, settlements))
    for work, reason in letters:
        write_letter(tx, work.row, reason=reason)
    reached = [*(work for work, _ in owned), *notices]
    lags_s = [(tx.now - work.row["received_at"]).total_seconds() for work in reached]
    return Applied(len(works), _parked(works, settlements), has_events=bool(reached or letters), lags_s=lags_s)


def _believe(runtime: Runtime, tx: Transaction, owned: Sequence[tuple[Work, Owner]]) -> Iterator[Settlement]:
    believed = [(work, owner) for work, owner in owned if not work.is_hint]
    pairs = [(owner.job_id, observation_of(work, owner, now=tx.now)) for work, owner in believed]
    observed = runtime.observer.observe_many(tx, pairs) if pairs else []
    for (work, owner), seen in zip(believed, observed, strict=True):
        yield _owned(work, owner, _STATUS_OF[seen.verdict], _reason(seen))


def _look(runtime: Runtime, tx: Transaction, owned: Sequence[tuple[Work, Owner]]) -> Iterator[Settlement]:
    """An event whose body is bound by no signature only says "look": we ask with our own credential.

    Which run it is about is taken from it all the same. After a lost submit answer nobody else can tell, the callback
    token that brought it is known to the provider alone, and what the run came to is still read by ourselves.
    """
    hints = [(work, owner) for work, owner in owned if work.is_hint]
    named = [
        (owner.job_id, only_run_of(observation_of(work, owner, now=tx.now)))
        for work, owner in hints
        if work.claim and work.claim.provider_job_id
    ]
    if named:
        runtime.observer.observe_many(tx, named)
    for work, owner in hints:
        request_poll(tx, owner.job_id)
        yield _owned(work, owner, InboxStatus.APPLIED, "a hint: the provider is asked")


def _hand_on(tx: Transaction, notices: Sequence[Work]) -> list[Settlement]:
    """Events of senders that are no job providers: our subscribers know what they mean."""
    append_events(tx, [notice_row(work, at=tx.now) for work in notices])
    return [Settlement(work.id, InboxStatus.APPLIED, "handed on", tenant=work.row["tenant"]) for work in notices]


def _owned(work: Work, owner: Owner, status: InboxStatus, reason: str | None) -> Settlement:
    run = work.claim.provider_job_id if work.claim else None
    return Settlement(work.id, status, reason, job_id=owner.job_id, tenant=owner.tenant, provider_job_id=run)


def _reason(seen: Observed) -> str | None:
    if seen.verdict is Verdict.REPEATED:
        return _REPEATED
    return seen.step.reason if seen.step is not None and not seen.step.applied else None


def _leave(work: Work, *, now: datetime) -> Settlement:
    """An event that has no job: settled with the reason, or parked until its job appears."""
    if work.reading is None:
        raise Transient(f"provider {work.row['provider']!r} is not configured in this process")
    tenant, run = work.row["tenant"], work.reading.provider_job_id
    if work.reading.status is not InboxStatus.ACCEPTED:
        return Settlement(work.id, work.reading.status, work.reading.reason, tenant=tenant)
    if run is None:
        return Settlement(work.id, InboxStatus.IGNORED, "names no job; its callback token is unknown", tenant=tenant)
    until = work.row["parked_until"] or work.row["received_at"] + PARK_FOR
    if until <= now:
        reason = f"no job with this run appeared within {PARK_FOR // timedelta(hours=1)} h"
        return Settlement(work.id, InboxStatus.IGNORED, reason, tenant=tenant, provider_job_id=run)
    age = now - work.row["received_at"]
    look_at = now + min(max(age / 2, _SHORTEST_LOOK), _LONGEST_LOOK)
    return Settlement(
        work.id,
        InboxStatus.PARKED,
        "no job is known to have this run yet",
        tenant=tenant,
        provider_job_id=run,
        next_try_at=min(look_at, until),
        parked_until=until,
    )


def _parked(works: Sequence[Work], settlements: Sequence[Settlement]) -> dict[str, Claim]:
    claims: Mapping[str, Claim | None] = {work.id: work.claim for work in works}
    parked = {settled.event_id: claims[settled.event_id] for settled in settlements if settled.parked_until}
    return {event_id: claim for event_id, claim in parked.items() if claim is not None}


def _quarantined(works: Sequence[Work], settlements: Sequence[Settlement]) -> Iterator[tuple[Work, str]]:
    by_id = {work.id: work for work in works}
    for settlement in settlements:
        if settlement.status is InboxStatus.QUARANTINED:
            yield by_id[settlement.event_id], settlement.reason or "unusable"
