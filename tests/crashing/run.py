"""Rounds until enough processes have died, on each database; resumable, and stopped by the first violation."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import sqlalchemy as sa

from jobs.core.states import OPEN
from jobs.storage.schema import jobs
from tests.crashing.auditor import Violation
from tests.crashing.circumstances import describe_run
from tests.crashing.evidence import Evidence
from tests.crashing.journal import Journal
from tests.crashing.leftovers import end_leftovers, remember
from tests.crashing.load import Load
from tests.crashing.person import Person
from tests.crashing.rounds import Round
from tests.crashing.sniper import Sniper
from tests.crashing.stage import Kind, Stage, set_stage

_PER_ROUND = 50
_OPEN_AT_MOST = 80
_COUNT_EVERY_S = 0.5
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is to do.

    Attributes:
        kills: Processes that are to die, on each of the databases.
        per_round: Of them between two audits.
        rare_within_s: How long a round waits for deaths at dead letters when all others have died.
    """

    folder: Path
    kills: int
    seed: int
    databases: tuple[Kind, ...]
    per_round: int = _PER_ROUND
    rare_within_s: float = 200.0


def run(options: RunOptions, *, say: Say) -> bool:
    """Does what is still to be done; false after a violation, whose evidence stays in the folder."""
    options.folder.mkdir(parents=True, exist_ok=True)
    end_leftovers(options.folder)
    journal = Journal(options.folder / "journal.jsonl")
    return all(_run_on(options, kind, journal, say) for kind in options.databases)


def _run_on(options: RunOptions, kind: Kind, journal: Journal, say: Say) -> bool:
    if journal.deaths(kind) >= options.kills:
        return True
    number = journal.rounds(kind)
    journal.write("start", database=kind, **describe_run(options.folder))
    folder = options.folder / kind
    shutil.rmtree(folder, ignore_errors=True)
    say(f"{kind}: starting a fleet; {journal.deaths(kind)} of {options.kills} processes have died so far")
    with set_stage(folder, kind, seed=options.seed + number) as stage:
        remember(options.folder, stage)
        load = _load(stage, Random(f"{options.seed} {kind} {number}"))
        pool = load.start()
        try:
            return _rounds(options, stage, load, journal, fleet=number, say=say)
        finally:
            load.stop()
            pool.shutdown(wait=False, cancel_futures=True)


def _rounds(options: RunOptions, stage: Stage, load: Load, journal: Journal, *, fleet: int, say: Say) -> bool:
    sniper = Sniper(stage.control, Random(load.rng.random()), journal.deaths_by_point(stage.kind))
    person, had = Person(stage, load, Random(load.rng.random())), journal.troubles(stage.kind)
    while (dead := journal.deaths(stage.kind)) < options.kills:
        began_s = time.monotonic()
        this = Round(stage, load, person, sniper, journal, Random(load.rng.random()), fleet, had)
        wanted = min(options.per_round, options.kills - dead)
        evidence, violations = this.run(wanted, rare_within_s=options.rare_within_s)
        took_s = time.monotonic() - began_s
        say(
            f"{stage.kind}: {dead + this.deaths} dead, {len(evidence.acked)} jobs home, "
            f"{len(evidence.letters)} dead letters, {len(sniper.control.census())} points known, {took_s:.0f} s: "
            f"{len(violations)} violations"
        )
        if violations:
            _keep(options.folder, evidence, violations, say)
            return False
    return True


def _load(stage: Stage, rng: Random) -> Load:
    counted: dict[str, float] = {"at": -_COUNT_EVERY_S, "open": 0}

    def is_full() -> bool:
        if time.monotonic() - counted["at"] > _COUNT_EVERY_S:
            with stage.database.read() as tx:
                statement = sa.select(sa.func.count()).where(jobs.c.state.in_(sorted(OPEN)))
                counted.update(at=time.monotonic(), open=tx.execute(statement).scalar_one())
        return counted["open"] >= _OPEN_AT_MOST

    running = stage.fleet.running
    return Load(running.url, running.api_key, f"crash-{rng.random()}", rng, stage.receiver.url, is_full)


def _keep(folder: Path, evidence: Evidence, violations: list[Violation], say: Say) -> None:
    for violation in violations:
        say(f"VIOLATION {violation.check}: {violation.count}")
        for sample in violation.samples:
            say(f"    {sample}")
    document = {"violations": [asdict(violation) for violation in violations], "ledger": evidence.ledger}
    (folder / "violations.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    say(f"database, logs and ledger are kept in {folder}")
