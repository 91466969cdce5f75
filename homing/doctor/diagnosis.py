"""From facts to findings: what is wrong, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from homing.doctor.facts import DatabaseFacts, Facts

#: Anything that moves by itself has moved by then, restarts included.
STUCK_AFTER_S = 60.0
#: A fleet so young has not taken up yet what waited for it, nor been heard of everywhere: every canary has had its turn
#: by then.
STARTING_S = 30.0
#: A queue this long is not drained as fast as it fills.
LONG_QUEUE = 1000
#: So many dead letters a person can still look at one by one.
FEW_LETTERS = 3


class Level(StrEnum):
    """How bad it is."""

    WRONG = "wrong"  # somebody must act; exit code 1
    NOTE = "note"  # worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing, and what to do about it."""

    level: Level
    what: str
    remedy: str


def diagnose(facts: Facts) -> list[Finding]:
    """Judge the facts; what explains most comes first."""
    return [*_services(facts), *_writer(facts), *_processes(facts), *_signs_of_life(facts), *_work(facts)]


def _services(facts: Facts) -> Iterator[Finding]:
    if facts.database is None:
        yield _wrong(f"the database cannot be read: {facts.database_fault}", _database_remedy(facts))
    if facts.redis is None:
        yield _wrong(
            f"Redis does not answer: {facts.redis_fault}",
            f"{_redis_remedy(facts)}. No job is lost: webhooks are still stored, and the sweeps "
            "bring everything home once it is back",
        )
    elif busy := {name: count for name, count in facts.redis.queues.items() if count >= LONG_QUEUE}:
        yield _wrong(f"queues are long: {in_words(busy)}", "start more workers for them, or find what holds them up")


def _writer(facts: Facts) -> Iterator[Finding]:
    if facts.database is not None and facts.database.writer is not None:
        pid, for_s = facts.database.writer
        yield _wrong(
            f"process {pid} has held the database's write lock for {for_s:.0f} s: nobody else can write",
            f"let it go on (`kill -CONT {pid}`, if it was stopped), or end it (`kill -9 {pid}`): its work is taken up",
        )


def _redis_remedy(facts: Facts) -> str:
    if facts.processes is None:  # `homing up --embedded` takes its Redis with it when it stops
        return "no fleet runs from this folder: start one with `homing up`, or start Redis, or correct HOMING_REDIS_URL"
    return "start it, or correct HOMING_REDIS_URL"


def _database_remedy(facts: Facts) -> str:
    if "homing migrate" in facts.database_fault:
        return "run `homing migrate`"
    return "start it, or correct HOMING_DATABASE_URL; until then webhooks are answered 503 and senders try again"


def _processes(facts: Facts) -> Iterator[Finding]:
    if facts.processes is not None:
        dead = [name for name, is_alive in facts.processes.items() if not is_alive]
        if dead:
            yield _wrong(
                f"not running: {', '.join(dead)}",
                f"`homing up` starts them again within seconds; if not, read {facts.data_dir}/logs",
            )
    for name, pids in sorted(facts.stopped.items()):
        numbers = " ".join(map(str, pids))
        yield _wrong(
            f"{name} is stopped: process {numbers} lives and does nothing",
            f"let it go on (`kill -CONT {numbers}`), or end it (`kill -9 {numbers}`): another takes its place",
        )


def _signs_of_life(facts: Facts) -> Iterator[Finding]:
    if facts.database is None:
        return
    if _is_starting(facts):
        yield Finding(
            Level.NOTE,
            f"the fleet was started {facts.up_s:.0f} s ago",
            "it takes up what has waited for it; look again in half a minute",
        )
        return
    stale = [beat.name for beat in facts.database.heartbeats if beat.is_stale]
    if stale:
        yield _wrong(f"no sign of life from {', '.join(stale)}", _heartbeat_remedy(facts, stale))
    if not facts.database.heartbeats:
        yield _wrong("nothing has ever swept here", "start a fleet: `homing up --embedded` on one machine")


def _is_starting(facts: Facts) -> bool:
    return facts.up_s is not None and facts.up_s < STARTING_S


def _heartbeat_remedy(facts: Facts, stale: list[str]) -> str:
    if facts.processes is None:
        return "no fleet runs from this folder: start one with `homing up`, or look where yours runs"
    if all(name.startswith("sweep.") for name in stale):
        return f"beat or worker-events is stuck: read {facts.data_dir}/logs/beat.log and worker-events.log"
    return f"a worker takes nothing from its queue: read {facts.data_dir}/logs, restart it"


def _work(facts: Facts) -> Iterator[Finding]:
    if (found := facts.database) is None:
        return
    yield from _outages(found)
    if not _is_starting(facts):
        yield from _late_jobs(found)
        yield from _late_events(found)
    yield from _for_a_person(found)
    yield from _worth_knowing(found)


def _for_a_person(found: DatabaseFacts) -> Iterator[Finding]:
    if found.reviews:
        yield _wrong(
            f"jobs wait for a person: {in_words(found.reviews)}",
            "`homing list --review true` shows them, `homing resolve JOB …` ends a review",
        )
    if found.dead_letters:
        yield _wrong(
            f"dead letters: {in_words(found.dead_letters)}",
            _letters_remedy(found.dead_letters),
        )
    if found.letters_surge_s is not None:
        yield _wrong(
            f"dead letters have come faster than they should for {found.letters_surge_s:.0f} s",
            "so many at once have one cause: `homing dead-letters list` says which; once it is gone, "
            f"`{_redrive_of(found.dead_letters)}` tries them again at a rate",
        )
    if found.failing_handlers:
        yield _wrong(
            f"handlers fail: {in_words(found.failing_handlers)}",
            "worker-io's log says why; each event is tried again with growing waits, then it is a dead letter",
        )


def _letters_remedy(letters: Mapping[str, int]) -> str:
    if sum(letters.values()) <= FEW_LETTERS:
        return "`homing dead-letters list` shows them; redrive each once its cause is gone, or discard it"
    return (
        "`homing dead-letters list` shows them; once their cause is gone, "
        f"`{_redrive_of(letters)}` tries all of a kind again at a rate"
    )


def _redrive_of(letters: Mapping[str, int]) -> str:
    """The command for the kind there is most of."""
    kind = max(sorted(letters), key=letters.__getitem__, default="KIND")
    return f"homing dead-letters redrive --all --kind {kind}"


def _worth_knowing(found: DatabaseFacts) -> Iterator[Finding]:
    if found.paused:
        names = ", ".join(found.paused)
        yield Finding(Level.NOTE, f"paused: {names}", "`homing providers resume NAME` ends a pause")
    if found.parked:
        text = f"{found.parked} webhooks name a run nobody knows yet"
        yield Finding(Level.NOTE, text, "they expire quietly; many of them: does another system use this account?")


def _outages(found: DatabaseFacts) -> Iterator[Finding]:
    if found.outages:
        names = ", ".join(f"{name} for {age_s:.0f} s" for name, age_s in sorted(found.outages.items()))
        yield _wrong(
            f"a provider is away: {names}",
            "nothing to do but to see whether it is they or your network: `homing providers list --json` says what "
            "its last answer was. It is asked once a minute at least, and its jobs wait without using up tries",
        )


def _late_jobs(found: DatabaseFacts) -> Iterator[Finding]:
    late = {kind: age_s for kind, age_s in found.due_s.items() if age_s > STUCK_AFTER_S}
    if late:
        ages = ", ".join(f"{kind} for {age_s:.0f} s" for kind, age_s in late.items())
        yield _wrong(
            f"work on jobs is due and not done: {ages}", "is worker-io running, and is the provider reachable?"
        )
    if (found.unheard_oldest_s or 0) > STUCK_AFTER_S:
        yield _wrong(
            f"a run has told its output to nobody for {found.unheard_oldest_s:.0f} s",
            "is worker-streams running? Its job comes home all the same",
        )
    if found.overdue_leases:
        yield _wrong(
            f"{found.overdue_leases} jobs are held by a worker that is gone",
            "the next sweep frees them; if they stay, beat or worker-events is not running",
        )


def _late_events(found: DatabaseFacts) -> Iterator[Finding]:
    if (found.inbox_oldest_s or 0) > STUCK_AFTER_S:
        yield _wrong(
            f"a stored webhook has waited {found.inbox_oldest_s:.0f} s to be applied",
            "is worker-events running? Its log says what it fails on",
        )
    if (found.delivery_oldest_s or 0) > STUCK_AFTER_S:
        yield _wrong(
            f"deliveries are due and not sent for {found.delivery_oldest_s:.0f} s",
            "are worker-events and worker-io running? `homing deliveries list` shows what waits",
        )
    if (found.outbox_oldest_s or 0) > STUCK_AFTER_S:
        yield _wrong(
            f"an event has waited {found.outbox_oldest_s:.0f} s to be relayed",
            "is worker-events running? Its log says what it fails on",
        )


def _wrong(what: str, remedy: str) -> Finding:
    return Finding(Level.WRONG, what, remedy)


def in_words(counts: Mapping[str, int]) -> str:
    """Return what was counted, in the order of the names; what is not there is not named."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
