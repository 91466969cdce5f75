"""The doctor's one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homing.doctor.diagnosis import Level, in_words
from homing.doctor.examination import Examination
from homing.doctor.facts import DatabaseFacts, Facts
from homing.screen import console


def print_page(examination: Examination) -> None:
    """Print what is alive, what is stuck, and what to do."""
    from rich.text import Text  # noqa: PLC0415 - rich costs a tenth of a second

    screen = console()
    for name, text in _alive(examination.facts):
        screen.print(Text(f"{name:<14}{text}"))
    screen.print()
    if examination.is_well:
        screen.print(Text("Nothing is wrong.", "green"))
    for finding in examination.findings:
        is_wrong = finding.level is Level.WRONG
        mark = Text("✗ " if is_wrong else "· ", "bold red" if is_wrong else "yellow")
        screen.print(mark + Text(finding.what, "bold" if is_wrong else ""))
        screen.print(Text(f"    {finding.remedy}"))


def _alive(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "data dir", facts.data_dir
    yield "database", "answers" if facts.database else "does not answer"
    if facts.redis is None:
        yield "Redis", "does not answer"
    else:
        waiting = in_words(facts.redis.queues) or "nothing waits"
        yield "Redis", f"answers; queues: {waiting}; in workers' hands: {facts.redis.unacked}"
    yield "processes", _processes(facts.processes)
    if facts.database is not None:
        yield from _work(facts.database)


def _work(found: DatabaseFacts) -> Iterator[tuple[str, str]]:
    fresh = sum(1 for beat in found.heartbeats if not beat.is_stale)
    yield "heartbeats", f"{fresh} of {len(found.heartbeats)} fresh"
    yield "jobs", in_words(found.jobs) or "none yet"
    yield "in review", in_words(found.reviews) or "none"
    yield "dead letters", in_words(found.dead_letters) or "none"
    ages = {"webhook": found.inbox_oldest_s, "event": found.outbox_oldest_s, "delivery": found.delivery_oldest_s}
    yield "oldest waits", ", ".join(f"{name} {_age(age_s)}" for name, age_s in ages.items())


def _processes(processes: Mapping[str, bool] | None) -> str:
    if processes is None:
        return "no fleet runs from this data dir"
    return ", ".join(f"{name} {'up' if is_up else 'DOWN'}" for name, is_up in processes.items())


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"
