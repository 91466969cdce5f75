"""What the pages say is what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from jobs.core.states import TERMINAL, TRANSITIONS

ROOT = Path(__file__).parents[2]


def documented_invariants() -> set[str]:
    return set(re.findall(r"^\| (I\d+) \|", (ROOT / "docs/invariants.md").read_text(), flags=re.MULTILINE))


def tested_invariants() -> set[str]:
    pattern = re.compile(r'pytest\.mark\.invariant\("(I\d+)"\)')
    return {found for path in (ROOT / "tests").rglob("test_*.py") for found in pattern.findall(path.read_text())}


def test_each_documented_invariant_has_a_test_that_carries_its_id() -> None:
    assert documented_invariants() - tested_invariants() == set()


def test_no_test_claims_an_invariant_that_is_not_documented() -> None:
    assert tested_invariants() - documented_invariants() == set()


def test_the_diagram_of_the_lifecycle_is_the_table_of_states() -> None:
    page = (ROOT / "docs/lifecycle.md").read_text()
    drawn = set(re.findall(r"^    (\S+) --> (\S+)$", page, flags=re.MULTILINE))

    steps = {(str(before), str(after)) for before, ends in TRANSITIONS.items() for after in ends}
    assert drawn == steps | {("[*]", "pending")} | {(str(end), "[*]") for end in TERMINAL}


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for package in ("homing", "jobs", "webhooks", "reconciler")
        for path in (ROOT / package).rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]

    assert silent == []
