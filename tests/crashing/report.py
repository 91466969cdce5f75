"""``docs/proof/crash.md``: what a complete run has done, and what was found. Pure, from the journal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from tests.crashing.auditor import CHECKS
from tests.crashing.journal import Entry, deaths_of

_FIGURES = {
    "jobs": "jobs submitted, and home",
    "billed": "provider runs billed",
    "submits": "submits the provider received",
    "webhooks": "webhooks acknowledged, each a row",
    "events": "events, without a gap",
    "transactional_effects": "effects of the transactional handler",
    "plain_events": "events the plain handler was called for",
    "plain_calls": "its calls",
    "deliveries": "deliveries to endpoints, all made",
    "delivery_calls": "calls the endpoints got",
    "files": "result files stored",
}
#: Deaths that chance would seldom bring about.
_RARE = {
    "processes killed at the write of a letter": ("letter.",),
    "killed at the decision on one": ("decision.",),
    "killed at a step of a redrive of many": ("redrive.",),
}
_INTRO = """\
# Under fire

A whole fleet works through a steady load while its processes are killed: at named points between every commit and
every network call, and at any moment; while its Redis is killed, frozen, emptied and cut off, its PostgreSQL killed,
shut down, refusing, slow and half open, its beat doubled and its clocks wrong; and while its provider misbehaves
(`brutal`).
After every round nothing new is sent, everything must come home, and an auditor compares three witnesses: the
provider's ledger, the sinks that count every effect, and the database. One broken promise ends the run.

Points are not listed by hand. Whatever leaves a process leaves through one of a few doors, and each passage of one is
a point, named by the door and by the service behind it ([decision 16](../decisions/0016-crash-points-are-doors.md)).
"""


def write_report(entries: Sequence[Entry], starts: Sequence[Entry], *, command: str) -> str:
    """The page.

    Args:
        entries: Of the journal, audited.
        starts: Its starts, each with its commit and machine.
        command: That makes the run again.
    """
    databases = list(dict.fromkeys(entry["database"] for entry in entries))
    return "\n".join(
        [
            _INTRO,
            *_made_by(entries, starts, command),
            *_verdict(entries, databases),
            *_deaths(entries, databases),
            *_letters(entries, databases),
            *_troubles(entries, databases),
            *_recoveries(entries),
            *_points(entries),
        ]
    )


def _made_by(entries: Sequence[Entry], starts: Sequence[Entry], command: str) -> Iterator[str]:
    commits = ", ".join(f"`{commit}`" for commit in dict.fromkeys(start["commit"] for start in starts))
    seconds = sum(entry["took_s"] for entry in entries if entry["kind"] == "audit")
    yield f"`{command}` · commit {commits} · {starts[-1]['at']} · {seconds / 60:.0f} minutes of rounds\n"
    yield from (f"- {name}: {text}" for name, text in starts[-1]["machine"].items())
    yield ""


def _verdict(entries: Sequence[Entry], databases: Sequence[str]) -> Iterator[str]:
    died = sum(map(deaths_of, entries))
    yield f"## {died:,} processes died: 0 jobs lost, 0 billed twice, 0 stuck\n"
    sums = {database: _sums(entries, database) for database in databases}
    rows = [("processes killed", *(sum(map(deaths_of, _of(entries, database))) for database in databases))]
    rows += [("rounds, each with its audit", *(len(_of(entries, database, "audit")) for database in databases))]
    rows += [(words, *(sums[database][name] for database in databases)) for name, words in _FIGURES.items()]
    yield from _table(("", *databases), rows)
    yield (
        "\nA job that was canceled before anything was sent has no run; every other job has one.\n\n"
        "Found 0 of each, after every round: " + ", ".join(CHECKS) + ".\n"
    )


def _deaths(entries: Sequence[Entry], databases: Sequence[str]) -> Iterator[str]:
    yield "## Who died\n"
    counted: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for entry in entries:
        if entry["kind"] == "death":
            counted[_victim(entry)][entry["database"]] += 1
    rows = [(*victim, *(counts[name] for name in databases)) for victim, counts in sorted(counted.items())]
    yield from _table(("process", "killed", *databases), rows)
    yield ""


def _letters(entries: Sequence[Entry], databases: Sequence[str]) -> Iterator[str]:
    yield "## Dead letters\n"
    yield (
        "Some of the work is in vain until it is healed: submits and cancels the provider declines, an answer its "
        "adapter breaks on, a file that is not there, an event that cannot be relayed, handlers that fail (the "
        "transactional one after its effect), a callback that is refused, webhooks that break whoever applies "
        "them or that nobody can read. It exhausts its tries, with retry plans shortened to seconds. Then a "
        "person, while processes go on dying, heals it and redrives its letters, each asked for twice, and of "
        "half of the kinds all at once, some both ways at the same time. Until then each such piece has one open "
        "letter, at every moment; no letter is lost or told of twice, what was done before the redrive is not "
        "done again, and everything comes home. Work whose starts were lost three times becomes a dead letter "
        "too, because it may be what kills its worker; here it was the harness.\n"
    )
    last = _last_audits(entries)
    names = dict.fromkeys(name for entry in last for name in entry.get("letters", ()))
    rows = [
        (name, *(sum(entry.get("letters", {}).get(name, 0) for entry in _of(last, base)) for base in databases))
        for name in names
    ]
    rows += [(words, *(_died_at(_of(entries, base), doors) for base in databases)) for words, doors in _RARE.items()]
    yield from _table(("dead letters", *databases), rows)
    yield ""


def _died_at(entries: Sequence[Entry], doors: tuple[str, ...]) -> int:
    return sum(1 for entry in entries if entry["kind"] == "death" and (entry["point"] or "").startswith(doors))


def _victim(entry: Entry) -> tuple[str, str]:
    if entry["point"] is None:
        return entry["name"], "at any moment"
    return entry["name"], "at a point, its main process too" if entry["with_parent"] else "at a point"


def _troubles(entries: Sequence[Entry], databases: Sequence[str]) -> Iterator[str]:
    yield "## What else was done\n"
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        if entry["kind"] == "trouble":
            counted[entry["name"]][entry["database"]] += 1
    yield from _table(
        ("trouble", *databases),
        [(name, *(counts[database] for database in databases)) for name, counts in sorted(counted.items())],
    )
    yield ""


def _recoveries(entries: Sequence[Entry]) -> Iterator[str]:
    yield "## Until there was progress again\n"
    yield (
        "From a death, or from the end of a trouble, until a job was home that had been submitted after it: the job's"
        " own work, the provider's faults and every further death on its way included.\n"
    )
    spans: defaultdict[str, list[float]] = defaultdict(list)
    for entry in entries:
        for name, seconds in entry.get("recoveries", ()):
            spans[name].append(seconds)
    rows = [(name, len(found), f"{median(found):.1f} s", f"{max(found):.1f} s") for name, found in spans.items()]
    yield from _table(("after", "times", "median", "slowest"), sorted(rows))
    yield ""


def _points(entries: Sequence[Entry]) -> Iterator[str]:
    deaths = Counter(entry["point"] for entry in entries if entry["kind"] == "death" and entry["point"])
    known = {point for entry in _audits(entries) for point in entry["points"]} | set(deaths)
    doors = Counter(point.split(" ")[0] for point in known)
    at_doors = Counter(point.split(" ")[0] for point in deaths.elements())
    yield f"## The points: {len(known)} found, {len(deaths)} of them with a death\n"
    yield from _table(
        ("door", "points", "deaths"), [(f"`{door}`", count, at_doors[door]) for door, count in sorted(doors.items())]
    )
    yield "\n<details><summary>Each point and its deaths</summary>\n"
    yield from _table(("point", "deaths"), [(f"`{point}`", deaths[point]) for point in sorted(known)])
    yield "\n</details>\n"


def _of(entries: Sequence[Entry], database: str, kind: str | None = None) -> list[Entry]:
    return [entry for entry in entries if entry["database"] == database and kind in (None, entry["kind"])]


def _audits(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry["kind"] == "audit"]


def _sums(entries: Sequence[Entry], database: str) -> Mapping[str, int]:
    """A fleet's figures grow from audit to audit; its last one has them all."""
    last = _of(_last_audits(entries), database)
    return {name: sum(entry[name] for entry in last) for name in _FIGURES}


def _last_audits(entries: Sequence[Entry]) -> list[Entry]:
    """Of each fleet."""
    return list({(entry["database"], entry["fleet"]): entry for entry in _audits(entries)}.values())


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('---' if index == 0 else '---:' for index in range(len(heads)))} |"
    for row in rows:
        yield f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in row)} |"
