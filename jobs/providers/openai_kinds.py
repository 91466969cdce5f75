"""The three kinds of run at OpenAI: their routes, their words, and what each says of its end.

Grades of the facts: see :mod:`jobs.providers.openai`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobs.core.observations import JobError, Json, Link, Progress
from jobs.core.states import JobState
from jobs.providers import answers
from jobs.providers.port import Refused, Report

_JSONL = "application/jsonl"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run.

    Attributes:
        name: As an entry or an input says it.
        path: Where it is submitted; its runs stand below.
        id_prefix: What the ids of its runs begin with.
        event_prefix: What the types of its events begin with.
        states: Its status words.
        output: What a run has brought, in full or in part.
        error: Why a run failed.
        files: Ids of the run's result files.
        is_listed: Whether its runs can be listed.
        filters_metadata: Whether the list can be asked for a metadata value.
        defaults: Fields of a submit that the input may overrule.
        fixed: Fields of a submit that it may not.
    """

    name: str
    path: str
    id_prefix: str
    event_prefix: str
    states: Mapping[str, JobState]
    output: Callable[[answers.Body], Json]
    error: Callable[[answers.Body], JobError | None]
    files: Callable[[answers.Body], list[Json]]
    is_listed: bool = True
    filters_metadata: bool = False
    defaults: Mapping[str, Json] = field(default_factory=dict)
    fixed: Mapping[str, Json] = field(default_factory=dict)


def kind_of_input(inputs: Mapping[str, Json], *, only: Kind | None) -> Kind:
    """The kind of a submit.

    Args:
        inputs: Of the job.
        only: The kind this account is kept to; None: any.

    Raises:
        Refused: ``kind`` is none of ours, or not the account's. Nothing was sent.
    """
    named = inputs.get("kind")
    if only is not None and (named is None or named == only.name):
        return only
    if only is not None:
        raise Refused(f"this account is kept to kind {only.name}; input.kind says otherwise", code="invalid_input")
    if named is None:
        named = "batch" if "input_file_id" in inputs else "fine-tune" if "training_file" in inputs else "response"
    if not isinstance(named, str) or named not in KINDS:
        raise Refused(f"input.kind must be one of {', '.join(KINDS)}", code="invalid_input")
    return KINDS[named]


def kind_of_run(run: str) -> Kind | None:
    """The kind of a run, as its id says."""
    return next((kind for kind in KINDS.values() if run.startswith(kind.id_prefix)), None)


def kind_of_event(event_type: Json) -> tuple[Kind | None, str]:
    """The kind of run that an event speaks of, and its status word."""
    for kind in KINDS.values():
        if isinstance(event_type, str) and event_type.startswith(kind.event_prefix):
            return kind, event_type.removeprefix(kind.event_prefix)
    return None, ""


def report_of(kind: Kind, run: answers.Body, *, url: str) -> Report:
    """What a run says of itself.

    Args:
        kind: Of the run.
        run: As the provider shows it.
        url: The provider's address, for links to its files.
    """
    state, unknown = answers.status_of(run, "status", states=kind.states)
    if kind is BATCH and state is JobState.SUCCEEDED and _is_barren(run):
        state = JobState.FAILED
    has_ended = state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)
    files = [name for name in map(answers.id_of, kind.files(run)) if name is not None] if has_ended else []
    return Report(
        provider_job_id=answers.id_of(run.get("id")),
        state=state,
        unknown_status=unknown,
        progress=_progress(run),
        output=kind.output(run) if has_ended else None,
        error=kind.error(run) if state is JobState.FAILED else None,
        links=tuple(Link(f"{url}/files/{name}/content", content_type=_type_of(kind)) for name in files),
    )


def _type_of(kind: Kind) -> str | None:
    return _JSONL if kind is BATCH else None


def _picked(*names: str) -> Callable[[answers.Body], Json]:
    def pick(run: answers.Body) -> Json:
        return {name: run[name] for name in names if run.get(name) is not None} or None

    return pick


# Batch ---------------------------------------------------------------------------------------------------


def _counts(run: answers.Body) -> tuple[float, float, float]:
    counts = run.get("request_counts")
    named = counts if isinstance(counts, Mapping) else {}
    total, completed, failed = (answers.number_of(named.get(name)) or 0 for name in ("total", "completed", "failed"))
    return total, completed, failed


def _is_barren(run: answers.Body) -> bool:
    _total, completed, failed = _counts(run)
    return failed > 0 and completed == 0


def _progress(run: answers.Body) -> Progress | None:
    total, completed, failed = _counts(run)
    if total <= 0:
        return None
    words = f"{completed:.0f} of {total:.0f} done" + (f", {failed:.0f} failed" if failed else "")
    return Progress(min(1.0, (completed + failed) / total), words)


def _batch_error(run: answers.Body) -> JobError:
    errors = run.get("errors")
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    first = answers.error_of(listed[0]) if isinstance(listed, list) and listed else None
    if first is not None:
        return first
    if _is_barren(run):
        return JobError("no_row_succeeded", "every request of the batch failed; its error file says why")
    return _ended_as(run)


# Response, fine-tuning job -------------------------------------------------------------------------------


def _response_error(run: answers.Body) -> JobError:
    details = run.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if isinstance(reason, str) and reason:
        return JobError("incomplete", f"the response is incomplete: {reason[:200]}")
    return answers.error_of(run.get("error")) or _ended_as(run)


def _tuning_error(run: answers.Body) -> JobError:
    return answers.error_of(run.get("error")) or _ended_as(run)


def _ended_as(run: answers.Body) -> JobError:
    word = str(run.get("status"))[:100]
    return JobError(word, f"the provider ended it as {word}")


def _list_of(value: object) -> list[Json]:
    return value if isinstance(value, list) else []


# The table -----------------------------------------------------------------------------------------------

BATCH = Kind(
    name="batch",
    path="/batches",
    id_prefix="batch_",
    event_prefix="batch.",
    states={
        "validating": JobState.PENDING,
        "in_progress": JobState.RUNNING,
        "finalizing": JobState.RUNNING,
        "cancelling": JobState.RUNNING,
        "completed": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "expired": JobState.FAILED,
        "cancelled": JobState.CANCELED,
    },
    output=_picked("output_file_id", "error_file_id", "request_counts", "usage"),
    error=_batch_error,
    files=lambda run: [run.get("output_file_id"), run.get("error_file_id")],
    defaults={"completion_window": "24h"},
)

RESPONSE = Kind(
    name="response",
    path="/responses",
    id_prefix="resp_",
    event_prefix="response.",
    states={
        "queued": JobState.PENDING,
        "in_progress": JobState.RUNNING,
        "completed": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "incomplete": JobState.FAILED,
        "cancelled": JobState.CANCELED,
    },
    output=_picked("output", "usage", "model"),
    error=_response_error,
    files=lambda _run: [],
    is_listed=False,
    # Only a stored background response can be read again, so the input has no say in these.
    fixed={"background": True, "store": True},
)

FINE_TUNE = Kind(
    name="fine-tune",
    path="/fine_tuning/jobs",
    id_prefix="ftjob-",
    event_prefix="fine_tuning.job.",
    states={
        "validating_files": JobState.PENDING,
        "queued": JobState.PENDING,
        "running": JobState.RUNNING,
        "succeeded": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "cancelled": JobState.CANCELED,
    },
    output=_picked("fine_tuned_model", "trained_tokens", "result_files"),
    error=_tuning_error,
    files=lambda run: _list_of(run.get("result_files")),
    filters_metadata=True,
)

#: Every kind by its name.
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (BATCH, RESPONSE, FINE_TUNE)}
