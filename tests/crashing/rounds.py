"""One round: load and deaths, then quiet, then the audit."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

import sqlalchemy as sa

from jobs.storage.schema import jobs
from tests.crashing import faults
from tests.crashing.auditor import Violation, audit
from tests.crashing.control import Arming, Struck
from tests.crashing.evidence import Evidence, count_unfinished, gather
from tests.crashing.faults import Fault
from tests.crashing.journal import Journal
from tests.crashing.letters import is_waiting, list_letters
from tests.crashing.load import Load
from tests.crashing.person import Person, ails, is_blamed
from tests.crashing.pulse import Pulse
from tests.crashing.sniper import Sniper
from tests.crashing.stage import Stage

_LOOK_EVERY_S = 0.05
#: Between two deaths: who dies all the time gets nothing done, and reaches no point.
_BREATH_S = (0.2, 0.8)
_KILL_EVERY_S = (2.0, 5.0)
_TROUBLE_EVERY_S = (4.0, 10.0)
#: A fleet that has just begun brings its first job home by then, however busy the machine is.
_WARM_BY_S = 90.0
_HOME_BEFORE_FIRE = 3
#: A round in which nobody dies any more has gone wrong.
_DEATH_AT_MOST_S = 15.0
#: A fleet under fire takes about one job for each of its deaths; far less is no load.
_DEATHS_PER_JOB = 5
#: Everything is home by then, however many leases had to end one after another.
SETTLES_WITHIN_S = 300.0
_QUIET_S = 3.0
_ASK_EVERY_S = 0.7
#: Of the deaths of a round, at least so many happen where a dead letter is written, and where one is decided on.
AT_LETTERS = {"letters": ("letter.",), "decisions": ("decision.", "redrive.")}
_RARE_DEATHS = 2


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was done to the fleet, by its name: for the time until there is progress again."""

    name: str
    at: float


@dataclass(slots=True)
class Round:
    """One round on a stage.

    Attributes:
        fleet: Its number among those of this database.
        had: Troubles of earlier rounds, by name.
        deaths: Processes that died so far.
        moments: What was done, and when.
    """

    stage: Stage
    load: Load
    person: Person
    sniper: Sniper
    journal: Journal
    rng: Random
    fleet: int
    had: Counter[str] = field(default_factory=Counter)
    deaths: int = 0
    moments: list[Moment] = field(default_factory=list)
    _enough_at_s: float = 0.0
    _rare_within_s: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, wanted: int, *, rare_within_s: float) -> tuple[Evidence, list[Violation]]:
        """Until so many processes have died; then everything must come home.

        Args:
            wanted: How many.
            rare_within_s: How long to wait for deaths at dead letters, and for a redrive, when all others have died.
        """
        self.journal.write("round", database=self.stage.kind)
        self.load.resume()
        began_s, taken_before = time.monotonic(), len(self.load.acked)
        person = threading.Thread(target=self.person.work, name="person")
        surroundings = threading.Thread(target=self._trouble, args=(wanted,), name="trouble")
        person.start()
        try:
            self._warm_up()
            surroundings.start()
            self._rare_within_s = rare_within_s
            self._shoot(wanted, within_s=60 + wanted * _DEATH_AT_MOST_S + rare_within_s)
        finally:
            self._over.set()
            self.person.stop()
        person.join()
        surroundings.join()
        paused_at = time.time()
        self.load.pause()
        must_have_worked(deaths=self.deaths, taken=len(self.load.acked) - taken_before)
        return self._audit(began_s, paused_at)

    def _warm_up(self) -> None:
        """Until some of this round's jobs are home: before that there is nothing to disturb."""
        give_up_at = time.monotonic() + _WARM_BY_S
        home = sa.select(sa.func.count()).where(jobs.c.state.in_(("succeeded", "failed")))
        with self.stage.database.read() as tx:
            before = tx.execute(home).scalar_one()
        while time.monotonic() < give_up_at and not self.load.faults:
            with self.stage.database.read() as tx:
                if tx.execute(home).scalar_one() - before >= _HOME_BEFORE_FIRE:
                    return
            time.sleep(_ASK_EVERY_S)

    def _shoot(self, wanted: int, *, within_s: float) -> None:
        until_s = time.monotonic() + within_s
        next_shot_s = next_kill_s = time.monotonic()
        before, pulse = self._rare_deaths(), Pulse(self.stage.database)
        while self._goes_on(wanted, before) and not self.load.faults:
            now_s = time.monotonic()
            if now_s > until_s:
                raise AssertionError(f"only {self.deaths} of {wanted} processes died within {within_s:g} s")
            for arming, struck in self.sniper.look():
                self._count(arming, struck)
                next_shot_s = now_s + self.rng.uniform(*_BREATH_S)
            if pulse.is_stalled():
                self.sniper.lower()
            elif now_s > next_shot_s:
                self.sniper.refill(only_rare=self.deaths >= wanted)
            if self.deaths < wanted and now_s > next_kill_s and not pulse.is_stalled():
                next_kill_s = now_s + self.rng.uniform(*_KILL_EVERY_S)
                self._kill(faults.draw(faults.KILLS, self.rng))
            time.sleep(_LOOK_EVERY_S)
        for arming, struck in self.sniper.hold_fire():
            self._count(arming, struck)

    def _goes_on(self, wanted: int, before: dict[str, int]) -> bool:
        """Until enough have died, some of them at dead letters, and those were redriven; not for ever."""
        now_s = time.monotonic()
        if self.deaths < wanted:
            self._enough_at_s = now_s
            return True
        lacking = [name for name, count in self._rare_deaths().items() if count - before[name] < _RARE_DEATHS]
        is_complete = not lacking and self.person.redrives > 0
        return not is_complete and now_s - self._enough_at_s < self._rare_within_s

    def _rare_deaths(self) -> dict[str, int]:
        return {name: self.sniper.deaths_at(moments) for name, moments in AT_LETTERS.items()}

    def _trouble(self, wanted: int) -> None:
        known, rng = faults.troubles(self.stage.kind), Random(self.rng.random())
        pulse = Pulse(self.stage.database)
        while not self._over.is_set() and self.deaths < wanted and not self.load.faults:
            try:
                self._cause(faults.draw_rarest(known, rng, self.had), rng)
            except Exception as error:  # noqa: BLE001 - a thread would die in silence; the round ends on it
                self.load.faults.append(f"the harness itself: {type(error).__name__}: {error}")
            self._over.wait(rng.uniform(*_TROUBLE_EVERY_S))
            while pulse.is_stalled() and not self._over.is_set():
                self._over.wait(1)

    def _cause(self, fault: Fault, rng: Random) -> None:
        began = time.time()
        died = fault.cause(self.stage, rng)
        self._note(fault.name, died)
        about = {"name": fault.name, "began": began, "ended": time.time(), "deaths": died}
        self.journal.write("trouble", database=self.stage.kind, **about)

    def _kill(self, fault: Fault) -> None:
        if fault.cause(self.stage, self.rng):
            self._note(f"{fault.name} killed", 1)
            about = {"point": None, "name": fault.name, "at": time.time(), "with_parent": False}
            self.journal.write("death", database=self.stage.kind, **about)

    def _count(self, arming: Arming, struck: Struck) -> None:
        member = "child and main" if arming.with_parent else "child"
        self._note(f"{struck.role} {member} killed", 1)
        about = {"point": struck.point, "name": struck.role, "at": time.time(), "with_parent": arming.with_parent}
        self.journal.write("death", database=self.stage.kind, nth=arming.nth, **about)

    def _note(self, name: str, died: int) -> None:
        with self._lock:
            self.deaths += died
            self.moments.append(Moment(name, time.time()))

    def _audit(self, began_s: float, paused_at: float) -> tuple[Evidence, list[Violation]]:
        paused_s = time.monotonic()
        settle(self.stage, self.person)
        settled_s = time.monotonic() - paused_s
        evidence = gather(self.stage, self.load.acked, [*self.load.conflicts, *self.load.faults], seen=self.person.seen)
        violations = audit(evidence)
        self.journal.write(
            "audit",
            database=self.stage.kind,
            violations=[f"{violation.check}: {violation.count}" for violation in violations],
            fleet=self.fleet,
            took_s=round(time.monotonic() - began_s, 1),
            settled_s=round(settled_s, 1),
            points=sorted(self.stage.control.census()),
            letters=_letters(evidence),
            recoveries=_recoveries(self.stage, self.moments, paused_at),
            **_figures(evidence),
        )
        return evidence, violations


def must_have_worked(*, deaths: int, taken: int) -> None:
    """Deaths in a fleet that has nothing to do prove nothing.

    Raises:
        AssertionError: Far fewer jobs were taken than processes died.
    """
    if taken < deaths // _DEATHS_PER_JOB:
        raise AssertionError(f"{deaths} processes died while only {taken} jobs were taken: the load itself has stopped")


def settle(stage: Stage, person: Person) -> None:
    """Waits until nothing waits any more, or the time is over; the person decides on what waits for one."""
    give_up_at, quiet_since_s, seen = time.monotonic() + SETTLES_WITHIN_S, time.monotonic(), -1
    while time.monotonic() < give_up_at:
        with stage.database.read() as tx:
            unfinished, letters = count_unfinished(tx), [each for each in list_letters(tx) if is_waiting(each)]
        if letters:
            person.tidy_up()
        # The whole ledger is long; it is asked only when it is all that is left to ask.
        sent = -1 if unfinished or letters else stage.simulator.ledger()["totals"]["sent"]
        if sent < 0 or sent != seen:
            quiet_since_s, seen = time.monotonic(), sent
        elif time.monotonic() - quiet_since_s > _QUIET_S:
            break
        time.sleep(_ASK_EVERY_S)


def _letters(evidence: Evidence) -> dict[str, int]:
    """What became of dead letters so far, in words of the report."""
    letters, acked = evidence.letters, evidence.acked
    kinds = Counter(letter["kind"] for letter in letters if ails(letter, acked))
    by = [letter["redriven_by"] or "" for letter in letters if letter["redriven_at"]]
    many = sum(", rd_" in who for who in by)
    return {
        **{f"of kind {kind}": count for kind, count in sorted(kinds.items())},
        "after lost starts alone": sum(1 for letter in letters if is_blamed(letter) and not ails(letter, acked)),
        "redriven one by one": len(by) - many,
        "redriven among many": many,
        "discarded": sum(letter["discarded_at"] is not None for letter in letters),
    }


def _figures(evidence: Evidence) -> dict[str, int]:
    totals = evidence.ledger["totals"]
    return {
        "jobs": len(evidence.acked),
        "billed": evidence.ledger["runs_billed"],
        "submits": totals["submits"],
        "webhooks": len(evidence.inbox),
        "events": len(evidence.events),
        "transactional_effects": sum(evidence.effects.values()),
        "plain_calls": sum(evidence.told.values()),
        "plain_events": len(evidence.told),
        "deliveries": len(evidence.deliveries),
        "delivery_calls": sum(evidence.delivered.values()),
        "files": len(evidence.files),
    }


def _recoveries(stage: Stage, moments: list[Moment], paused_at: float) -> list[tuple[str, float]]:
    """For each thing done: until a job came home that was submitted after it. Only where one could have."""
    with stage.database.read() as tx:
        rows = tx.rows(sa.select(jobs.c.created_at, jobs.c.finished_at).where(jobs.c.finished_at.is_not(None)))
    lives = [(_seconds(row["created_at"]), _seconds(row["finished_at"])) for row in rows]
    found = []
    for moment in moments:
        ends = [ended for began, ended in lives if began >= moment.at]
        if ends and moment.at < paused_at:
            found.append((moment.name, round(min(ends) - moment.at, 2)))
    return found


def _seconds(at: datetime) -> float:
    return at.timestamp()
