"""A hundred deaths, between every commit and every network call and at any moment: nothing is lost, nothing doubled.

The long run is ``make crash-proof``; its figures are in ``docs/proof/crash.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crashing.journal import Journal
from tests.crashing.rounds import AT_LETTERS
from tests.crashing.run import RunOptions, run
from tests.crashing.stage import Kind

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("fleet")]

_SEED = 11
_RARE_WITHIN_S = 60.0
#: Processes that die, on each database.
DEATHS: dict[Kind, int] = {"sqlite": 60, "postgresql": 40}
#: What must have been passed in any run, or the harness looks the wrong way. Each is a pattern of points.
INDISPENSABLE = (
    r"write\.before jobs\.services\.creation:.*",
    r"write\.after jobs\.services\.creation:.*",
    r"answer\.before POST /v1/jobs",
    r"write\.before webhooks\.incoming\.receiving\.ingest:ingest",
    r"write\.after webhooks\.incoming\.receiving\.ingest:ingest",
    r"answer\.before POST /webhooks/\*/\*",
    r"write\.before webhooks\.incoming\.applying\.drain:sweep_batch",
    r"write\.after webhooks\.incoming\.applying\.drain:sweep_batch",
    r"write\.before webhooks\.incoming\.applying\.batch:_Batch\._run_together",
    r"write\.after webhooks\.incoming\.applying\.batch:_Batch\._run_together",
    r"write\.before jobs\.services\.submitting\.submission:submit_job",
    r"write\.after jobs\.services\.submitting\.submission:submit_job",
    r"request\.before jobs\.services\.submitting\.submission:.*",
    r"request\.sent jobs\.services\.submitting\.submission:.*",
    r"request\.answered jobs\.services\.submitting\.submission:.*",
    r"insist\.before jobs\.services\.submitting\.submission:submit_job",
    r"insist\.after jobs\.services\.submitting\.submission:submit_job",
    r"request\.(before|sent|answered) jobs\.services\.polling:.*",
    r"(write|insist)\.(before|after) jobs\.services\.polling:.*",
    r"write\.before jobs\.services\.relay:.*",
    r"write\.after jobs\.services\.relay:.*",
    r"publish\.(before|after) jobs\.services\.relay:.*",
    r"handler\.(begun|acted) plain",
    r"handler\.(begun|acted) transactional",
    r"insist\.before jobs\.services\.handling:.*",
    r"insist\.after jobs\.services\.handling:.*",
    r"write\.before webhooks\.outgoing\.sending:_begin",
    r"request\.(before|sent|answered) webhooks\.outgoing\.attempt:.*",
    r"write\.before webhooks\.outgoing\.sending:_record",
    r"write\.after webhooks\.outgoing\.sending:_record",
    r"store\.before jobs\.services\.artifacts\.fetching:.*",
    r"store\.after jobs\.services\.artifacts\.fetching:.*",
    r"write\.before jobs\.services\.artifacts\.fetching:.*",
    r"write\.(before|after) jobs\.services\.claims:claim_due",
    r"write\.(before|after) reconciler\.epochs:begin",
    r"write\.(before|after) reconciler\.ticking:beat",
    r"task\.done jobs\.submission\.submit",
    r"task\.done jobs\.handlers\.run",
)
#: As much of dead letters: what ails exhausts its tries when it does, so on a busy machine one database may see few.
AT_DEAD_LETTERS = (
    r"letter\.before .*",
    r"letter\.after .*",
    r"decision\.(before|after) jobs\.services\.letters\..*",
    r"redrive\.(before|after) jobs\.services\.letters\..*",
)


def test_whatever_dies_every_job_comes_home_once(tmp_path: Path) -> None:
    """Both databases at once: much of a round is waiting for the leases of the dead."""
    with ThreadPoolExecutor(len(DEATHS)) as pool:
        rounds = [pool.submit(_round, tmp_path / kind, kind, deaths) for kind, deaths in DEATHS.items()]
    journals = [each.result() for each in rounds]

    assert [_missing(INDISPENSABLE, journal) for journal in journals] == [[]] * len(DEATHS)
    assert _missing(AT_DEAD_LETTERS, *journals) == []
    assert _lacking(journals) == []


def _round(folder: Path, kind: Kind, deaths: int) -> Journal:
    """A round on one database, and its audit."""
    said: list[str] = []
    options = RunOptions(
        folder=folder, kills=deaths, seed=_SEED, databases=(kind,), per_round=deaths, rare_within_s=_RARE_WITHIN_S
    )
    assert run(options, say=said.append), said
    journal = Journal(folder / "journal.jsonl")
    assert journal.deaths(kind) >= deaths
    return journal


def _missing(wanted: Sequence[str], *journals: Journal) -> list[str]:
    """Which of these points no round has passed."""
    audits = [entry for journal in journals for entry in journal.audited() if entry["kind"] == "audit"]
    passed = [point for entry in audits for point in entry["points"]]
    return [pattern for pattern in wanted if not any(re.fullmatch(pattern, point) for point in passed)]


def _lacking(journals: Sequence[Journal]) -> list[str]:
    """Where at dead letters nobody has died: at their writes, and at what is decided on them."""
    dead = [point for kind, journal in zip(DEATHS, journals, strict=True) for point in journal.deaths_by_point(kind)]
    return [name for name, moments in AT_LETTERS.items() if not any(point.startswith(moments) for point in dead)]
