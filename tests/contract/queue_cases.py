"""Replicate and OpenAI, asked and answering in their own words: more rows of the table in `vendor_cases`."""

from __future__ import annotations

from jobs.core.states import JobState
from tests.contract.vendor_cases import CALLBACK, TOKEN, Case

P, R, S, F, C = JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED

_BEARER = {"authorization": "Bearer id:s3cret"}
_OURS = {"homing_token": TOKEN}
_NO_SECRET: dict[str, object] = {"webhook_secrets": []}

REPLICATE = Case(
    adapter="replicate",
    input={"model": "black-forest-labs/flux-dev", "input": {"prompt": "a pigeon"}},
    submitted=(
        "/v1/models/black-forest-labs/flux-dev/predictions",
        {"input": {"prompt": "a pigeon"}, "webhook": CALLBACK, "webhook_events_filter": ["start", "completed"]},
        _BEARER,
    ),
    accepted={"id": "p1", "status": "starting", "output": None, "urls": {"get": "https://evil.example/p1"}},
    run="p1",
    read="/v1/predictions/p1",
    shows=lambda word, **more: {"id": "p1", "status": word, **more},
    words={"starting": P, "processing": R, "succeeded": S, "failed": F, "canceled": C, "aborted": C},
    succeeded=(
        {"output": {"a": ["https://cdn.example/1.png"], "b": "https://cdn.example/2.png", "text": "no link"}},
        ("https://cdn.example/1.png", "https://cdn.example/2.png"),
    ),
    failed=({"error": "NSFW content"}, ("provider_error", "NSFW content")),
    entry=_NO_SECRET,
    deletes=False,
)

BATCH = Case(
    adapter="openai",
    input={"input_file_id": "file-1", "endpoint": "/v1/responses", "metadata": {"team": "a"}},
    submitted=(
        "/batches",
        {
            "input_file_id": "file-1",
            "endpoint": "/v1/responses",
            "completion_window": "24h",
            "metadata": {"team": "a", **_OURS},
        },
        _BEARER,
    ),
    accepted={"id": "batch_1", "status": "validating", "object": "batch"},
    run="batch_1",
    read="/batches/batch_1",
    shows=lambda word, **more: {"id": "batch_1", "status": word, "object": "batch", **more},
    words={
        "validating": P, "in_progress": R, "finalizing": R, "cancelling": R,
        "completed": S, "failed": F, "expired": F, "cancelled": C,
    },
    succeeded=(
        {
            "output_file_id": "file-2",
            "error_file_id": "file-3",
            "request_counts": {"total": 2, "completed": 1, "failed": 1},
        },
        ("{url}/files/file-2/content", "{url}/files/file-3/content"),
    ),
    failed=(
        {"errors": {"data": [{"code": "invalid_json_line", "message": "line 1 is not JSON"}]}},
        ("invalid_json_line", "line 1 is not JSON"),
    ),
    entry=_NO_SECRET,
    deletes=False,
)  # fmt: skip

RESPONSE = Case(
    adapter="openai",
    input={"model": "gpt-5", "input": "a pigeon", "store": False},
    submitted=(
        "/responses",
        {"model": "gpt-5", "input": "a pigeon", "background": True, "store": True, "metadata": _OURS},
        _BEARER,
    ),
    accepted={"id": "resp_1", "status": "queued", "object": "response"},
    run="resp_1",
    read="/responses/resp_1",
    shows=lambda word, **more: {"id": "resp_1", "status": word, "object": "response", **more},
    words={"queued": P, "in_progress": R, "completed": S, "failed": F, "incomplete": F, "cancelled": C},
    succeeded=({"output": [{"type": "message"}]}, ()),
    failed=({"error": {"code": "server_error", "message": "sorry"}}, ("server_error", "sorry")),
    entry={"kind": "response", **_NO_SECRET},
    deletes=False,
)

TUNING = Case(
    adapter="openai",
    input={"model": "gpt-4.1-mini", "training_file": "file-1"},
    submitted=(
        "/fine_tuning/jobs",
        {"model": "gpt-4.1-mini", "training_file": "file-1", "metadata": _OURS},
        _BEARER,
    ),
    accepted={"id": "ftjob-1", "status": "validating_files", "object": "fine_tuning.job"},
    run="ftjob-1",
    read="/fine_tuning/jobs/ftjob-1",
    shows=lambda word, **more: {"id": "ftjob-1", "status": word, "object": "fine_tuning.job", **more},
    words={"validating_files": P, "queued": P, "running": R, "succeeded": S, "failed": F, "cancelled": C},
    succeeded=(
        {"fine_tuned_model": "ft:1", "result_files": ["file-9"]},
        ("{url}/files/file-9/content",),
    ),
    failed=(
        {"error": {"code": "invalid_file", "message": "too few rows", "param": None}},
        ("invalid_file", "too few rows"),
    ),
    entry=_NO_SECRET,
    deletes=False,
)

QUEUES = (REPLICATE, BATCH, RESPONSE, TUNING)
