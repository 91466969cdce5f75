"""Which names a template may use, and where: a submit comes before the run has an id, a status read knows only that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from jobs.config.faults import suggestion
from jobs.core.templates import Hole, Template

#: What each name holds; None: whatever a job's input holds.
_INNER: Mapping[str, frozenset[str] | None] = {
    "input": None,
    "job": frozenset({"id", "provider_job_id", "address"}),
    "attempt": frozenset({"token", "key"}),
    "callback_url": frozenset(),
}
#: What is known when a section's request is made, beside secrets and values.
_KNOWN_IN: Mapping[str, frozenset[str]] = {
    "submit": frozenset({"input", "job", "attempt", "callback_url"}),
    "search": frozenset({"attempt"}),
    "status": frozenset({"job"}),
    "cancel": frozenset({"job"}),
    "stream": frozenset({"job"}),
}
#: What `job` holds: our id before the run has one of its own, the run's afterwards.
_JOB = {"submit": frozenset({"id"})}
_JOB_LATER = frozenset({"provider_job_id", "address"})
_TABLES = {"secret": "secrets"}
#: Secrets that have keys of their own in an entry.
_OWN_KEYS = {"token": "api_token", "webhook": "webhook_secrets"}
_NAMES = (*_INNER, "secret", "values")


@dataclass(frozen=True, slots=True)
class Names:
    """What templates may use.

    Attributes:
        secrets: the names of the account's secrets.
        values: the names of its plain values.
        section: where the template stands; none: in every request.
    """

    secrets: frozenset[str]
    values: frozenset[str]
    section: str | None = None

    def within(self, section: str) -> Names:
        """Return the same names as they are known in a section."""
        return replace(self, section=section)

    def faults(self, template: Template) -> Iterator[str]:
        """Yield what is wrong with the names of a template, each as the end of a sentence."""
        for hole in template.holes:
            for name, inner in hole.query.roots():
                fault = self._fault(name, inner)
                if fault:
                    yield f"holds {_shown(hole)}: {fault}"

    def _fault(self, name: str | None, inner: str | None) -> str | None:
        if name is None:
            return "that is every value at once; name the one that is meant"
        if name not in _NAMES:
            return f"{name} is unknown{suggestion(name, _NAMES) or f'; known: {_listed(_NAMES)}'}"
        known = _KNOWN_IN.get(self.section or "", frozenset()) | {"secret", "values"}
        if name not in known:
            place = self.section or "what every request carries"
            return f"{name} is not known in {place}; known there: {_listed(sorted(known))}"
        return self._inner_fault(name, inner)

    def _inner_fault(self, name: str, inner: str | None) -> str | None:
        held = {"secret": self.secrets, "values": self.values}.get(name, _INNER.get(name))
        if not held and name in ("input", "callback_url"):
            return None
        if inner is None:
            return f"write {name}.<name>"
        if held is None or inner in held:
            return self._job_fault(inner) if name == "job" else None
        table = _TABLES.get(name, name)
        own = f"; set {_OWN_KEYS[inner]}" if name == "secret" and inner in _OWN_KEYS else ""
        known = f"; {table} has {_listed(sorted(held))}" if held else f"; {table} is empty"
        return f"{name}.{inner} is unknown{own or suggestion(inner, held) or known}"

    def _job_fault(self, inner: str) -> str | None:
        known = _JOB.get(self.section or "", _JOB_LATER)
        if inner in known:
            return None
        names = _listed(f"job.{each}" for each in sorted(known))
        return f"job.{inner} is not known in {self.section}; known there: {names}"


def _shown(hole: Hole) -> str:
    return "${" + hole.query.text + "}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
