"""What the product imports is what it declares and locks."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

_TOP = Path(__file__).parents[2]
_OURS = ("homing", "jobs", "webhooks", "reconciler")


def _imported() -> set[str]:
    names = set()
    for file in (file for package in _OURS for file in (_TOP / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - set(_OURS) - set(sys.stdlib_module_names)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared() -> set[str]:
    project = tomllib.loads((_TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in project["dependencies"])
    return {_canonical(name[0]) for name in names if name}


def test_every_import_is_a_declared_dependency() -> None:
    # These come with what they are part of, at the versions that one asks for; stubs are for types only.
    with_others = {"kombu": "celery", "billiard": "celery", "werkzeug": "flask", "_typeshed": "flask"}
    with_others |= {"click": "typer", "urllib3": "requests"}
    known = packages_distributions()

    undeclared = {
        name
        for name in _imported()
        if not {_canonical(owner) for owner in known.get(name, [])} & _declared()
        and with_others.get(name) not in _declared()
    }

    assert undeclared == set()


def test_every_dependency_is_locked_with_hashes() -> None:
    lock = (_TOP / "requirements.lock").read_text(encoding="utf-8")
    locked = {_canonical(name) for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==", lock, re.MULTILINE)}

    assert _declared() <= locked
    assert lock.count("==") <= lock.count("--hash=")


def test_the_locks_name_no_index_and_no_machine() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (_TOP / name).read_text(encoding="utf-8")

        assert not re.search(r"https?://|file:|--index-url|--find-links| @ ", text)


def test_both_locks_agree() -> None:
    pins = [
        dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (_TOP / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    ]

    assert pins[0].items() <= pins[1].items()


def test_what_comes_along_is_no_link_which_would_lead_nowhere_in_an_image() -> None:
    links = [str(path) for package in _OURS for path in (_TOP / package).rglob("*") if path.is_symlink()]

    assert links == []
