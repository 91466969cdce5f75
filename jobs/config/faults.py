"""Faults of a configuration as sentences: where, what, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from jobs.core.suggestions import did_you_mean

#: Parts of the outside contract that come with a later release. Silence about them would be a lie.
LATER_VARIABLES: tuple[str, ...] = ()
LATER_TABLES = ("pipelines", "schedules")
LATER_PROVIDER_KEYS: tuple[str, ...] = ()

_NOT_YET = "is not in this release; remove it"


def name_faults(where: str, names: Iterable[str], *, known: Iterable[str], later: Iterable[str] = ()) -> Iterator[str]:
    """Yield a fault for each name that is unknown, or known for later.

    Args:
        where: what stands before the name in the message, its dot included.
        names: as written.
        known: the names of this release.
        later: the names that mean something, but not yet.
    """
    known, later = tuple(known), tuple(later)
    for name in names:
        if name in later:
            yield f"{where}{name} {_NOT_YET}"
        elif name not in known:
            yield f"{where}{name} is unknown{suggestion(name, known)}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?`, or nothing where nothing is like the name."""
    meant = did_you_mean(name, known)
    return f"; did you mean {meant}?" if meant else ""


def validation_faults(where: str, error: ValidationError) -> Iterator[str]:
    """Yield what pydantic found, one sentence each, without the values.

    Args:
        where: what stands before the field's path, its dot included.
    """
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        path = ".".join(str(part) for part in fault["loc"])
        place = f"{where}{path}".removesuffix(".")
        yield f"{place}: {fault['msg'].removeprefix('Value error, ')}"
