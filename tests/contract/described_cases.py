"""What the vendors of our presets are asked and say, in their own words."""

from __future__ import annotations

from collections.abc import Callable

from jobs.core.states import JobState
from tests.contract.vendor_cases import CALLBACK, KEY, TOKEN, Case
from tests.contract.vendor_server import WEBHOOK_SECRET

P, R, S, F, C = JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED
UNSIGNED: dict[str, object] = {"webhook_secrets": []}


def _shows(word_field: str, **named: object) -> Callable[..., object]:
    return lambda word, **more: {**named, word_field: word, **more}


BFL = Case(
    adapter="bfl",
    input={"model": "flux-2-pro", "prompt": "a pigeon", "seed": 7},
    submitted=(
        "/v1/flux-2-pro",
        {"prompt": "a pigeon", "seed": 7, "webhook_url": CALLBACK, "webhook_secret": WEBHOOK_SECRET},
        {"x-key": "id:s3cret"},
    ),
    accepted={"id": "b-1", "polling_url": "https://api.bfl.ai/v1/get_result?id=b-1"},
    run="b-1",
    read="/v1/get_result?id=b-1",
    shows=_shows("status", id="b-1"),
    words={
        "Pending": P,
        "Reasoning": R,
        "Generating": R,
        "Ready": S,
        "Error": F,
        "Failed": F,
        "Request Moderated": F,
        "Content Moderated": F,
    },
    succeeded=({"result": {"sample": "https://cdn.example/a.jpeg?sas=1"}}, ("https://cdn.example/a.jpeg?sas=1",)),
    failed=({"error": "content_policy", "message": "it shows a hawk"}, ("provider_error", "it shows a hawk")),
    deletes=False,
)

LUMA = Case(
    adapter="luma",
    input={"kind": "image", "model": "photon-1", "prompt": "a pigeon"},
    submitted=(
        "/generations/image",
        {"model": "photon-1", "prompt": "a pigeon", "callback_url": CALLBACK},
        {"authorization": "Bearer id:s3cret"},
    ),
    accepted={"id": "g-1", "state": "queued", "assets": None},
    run="g-1",
    read="/generations/g-1",
    shows=_shows("state", id="g-1", model="photon-1", failure_reason=None),
    words={"queued": P, "dreaming": R, "completed": S, "failed": F},
    succeeded=({"assets": {"video": None, "image": "https://cdn.example/a.png"}}, ("https://cdn.example/a.png",)),
    failed=({"failure_reason": "moderation"}, ("provider_error", "moderation")),
    entry=UNSIGNED,
)

HIGGSFIELD = Case(
    adapter="higgsfield",
    input={"model": "higgsfield-ai/soul/standard", "prompt": "a pigeon"},
    submitted=(
        "/higgsfield-ai/soul/standard?hf_webhook=https%3A%2F%2Fme.example%2Fwebhooks%2Fp%2Ftoken-1",
        {"prompt": "a pigeon"},
        {"authorization": "Key id:s3cret", "idempotency-key": KEY},
    ),
    accepted={"request_id": "r-1", "status": "queued", "status_url": "https://elsewhere.example/r-1"},
    run="r-1",
    read="/requests/r-1/status",
    shows=_shows("status", request_id="r-1"),
    words={"queued": P, "in_progress": R, "completed": S, "failed": F, "nsfw": F, "canceled": C},
    succeeded=(
        {"images": [{"url": "https://cdn.example/1.png"}], "video": {"url": "https://cdn.example/2.mp4"}},
        ("https://cdn.example/1.png", "https://cdn.example/2.mp4"),
    ),
    failed=({"error": "out of credits"}, ("provider_error", "out of credits")),
    entry=UNSIGNED,
    deletes=False,
)

TOGETHER = Case(
    adapter="together",
    input={"model": "m", "training_file": "file-1"},
    submitted=(
        "/v1/fine-tunes",
        {"model": "m", "training_file": "file-1"},
        {"authorization": "Bearer id:s3cret"},
    ),
    accepted={"id": "ft-1", "status": "pending"},
    run="ft-1",
    read="/v1/fine-tunes/ft-1",
    shows=_shows("status", id="ft-1", progress={"estimate_available": False, "seconds_remaining": 0}),
    words={
        "pending": P,
        "queued": P,
        "running": R,
        "compressing": R,
        "uploading": R,
        "cancel_requested": R,
        "completed": S,
        "error": F,
        "cancelled": C,
    },
    succeeded=({"model_output_name": "me/m-ft"}, ()),
    failed=({"events": [{"message": "started"}, {"message": "bad file"}]}, ("provider_error", "bad file")),
    entry=UNSIGNED,
    deletes=False,
)

BATCH = Case(
    adapter="together",
    input={"kind": "batches", "endpoint": "/v1/chat/completions", "input_file_id": "file-1"},
    submitted=(
        "/v1/batches",
        {"endpoint": "/v1/chat/completions", "input_file_id": "file-1"},
        {"authorization": "Bearer id:s3cret"},
    ),
    accepted={"job": {"id": "bt-1", "status": "VALIDATING"}},
    run="batches/bt-1",
    read="/v1/batches/bt-1",
    shows=_shows("status", id="bt-1", progress=40.0),
    words={
        "VALIDATING": P,
        "IN_PROGRESS": R,
        "COMPLETED": S,
        "FAILED": F,
        "EXPIRED": F,
        "CANCELLED": C,
    },
    succeeded=({"output_file_id": "file-2"}, ()),
    failed=({"error": "bad row"}, ("provider_error", "bad row")),
    entry=UNSIGNED,
    deletes=False,
)

HF_JOBS = Case(
    adapter="hf-jobs",
    input={"dockerImage": "python:3.12", "command": ["true"], "flavor": "cpu-basic", "labels": {"team": "ml"}},
    submitted=(
        "/api/jobs/acme",
        {
            "dockerImage": "python:3.12",
            "command": ["true"],
            "flavor": "cpu-basic",
            "labels": {"team": "ml", "homing": TOKEN},
        },
        {"authorization": "Bearer id:s3cret"},
    ),
    accepted={"id": "h-1", "status": {"stage": "SCHEDULING", "message": None}},
    run="h-1",
    read="/api/jobs/acme/h-1",
    shows=lambda word, **more: {"id": "h-1", "status": {"stage": word, **more}, "durations": {"totalSecs": 3}},
    words={"SCHEDULING": P, "RUNNING": R, "COMPLETED": S, "ERROR": F, "CANCELED": C, "DELETED": C},
    succeeded=({}, ()),
    failed=({"message": "exit code 1"}, ("provider_error", "exit code 1")),
    entry={**UNSIGNED, "values": {"namespace": "acme"}},
    deletes=False,
)

PRESETS = (BFL, LUMA, HIGGSFIELD, TOGETHER, BATCH, HF_JOBS)
