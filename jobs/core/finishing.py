"""How a provider's success is taken where its files are what the job is for (``finish = "on_artifacts"``). Pure.

A success that names files is recorded and ends with them. One that names none and brings nothing else is no success:
where an event says so the status is read first, because events often say less than the provider knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jobs.core.observations import PROVIDER_SOURCES, JobError, Json, Link, Observation, Source
from jobs.core.policy import Finish
from jobs.core.states import JobState

NO_OUTPUT = JobError("no_output", "the provider says it succeeded, and returned nothing")

_FAILED_WORDS = frozenset({"error", "failed", "failure"})


def as_finished(seen: Observation, finish: Finish | None) -> Observation:
    """The observation as the provider's ``finish`` has it taken."""
    if seen.state is not JobState.SUCCEEDED or seen.source not in PROVIDER_SOURCES or seen.collected:
        return seen
    if seen.links:
        seen = replace(seen, output=without_queries(seen.output, seen.links))
    if finish is not Finish.ON_ARTIFACTS:
        return seen
    if seen.links:
        return replace(seen, collects=True)
    fault = _nested_error(seen.output) or (NO_OUTPUT if _is_empty(seen.output) else None)
    if fault is None:
        return seen
    if seen.source is Source.WEBHOOK:
        return replace(seen, state=None, output=None, must_confirm=True)
    return replace(seen, state=JobState.FAILED, output=None, error=fault)


def without_queries(output: Json, links: tuple[Link, ...]) -> Json:
    """An output whose mentions of the result files end before their query: a signed query is a credential."""
    bare = {link.url: link.url.partition("?")[0] for link in links if "?" in link.url}
    return _replaced(output, bare) if bare else output


def _replaced(value: Json, texts: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {key: _replaced(item, texts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, texts) for item in value]
    return value


def _is_empty(output: Json) -> bool:
    return output is None or output in ("", [], {})


def _nested_error(output: Json) -> JobError | None:
    """A failure in a success's clothes: ``{"status": "error", "message": …}``."""
    if not isinstance(output, Mapping) or str(output.get("status")).lower() not in _FAILED_WORDS:
        return None
    words = output.get("message") or output.get("error")
    return JobError("output_error", words[:2000] if isinstance(words, str) else "the output says that it failed")
