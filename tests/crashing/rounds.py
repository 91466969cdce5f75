"""One round: load and deaths, then quiet, then the audit."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import requests
import sqlalchemy as sa

from jobs.core.errors import JobsError
from jobs.storage.schema import jobs
from tests.crashing import faults
from tests.crashing.auditor import Violation, audit
from tests.crashing.control import Arming, Struck
from tests.crashing.evidence import Evidence, count_unfinished, gather, open_letters
from tests.crashing.faults import Fault
from tests.crashing.journal import Journal
from tests.crashing.load import Load
from tests.crashing.sniper import Sniper
from tests.crashing.stage import Stage

_LOOK_EVERY_S = 0.05
#: Between two deaths: who dies all the time gets nothing done, and reaches no point.
_BREATH_S = (0.2, 0.8)
_KILL_EVERY_S = (3.0, 7.0)
_TROUBLE_EVERY_S = (4.0, 10.0)
_WARM_UP_S = 6.0
#: A round in which nobody dies any more has gone wrong.
_DEATH_AT_MOST_S = 15.0
#: A fleet under fire takes about one job for each of its deaths; far less is no load.
_DEATHS_PER_JOB = 5
#: Everything is home by then, however many leases had to end one after another.
SETTLES_WITHIN_S = 300.0
_QUIET_S = 3.0
_ASK_EVERY_S = 0.7
#: What the product does with work that seems to kill its worker; here the harness did, and redrives like a person.
_BLAMED = re.compile(r"never came to|never ended|no try came to an end|worker was lost|stopped its worker|starts")


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
        deaths: Processes that died so far.
        moments: What was done, and when.
    """

    stage: Stage
    load: Load
    sniper: Sniper
    journal: Journal
    rng: Random
    fleet: int
    deaths: int = 0
    moments: list[Moment] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, wanted: int) -> tuple[Evidence, list[Violation]]:
        """Until so many processes have died; then everything must come home."""
        self.journal.write("round", database=self.stage.kind)
        self.load.resume()
        began_s, taken_before = time.monotonic(), len(self.load.acked)
        surroundings = threading.Thread(target=self._trouble, args=(wanted,), name="trouble")
        surroundings.start()
        self._shoot(wanted, within_s=60 + wanted * _DEATH_AT_MOST_S)
        surroundings.join()
        paused_at = time.time()
        self.load.pause()
        must_have_worked(deaths=self.deaths, taken=len(self.load.acked) - taken_before)
        return self._audit(began_s, paused_at)

    def _shoot(self, wanted: int, *, within_s: float) -> None:
        until_s = time.monotonic() + within_s
        next_shot_s = time.monotonic() + _WARM_UP_S
        next_kill_s = next_shot_s
        while self.deaths < wanted and not self.load.faults:
            now_s = time.monotonic()
            if now_s > until_s:
                raise AssertionError(f"only {self.deaths} of {wanted} processes died within {within_s:g} s")
            for arming, struck in self.sniper.look():
                self._count(arming, struck)
                next_shot_s = now_s + self.rng.uniform(*_BREATH_S)
            if now_s > next_shot_s:
                self.sniper.refill()
            if now_s > next_kill_s:
                next_kill_s = now_s + self.rng.uniform(*_KILL_EVERY_S)
                self._kill(faults.draw(faults.KILLS, self.rng))
            time.sleep(_LOOK_EVERY_S)
        for arming, struck in self.sniper.hold_fire():
            self._count(arming, struck)

    def _trouble(self, wanted: int) -> None:
        known, rng = faults.troubles(self.stage.kind), Random(self.rng.random())
        time.sleep(_WARM_UP_S)
        while self.deaths < wanted and not self.load.faults:
            try:
                self._cause(faults.draw(known, rng), rng)
            except Exception as error:  # noqa: BLE001 - a thread would die in silence; the round ends on it
                self.load.faults.append(f"the harness itself: {type(error).__name__}: {error}")
            time.sleep(rng.uniform(*_TROUBLE_EVERY_S))

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
        about = {"point": arming.point, "name": struck.role, "at": time.time(), "with_parent": arming.with_parent}
        self.journal.write("death", database=self.stage.kind, nth=arming.nth, **about)

    def _note(self, name: str, died: int) -> None:
        with self._lock:
            self.deaths += died
            self.moments.append(Moment(name, time.time()))

    def _audit(self, began_s: float, paused_at: float) -> tuple[Evidence, list[Violation]]:
        paused_s = time.monotonic()
        redriven = settle(self.stage)
        settled_s = time.monotonic() - paused_s
        evidence = gather(self.stage, self.load.acked, [*self.load.conflicts, *self.load.faults])
        violations = audit(evidence)
        self.journal.write(
            "audit",
            database=self.stage.kind,
            violations=[f"{violation.check}: {violation.count}" for violation in violations],
            fleet=self.fleet,
            took_s=round(time.monotonic() - began_s, 1),
            settled_s=round(settled_s, 1),
            points=sorted(self.stage.control.census()),
            redriven=redriven,
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


def settle(stage: Stage) -> list[str]:
    """Waits until nothing waits any more, or the time is over; returns the dead letters it has redriven."""
    redriven: list[str] = []
    give_up_at, quiet_since_s, seen = time.monotonic() + SETTLES_WITHIN_S, time.monotonic(), -1
    while time.monotonic() < give_up_at:
        with stage.database.read() as tx:
            unfinished, letters = count_unfinished(tx), open_letters(tx)
        redriven += [letter["reason"] for letter in letters if _redrive(stage, letter)]
        # The whole ledger is long; it is asked only when it is all that is left to ask.
        sent = -1 if unfinished or letters else stage.simulator.ledger()["totals"]["sent"]
        if sent < 0 or sent != seen:
            quiet_since_s, seen = time.monotonic(), sent
        elif time.monotonic() - quiet_since_s > _QUIET_S:
            break
        time.sleep(_ASK_EVERY_S)
    return redriven


def _redrive(stage: Stage, letter: dict[str, Any]) -> bool:
    """As a person would, where the letter says no more than that starts were lost."""
    if not _BLAMED.search(letter["reason"]):
        return False
    try:
        stage.client.post(f"/v1/dead-letters/{letter['id']}/redrive")
    except (JobsError, requests.RequestException):
        return False  # the web process is coming back; asked again in a moment
    return True


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
