"""The proof: from the evidence to claims that held or did not. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from homing.demo.books import billed_runs, endings, runs_by_fault
from homing.demo.evidence import Evidence, Step
from jobs.core.states import TERMINAL, JobState, is_legal

#: What the profiles promise of their webhooks, as a share of the runs.
PROMISED_SHARE = 0.25
#: Kinds that must have struck at least once.
PROMISED_KINDS = ("reordered", "early", "badly_signed", "stale", "lost_answers")
#: Below this many jobs a share says nothing.
ENOUGH_FOR_SHARES = 40


@dataclass(frozen=True, slots=True)
class Check:
    """One claim.

    Attributes:
        name: stable, for machines.
        claim: for people.
        wanted: what had to be found.
        found: what was found.
    """

    name: str
    claim: str
    wanted: int | str
    found: int | str
    held: bool


def prove(evidence: Evidence, *, faults: str) -> list[Check]:
    """Judge every claim.

    Args:
        evidence: what the witnesses say.
        faults: the profile, whose promises are claims too.
    """
    checks = [*_submits(evidence), *_ends(evidence), *_history(evidence)]
    if faults != "none" and len(evidence.submissions) >= ENOUGH_FOR_SHARES:
        checks += _promises(evidence)
    return checks


def _submits(evidence: Evidence) -> Iterator[Check]:
    ids = {submission.job_id for submission in evidence.submissions}
    wanted = len(evidence.submissions)
    yield _equal("jobs", "jobs submitted, each stored once", wanted, len(ids & set(evidence.jobs)))
    yield _equal("no_extra_jobs", "jobs nobody asked for", 0, len(set(evidence.jobs) - ids))
    repeated = [submission for submission in evidence.submissions if submission.repeated_ids]
    same = [each for each in repeated if set(each.repeated_ids) == {each.job_id}]
    yield _equal("idempotent", "submits repeated with their key, answered the same job", len(repeated), len(same))
    yield _equal("billed", "provider runs billed", wanted, evidence.ledger["runs_billed"])
    doubles = sum(1 for runs in billed_runs(evidence.ledger).values() if runs > 1)
    yield _equal("billed_once", "attempts billed more than once", 0, doubles)


def _ends(evidence: Evidence) -> Iterator[Check]:
    wanted = len(evidence.submissions)
    home = [job for job in evidence.jobs.values() if job.state in TERMINAL]
    yield _equal("home", "jobs home", wanted, len(home))
    said = endings(evidence.ledger)
    agreeing = [job for job in home if job.provider_job_id in said and said[job.provider_job_id].status == job.state]
    yield _equal("truth", "jobs that ended as the provider says", wanted, len(agreeing))
    yield from _effects(evidence) if evidence.killed is None else _effects_under_fire(evidence)
    named, stored = sum(evidence.files.values()), evidence.files.get("stored", 0)
    yield _equal("files", "result files stored, of all that were named", named, stored)
    waiting = sum(1 for job in evidence.jobs.values() if job.waits_for_person)
    yield _equal("unattended", "jobs that needed a person", 0, waiting)
    yield _equal("dead_letters", "dead letters", 0, evidence.dead_letters)


def _effects(evidence: Evidence) -> Iterator[Check]:
    wanted = len(evidence.submissions)
    once = [job_id for job_id in evidence.jobs if evidence.effects.get(job_id) == 1]
    yield _equal("effects", "jobs with exactly 1 effect at the sink", wanted, len(once))
    yield _equal("effect_calls", "calls at the sink", wanted, sum(evidence.effects.values()))


def _effects_under_fire(evidence: Evidence) -> Iterator[Check]:
    """A handler that is killed between its call and its mark is called again: at least once, with the same event."""
    wanted, died = len(evidence.submissions), sum((evidence.killed or {}).values())
    reached = [job_id for job_id in evidence.jobs if evidence.effects.get(job_id, 0) >= 1]
    yield Check("killed", "processes killed while the jobs ran", ">= 1", died, held=died >= 1)
    yield _equal("effects", "jobs with at least 1 effect at the sink", wanted, len(reached))
    yield _equal("effect_events", "events at the sink, one for each job", wanted, len(evidence.effect_events))


def _history(evidence: Evidence) -> Iterator[Check]:
    illegal = [step for step in evidence.steps if not is_legal(JobState(step.before), JobState(step.after))]
    yield _equal("illegal_transitions", "illegal transitions", 0, len(illegal))
    ends = Counter(step.job_id for step in evidence.steps if step.after in TERMINAL)
    again = sum(1 for count in ends.values() if count > 1)
    yield _equal("ended_twice", "jobs that ended twice", 0, again)
    paths = _paths(evidence.steps)
    broken = [job for job in evidence.jobs.values() if not _leads_to(paths[job.id], job.state)]
    yield _equal("history", "jobs whose history does not lead to their state", 0, len(broken))


def _promises(evidence: Evidence) -> Iterator[Check]:
    runs = max(1, evidence.ledger["runs_billed"])
    struck = runs_by_fault(evidence.ledger)
    for kind in ("dropped", "duplicated"):
        share = struck[kind] / runs
        yield Check(
            f"{kind}_share",
            f"runs whose callbacks were {kind}",
            f">= {PROMISED_SHARE:.0%}",
            f"{share:.0%}",
            held=share >= PROMISED_SHARE,
        )
    totals = evidence.ledger["totals"]
    absent = [kind for kind in PROMISED_KINDS if not totals.get(kind)]
    named = ", ".join(kind.replace("_", " ") for kind in PROMISED_KINDS)
    yield Check("all_kinds", f"faults that never struck, of: {named}", 0, ", ".join(absent) or 0, held=not absent)


def _equal(name: str, claim: str, wanted: int, found: int) -> Check:
    return Check(name, claim, wanted, found, held=wanted == found)


def _paths(steps: Iterable[Step]) -> defaultdict[str, list[Step]]:
    paths: defaultdict[str, list[Step]] = defaultdict(list)
    for step in steps:
        paths[step.job_id].append(step)
    return paths


def _leads_to(path: list[Step], state: str) -> bool:
    """Whether a history begins at pending, leaves no gap, and arrives at the state."""
    place = str(JobState.PENDING)
    for step in path:
        if step.before != place:
            return False
        place = step.after
    return place == state
