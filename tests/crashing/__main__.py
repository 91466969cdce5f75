"""``python -m tests.crashing``: see the package."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

from tests.crashing.journal import Journal
from tests.crashing.report import write_report
from tests.crashing.run import RunOptions, run
from tests.crashing.stage import Kind

_DEFAULT_FOLDER = Path(tempfile.gettempdir()) / "homing-crash-proof"


def main() -> int:
    """Runs it; 0 only if every audit held."""
    given = _parser().parse_args()
    folder: Path = given.folder.absolute()
    if (folder / "journal.jsonl").exists() and not given.resume:
        print(f"{folder} holds a run already: --resume goes on with it, --folder names another", file=sys.stderr)
        return 2
    databases = get_args(Kind) if given.database == "both" else (given.database,)
    share = -(-given.kills // len(databases))
    options = RunOptions(folder=folder, kills=share, seed=given.seed, databases=databases, per_round=given.per_round)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began_s = time.monotonic()
    if not run(options, say=lambda text: _say(began_s, text)):
        return 1
    if given.report:
        journal = Journal(folder / "journal.jsonl")
        command = f"make crash-proof ARGS='--kills {given.kills} --seed {given.seed} --database {given.database}'"
        page = write_report(journal.audited(), journal.starts(), command=command)
        given.report.parent.mkdir(parents=True, exist_ok=True)
        given.report.write_text(page, encoding="utf-8")
        _say(began_s, f"written: {given.report}")
    return 0


def _say(began_s: float, text: str) -> None:
    print(f"{time.monotonic() - began_s:7.1f} s  {text}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.crashing", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="processes that are to die, of all databases together")
    parser.add_argument("--per-round", type=int, default=50, help="of them between two audits")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=(*get_args(Kind), "both"), default="both")
    parser.add_argument("--folder", type=Path, default=_DEFAULT_FOLDER, help="journal, databases, logs, evidence")
    parser.add_argument("--report", type=Path, help="the page to write once the run is complete and clean")
    parser.add_argument("--resume", action="store_true", help="go on with the run of that folder")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
