"""What the job routes take: bodies and query strings, checked field by field."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self, TypeAlias

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from jobs.api.fields import Body, Instant, PageQuery, Query, Reason, RunId, ShortText, Span
from jobs.core.observations import ReviewReason
from jobs.core.states import JobState
from jobs.services.creation import NewJob
from jobs.services.reading import JobFilter
from jobs.services.resolving import Action

_METADATA = "metadata."
_METADATA_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")

MetadataKey: TypeAlias = Annotated[str, Field(pattern=f"^{_METADATA_KEY.pattern}$")]


class NewJobBody(Body):
    """A job to bring home."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"provider": "renders", "input": {"model": "video", "prompt": "a lighthouse in fog"}}]
        }
    )

    provider: Annotated[str, Field(min_length=1, max_length=100, description="Name of a provider entry")]
    adopt: Annotated[RunId, Field(description="Take charge of this run at the provider; nothing is submitted")] | (
        None
    ) = None
    input: Annotated[
        dict[str, Any] | None,
        Field(validate_default=True, description="What the provider is asked to do; required unless `adopt` is given"),
    ] = None
    expected: Annotated[Span, Field(description="Usual duration; default: the provider's")] | None = None
    deadline: Annotated[Span, Field(description="When to stop waiting; default: the provider's")] | None = None
    metadata: Annotated[
        dict[MetadataKey, Any], Field(max_length=50, description="Your own words; the list filters by them")
    ] = Field(default_factory=dict)
    callback_url: Annotated[str, Field(max_length=2000, description="Told once the job has ended")] | None = None

    @field_validator("input")
    @classmethod
    def _need_input(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any]:
        if value is None and info.data.get("adopt", "refused") is None:
            raise ValueError("must be a JSON object")
        return value or {}

    def to_new_job(self) -> NewJob:
        """The same, as the service takes it."""
        return NewJob(**{name: getattr(self, name) for name in type(self).model_fields})


class JobsQuery(PageQuery):
    """Which jobs; also `metadata.<key>=<value>`, for any number of keys."""

    model_config = ConfigDict(extra="allow")

    state: JobState | None = None
    provider: ShortText | None = None
    review: Annotated[str, Field(description="`true`, `false`, or a reason such as `overdue`")] | None = None
    created_after: Instant | None = None

    @field_validator("review")
    @classmethod
    def _known_review(cls, value: str | None) -> str | None:
        known = ("true", "false", *ReviewReason)
        if value is not None and value not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _known_names(self) -> Self:
        for name in self.model_extra or {}:
            key = name.removeprefix(_METADATA)
            if key == name or not _METADATA_KEY.fullmatch(key):
                raise ValueError(f"{name[:80]!r} is no filter of this list")
        return self

    def to_filter(self) -> JobFilter:
        """The same, as the service takes it."""
        by_reason = self.review in tuple(ReviewReason)
        return JobFilter(
            state=self.state,
            provider=self.provider,
            review=None if self.review is None or by_reason else self.review == "true",
            review_reason=self.review if by_reason else None,
            created_after=self.created_after,
            metadata={name.removeprefix(_METADATA): str(value) for name, value in (self.model_extra or {}).items()},
        )


class WaitQuery(Query):
    """A long poll."""

    wait: Annotated[int, Field(ge=0, description="Seconds to wait for a change, at most 60")] = 0
    since: Annotated[int, Field(ge=0, description="The version you have; default: the one read now")] | None = None


class ResolveBody(Body):
    """What a person decided about a job that waits for one."""

    action: Action
    reason: Reason
    state: Annotated[JobState, Field(description="For `settle`: where the job is")] | None = None
    provider_job_id: Annotated[RunId, Field(description="For `settle`: the run, where you found it")] | None = None
