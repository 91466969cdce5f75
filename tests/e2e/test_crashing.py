"""A hundred deaths, between every commit and every network call and at any moment: nothing is lost, nothing doubled.

The long run is ``make crash-proof``; its figures are in ``docs/proof/crash.md``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.crashing.journal import Journal
from tests.crashing.run import RunOptions, run
from tests.crashing.stage import Kind

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("fleet")]

_SEED = 11
#: What must have been passed in any run, or the harness looks the wrong way. Each is a pattern of points.
INDISPENSABLE = (
    r"write\.before jobs\.services\.creation:.*",
    r"write\.after jobs\.services\.creation:.*",
    r"answer\.before POST /v1/jobs",
    r"write\.before webhooks\.incoming\.ingest:ingest",
    r"write\.after webhooks\.incoming\.ingest:ingest",
    r"answer\.before POST /webhooks/\*/\*",
    r"write\.before webhooks\.incoming\.drain:sweep_batch",
    r"write\.after webhooks\.incoming\.drain:sweep_batch",
    r"write\.before webhooks\.incoming\.batch:_Batch\._run_together",
    r"write\.after webhooks\.incoming\.batch:_Batch\._run_together",
    r"write\.before jobs\.services\.submission:submit_job",
    r"write\.after jobs\.services\.submission:submit_job",
    r"request\.before jobs\.services\.submission:.*",
    r"request\.sent jobs\.services\.submission:.*",
    r"request\.answered jobs\.services\.submission:.*",
    r"insist\.before jobs\.services\.submission:submit_job",
    r"insist\.after jobs\.services\.submission:submit_job",
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
    r"store\.before jobs\.services\.artifacts:.*",
    r"store\.after jobs\.services\.artifacts:.*",
    r"write\.before jobs\.services\.artifacts:.*",
    r"write\.(before|after) jobs\.services\.claims:claim_due",
    r"write\.(before|after) reconciler\.epochs:begin",
    r"write\.(before|after) reconciler\.ticking:beat",
    r"task\.done jobs\.submission\.submit",
    r"task\.done jobs\.handlers\.run",
)


@pytest.mark.parametrize(("kind", "deaths"), [("sqlite", 60), ("postgresql", 40)])
def test_whatever_dies_every_job_comes_home_once(tmp_path: Path, kind: Kind, deaths: int) -> None:
    said: list[str] = []
    options = RunOptions(folder=tmp_path, kills=deaths, seed=_SEED, databases=(kind,), per_round=deaths)

    held = run(options, say=said.append)

    assert held, "\n".join(said)
    journal = Journal(tmp_path / "journal.jsonl")
    assert journal.deaths(kind) >= deaths
    assert _missing(journal) == []


def _missing(journal: Journal) -> list[str]:
    passed = [point for entry in journal.audited() if entry["kind"] == "audit" for point in entry["points"]]
    return [wanted for wanted in INDISPENSABLE if not any(re.fullmatch(wanted, point) for point in passed)]
