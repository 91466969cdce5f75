"""From a provider's report to an observation: the same for a submit answer, a poll, a cancel and a webhook."""

from __future__ import annotations

from datetime import datetime

from jobs.core.observations import Evidence, JobError, Observation, Review, ReviewReason, Source
from jobs.core.states import JobState
from jobs.providers.port import Report

_NO_REASON = JobError("provider_error", "the provider named no reason")
_NO_EVIDENCE = Evidence()


def observation_of(
    report: Report, *, source: Source, at: datetime, attempt: int, evidence: Evidence = _NO_EVIDENCE
) -> Observation:
    """What a report says, as an observation.

    A status word we do not know claims no state: it asks for a person, with the word as it came.

    Args:
        report: What the provider said.
        source: How we heard it.
        at: When, by the database's clock.
        attempt: The attempt it speaks of.
        evidence: Where it can be looked up.
    """
    unknown = report.unknown_status
    return Observation(
        source=source,
        at=at,
        attempt=attempt,
        state=report.state,
        provider_job_id=report.provider_job_id,
        progress=report.progress,
        output=report.output,
        error=(report.error or _NO_REASON) if report.state is JobState.FAILED else report.error,
        cost=report.cost,
        links=report.links,
        review=None if unknown is None else Review(ReviewReason.UNKNOWN_STATUS, unknown),
        evidence=evidence,
    )
