"""A hundred deaths, between every commit and every network call and at any moment: nothing is lost, nothing doubled.

The long run is ``make crash-proof``; its figures are in ``docs/proof/crash.md``.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crashing.journal import Journal
from tests.crashing.rounds import AT_LETTERS
from tests.crashing.run import RunOptions, run
from tests.crashing.stage import Kind

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("fleet")]

_SEED = 11
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
    r"letter\.before jobs\.services\.submitting\.submission:submit_job",
    r"letter\.before jobs\.services\.canceling:cancel_run",
    r"letter\.before jobs\.services\.(polling:poll_job|work:.*)",
    r"letter\.before jobs\.services\.artifacts\.fetching:.*",
    r"letter\.before jobs\.services\.relay:.*",
    r"letter\.before jobs\.services\.handling:.*",
    r"letter\.before webhooks\.incoming\.applying\.(batch|drain):.*",
    r"letter\.before webhooks\.outgoing\.sending:.*",
    r"letter\.after .*",
    r"decision\.(before|after) jobs\.services\.letters\.dead_letters:redrive",
    r"decision\.(before|after) jobs\.services\.letters\.redriving:_redrive_next",
    r"redrive\.(before|after) jobs\.services\.letters\.bulk_redrives:_begin",
    r"redrive\.(before|after) jobs\.services\.letters\.redriving:.*",
)


def test_whatever_dies_every_job_comes_home_once(tmp_path: Path) -> None:
    """Both databases at once: much of a round is waiting for the leases of the dead."""
    with ThreadPoolExecutor(len(DEATHS)) as pool:
        judged = [pool.submit(_judge, tmp_path / kind, kind, deaths) for kind, deaths in DEATHS.items()]

    assert [each.result() for each in judged] == [[]] * len(DEATHS)


def _judge(folder: Path, kind: Kind, deaths: int) -> list[str]:
    """A round on one database; what was wrong with it."""
    said: list[str] = []
    options = RunOptions(folder=folder, kills=deaths, seed=_SEED, databases=(kind,), per_round=deaths)
    if not run(options, say=said.append):
        return said
    journal = Journal(folder / "journal.jsonl")
    too_few = [] if journal.deaths(kind) >= deaths else [f"{kind}: only {journal.deaths(kind)} died"]
    return [*too_few, *_missing(journal), *_lacking(journal, kind)]


def _missing(journal: Journal) -> list[str]:
    passed = [point for entry in journal.audited() if entry["kind"] == "audit" for point in entry["points"]]
    return [wanted for wanted in INDISPENSABLE if not any(re.fullmatch(wanted, point) for point in passed)]


def _lacking(journal: Journal, kind: Kind) -> list[str]:
    """Where at dead letters nobody has died: at their writes, and at what is decided on them."""
    dead = journal.deaths_by_point(kind)
    return [name for name, moments in AT_LETTERS.items() if not any(point.startswith(moments) for point in dead)]
