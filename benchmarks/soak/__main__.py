"""``python -m benchmarks.soak [--hours H] …``: runs, samples, judges; exit 1 where something grew or was lost."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.machine import describe
from benchmarks.soak.books import Books, read_books
from benchmarks.soak.curves import picture
from benchmarks.soak.kills import Killer
from benchmarks.soak.look import Looker, Sample
from benchmarks.soak.options import SoakOptions, read_options
from benchmarks.soak.place import prepared
from benchmarks.soak.report import page
from benchmarks.soak.traffic import Traffic
from benchmarks.soak.verdict import judge

#: The slowest fault takes minutes to heal.
_PATIENCE_S = 900.0
#: These wait for a person, or for a receiver's next try in minutes or hours; no job's end waits for them.
_NOT_AWAITED = ("dead letters", "reviews", "deliveries")
#: Of the run, from its beginning: what is replaced could not be seen to grow in the half that is judged.
_KILLED_SHARE = 0.45


def main() -> int:
    """The command."""
    options = read_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    if any(options.folder.iterdir()):
        print(f"{options.folder} is not empty", file=sys.stderr)
        return 2
    facts = describe(options.folder)
    with prepared(options) as place:
        traffic, looker = Traffic(options, place), Looker(options, place)
        killer = Killer(place.fleet, every_s=options.kill_every_s, for_s=options.seconds * _KILLED_SHARE)
        traffic.start()
        killer.start()
        samples = [*_watch(options, looker)]
        killer.stop()
        traffic.stop()
        last = _wait_for_the_last(options, looker)
        books = read_books(place, traffic.sent)
        facts |= {"killed": str(dict(killer.killed)), "receiver": str(dict(place.receiver.answers))}
        return _conclude(options, samples, last, books, facts=facts, traffic=traffic)


def _watch(options: SoakOptions, looker: Looker) -> Iterator[Sample]:
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        time.sleep(min(options.sample_s, max(0.0, end - time.monotonic())))
        yield _noted(options, looker, under_load=True)


def _noted(options: SoakOptions, looker: Looker, *, under_load: bool) -> Sample:
    sample = {"under_load": under_load, **looker.look()}
    with options.samples.open("a", encoding="utf-8") as file:
        file.write(json.dumps(sample) + "\n")
    waiting = ", ".join(f"{name} {count}" for name, count in sample["waiting"].items() if count)
    print(f"{sample['at_s']:7.0f} s  {sample['rows']['jobs']:,} jobs  waiting: {waiting or 'nothing'}", flush=True)
    return sample


def _wait_for_the_last(options: SoakOptions, looker: Looker) -> Sample:
    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        sample = _noted(options, looker, under_load=False)
        waits = {name: n for name, n in sample["waiting"].items() if n and name not in _NOT_AWAITED}
        if not waits or time.monotonic() > give_up_at:
            return sample
        time.sleep(10)


def _conclude(
    options: SoakOptions,
    samples: list[Sample],
    last: Sample,
    books: Books,
    *,
    facts: dict[str, str],
    traffic: Traffic,
) -> int:
    lines = judge(samples)
    sent: dict[str, Any] = {"facts": facts, "sent": traffic.sent.counts, "errors": traffic.sent.errors, "last": last}
    text = page(options, lines, books, **sent)
    (options.folder / "soak.md").write_text(text, encoding="utf-8")
    (options.folder / "soak.svg").write_text(picture(samples), encoding="utf-8")
    print(text)
    grown = [line.name for line in lines if not line.is_flat]
    left = {name: count for name, count in last["waiting"].items() if count}
    print(f"grows: {', '.join(grown) or 'nothing'}; left over: {left or 'nothing'}; books hold: {books.holds}")
    return 0 if not grown and books.holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
