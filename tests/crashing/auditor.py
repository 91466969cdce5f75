"""The auditor: from the evidence to violations, of which there may be none. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jobs.core.states import TERMINAL, JobState, is_legal
from tests.crashing.evidence import Evidence
from tests.crashing.letters import is_waiting
from tests.crashing.person import is_explained
from tests.crashing.stage import ENDS, SUBSCRIBED

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        check: Which.
        count: How often.
        samples: Some of what broke it.
    """

    check: str
    count: int
    samples: tuple[str, ...]


Check = Callable[[Evidence], Iterable[str]]


def audit(evidence: Evidence) -> list[Violation]:
    """Judges everything; each violation names what broke its promise."""
    found = []
    for name, check in CHECKS.items():
        broken = list(check(evidence))
        if broken:
            found.append(Violation(name, len(broken), tuple(broken[:_SHOWN])))
    return found


def _lost_jobs(evidence: Evidence) -> Iterator[str]:
    known = {row["id"] for row in evidence.jobs}
    return (f"{acked.job_id} (key {acked.key})" for acked in evidence.acked.values() if acked.job_id not in known)


def _unasked_jobs(evidence: Evidence) -> Iterator[str]:
    return (row["id"] for row in evidence.jobs if row["id"] not in evidence.acked)


def _not_home(evidence: Evidence) -> Iterator[str]:
    return (f"{row['id']} is {row['state']}" for row in evidence.jobs if row["state"] not in TERMINAL)


def _waits_for_person(evidence: Evidence) -> Iterator[str]:
    return (f"{row['id']}: {row['review_reason']}" for row in evidence.jobs if row["review_reason"])


def _billed_twice(evidence: Evidence) -> Iterator[str]:
    billed = Counter(run["reference"] for run in evidence.ledger["runs"])
    return (f"attempt {reference} was billed {count} times" for reference, count in billed.items() if count > 1)


def _billed_unordered(evidence: Evidence) -> Iterator[str]:
    ordered = {row["provider_job_id"] for row in evidence.attempts}
    return (f"run {run['id']} belongs to no attempt" for run in evidence.ledger["runs"] if run["id"] not in ordered)


def _ordered_unbilled(evidence: Evidence) -> Iterator[str]:
    billed = {run["id"] for run in evidence.ledger["runs"]}
    runs = (row["provider_job_id"] for row in evidence.attempts if row["provider_job_id"])
    return (f"the provider knows no run {run}" for run in runs if run not in billed)


def _second_attempts(evidence: Evidence) -> Iterator[str]:
    return (f"{row['job_id']} has attempt {row['number']}" for row in evidence.attempts if row["number"] > 1)


def _untrue(evidence: Evidence) -> Iterator[str]:
    """Ended otherwise than the provider says; a job canceled before its submit has no run."""
    said = {run["id"]: run["status"] for run in evidence.ledger["runs"]}
    run_of = {row["job_id"]: row["provider_job_id"] for row in evidence.attempts}
    for row in evidence.jobs:
        run = run_of.get(row["id"])
        truth = said.get(run, "canceled") if row["state"] in TERMINAL else row["state"]
        if truth != row["state"]:
            yield f"{row['id']} {row['state']}, the provider says {truth} of {run}"


def _ended_twice(evidence: Evidence) -> Iterator[str]:
    ends = Counter(row["job_id"] for row in evidence.events if row["type"] in ENDS)
    return (f"{job} has {count} events of its end" for job, count in ends.items() if count != 1)


def _ended_silently(evidence: Evidence) -> Iterator[str]:
    told = {row["job_id"] for row in evidence.events if row["type"] in ENDS}
    return (row["id"] for row in evidence.jobs if row["state"] in TERMINAL and row["id"] not in told)


def _illegal_history(evidence: Evidence) -> Iterator[str]:
    place: defaultdict[str, str] = defaultdict(lambda: str(JobState.PENDING))
    for step in evidence.steps:
        before, after = step["from_state"], step["to_state"]
        if place[step["job_id"]] != before or not is_legal(JobState(before), JobState(after)):
            yield f"{step['job_id']}: {before} -> {after}"
        place[step["job_id"]] = after
    yield from (f"{row['id']} is {row['state']}" for row in evidence.jobs if place[row["id"]] != row["state"])


def _positions(evidence: Evidence) -> Iterator[str]:
    """Every event has its place, and there is no gap."""
    places = sorted(row["position"] or 0 for row in evidence.events)
    return (f"position {place} where {wanted} should be" for wanted, place in enumerate(places, 1) if place != wanted)


def _sequences(evidence: Evidence) -> Iterator[str]:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for row in evidence.events:
        if row["job_id"] is not None and row["sequence"] is not None:
            numbers[row["job_id"]].append(row["sequence"])
    for job, found in numbers.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            yield f"{job}: events {sorted(found)}"


def _transactional_effects(evidence: Evidence) -> Iterator[str]:
    ends = {row["id"] for row in evidence.events if row["type"] in ENDS}
    wrong = {event: evidence.effects.get(event, 0) for event in ends | set(evidence.effects)}
    return (f"event {event} took effect {count} times" for event, count in wrong.items() if count != (event in ends))


def _plain_effects(evidence: Evidence) -> Iterator[str]:
    ends = {row["id"] for row in evidence.events if row["type"] in ENDS}
    yield from (f"event {event} never reached the plain handler" for event in ends - set(evidence.told))
    yield from (f"the plain handler got {event}, which is no end of a job" for event in set(evidence.told) - ends)


def _undelivered(evidence: Evidence) -> Iterator[str]:
    wanted = {row["id"] for row in evidence.events if row["type"] in SUBSCRIBED}
    sent = {row["event_id"] for row in evidence.deliveries if not row["is_callback"]}
    yield from (f"event {event} has no delivery" for event in wanted - sent)
    yield from (f"{row['id']} is {row['state']}" for row in evidence.deliveries if row["state"] != "succeeded")
    yield from (f"event {event} never arrived" for event in wanted - set(evidence.delivered))


def _forged_deliveries(evidence: Evidence) -> Iterator[str]:
    known = {row["event_id"] for row in evidence.deliveries}
    return (f"{event} arrived, and was never to be sent" for event in set(evidence.delivered) - known)


def _lost_webhooks(evidence: Evidence) -> Iterator[str]:
    """Acknowledged, and no row: the provider will never send it again."""
    for entry in evidence.ledger["webhooks"]:
        answer = entry["answer"]
        if isinstance(answer, int) and 200 <= answer < 300 and entry["id"] not in evidence.inbox:
            yield f"{entry['id']} of run {entry['job']} was answered {answer}"


def _lost_files(evidence: Evidence) -> Iterator[str]:
    return (f"{row['id']} is {row['state']}: {row['reason']}" for row in evidence.files if row["state"] != "stored")


def _letters(evidence: Evidence) -> Iterator[str]:
    """Each has its reason, and at the end of a round a person has decided on it."""
    for letter in evidence.letters:
        about = f"{letter['kind']} {letter['ref']}: {letter['reason']}"
        if not is_explained(letter, evidence.acked):
            yield f"{about} (nothing of the kind was wrong)"
        elif is_waiting(letter):
            yield f"{about} (still waits)"


def _lost_letters(evidence: Evidence) -> Iterator[str]:
    known = {letter["id"] for letter in evidence.letters}
    return (f"letter {letter} was there, and is no more" for letter in evidence.seen.letters - known)


def _announced(evidence: Evidence) -> Iterator[str]:
    known = {letter["id"] for letter in evidence.letters}
    for letter in known | set(evidence.announced):
        count = evidence.announced.get(letter, 0)
        if count != (letter in known):
            yield f"letter {letter} was told of {count} times"


def _done_again(evidence: Evidence) -> Iterator[str]:
    """A redrive takes up what failed, and nothing that was done before it."""
    for step, at in evidence.seen.done.items():
        if evidence.done.get(step) != at:
            yield f"{step} was done at {at} and again at {evidence.done.get(step)}"


CHECKS: dict[str, Check] = {
    "confirmed jobs lost": _lost_jobs,
    "jobs nobody asked for": _unasked_jobs,
    "keys answered with two jobs": lambda evidence: evidence.conflicts,
    "jobs not home": _not_home,
    "jobs that need a person": _waits_for_person,
    "attempts billed twice": _billed_twice,
    "runs billed and not ordered": _billed_unordered,
    "runs ordered and not billed": _ordered_unbilled,
    "second attempts": _second_attempts,
    "ends that are not the provider's": _untrue,
    "jobs that ended twice": _ended_twice,
    "ends without an event": _ended_silently,
    "illegal history": _illegal_history,
    "gaps in the feed": _positions,
    "gaps in a job's events": _sequences,
    "transactional effects not exactly once": _transactional_effects,
    "plain effects lost": _plain_effects,
    "deliveries lost": _undelivered,
    "deliveries of nothing": _forged_deliveries,
    "acknowledged webhooks lost": _lost_webhooks,
    "files lost": _lost_files,
    "dead letters": _letters,
    "dead letters lost": _lost_letters,
    "dead letters not told of once": _announced,
    "dead letters at odds with their work": lambda evidence: evidence.seen.faults,
    "done work done again": _done_again,
    "rows stuck": lambda evidence: [f"{name}: {count}" for name, count in evidence.unfinished.items()],
}
