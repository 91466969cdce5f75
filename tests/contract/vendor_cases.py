"""What each vendor is asked and says, in its own words: the table that the adapters' tests run down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobs.core.states import JobState

TOKEN, KEY = "token-1", "key-1"
CALLBACK = f"https://me.example/webhooks/p/{TOKEN}"

P, R, S, F, C = JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED


@dataclass(frozen=True)
class Case:
    """One vendor.

    Attributes:
        input: Of a job.
        submitted: Path, body (JSON; or parts of a form) and headers that a submit must have.
        accepted: The answer to it.
        run: The run it names.
        read: Path of a status read.
        shows: A status answer, from a word and more fields.
        words: Every status word and its state.
        succeeded: Fields that come with success, and the links they make.
        failed: Fields that come with failure, and the code and message they make.
        gone: Whether a 404 means that there is no such run.
        deletes: Whether a cancel is a DELETE of the run's path.
    """

    adapter: str
    input: Mapping[str, object]
    submitted: tuple[str, object, Mapping[str, str]]
    accepted: object
    run: str
    read: str
    shows: Callable[..., object]
    words: Mapping[str, JobState]
    succeeded: tuple[Mapping[str, object], tuple[str, ...]]
    failed: tuple[Mapping[str, object], tuple[str, str]]
    entry: Mapping[str, object] = field(default_factory=dict)
    deletes: bool = True
    gone: bool = True


def _flat(**named: object) -> Callable[..., object]:
    return lambda word, **more: {**named, "status": word, **more}


def _data(**named: object) -> Callable[..., object]:
    return lambda word, **more: {"data": {**named, "status": word, **more}}


RUNWAY = Case(
    adapter="runway",
    input={"endpoint": "text_to_video", "model": "gen4.5", "promptText": "a pigeon"},
    submitted=(
        "/v1/text_to_video",
        {"model": "gen4.5", "promptText": "a pigeon"},
        {"authorization": "Bearer id:s3cret", "x-runway-version": "2024-11-06"},
    ),
    accepted={"id": "task-1", "estimatedCost": {"credits": 25}},
    run="task-1",
    read="/v1/tasks/task-1",
    shows=_flat(id="task-1", createdAt="2026-01-01T00:00:00Z"),
    words={"PENDING": P, "THROTTLED": P, "RUNNING": R, "SUCCEEDED": S, "FAILED": F, "CANCELLED": C},
    succeeded=({"output": ["https://cdn.example/a.mp4?sig=1"]}, ("https://cdn.example/a.mp4?sig=1",)),
    failed=({"failure": "no", "failureCode": "SAFETY.INPUT"}, ("SAFETY.INPUT", "no")),
)

HEYGEN = Case(
    adapter="heygen",
    input={"avatar_id": "a", "script": "hello"},
    submitted=(
        "/v3/videos",
        {"avatar_id": "a", "script": "hello", "callback_id": TOKEN},
        {"x-api-key": "id:s3cret", "idempotency-key": KEY},
    ),
    accepted={"data": {"video_id": "v-1"}},
    run="v-1",
    read="/v3/videos/v-1",
    shows=_data(id="v-1"),
    words={"pending": P, "queued": P, "processing": R, "completed": S, "failed": F},
    succeeded=({"video_url": "https://files.example/v.mp4"}, ("https://files.example/v.mp4",)),
    failed=({"failure_code": "bad_script", "failure_message": "too long"}, ("bad_script", "too long")),
)

ASSEMBLYAI = Case(
    adapter="assemblyai",
    input={"audio_url": "https://cdn.example/a.mp3"},
    submitted=(
        "/v2/transcript",
        {
            "audio_url": "https://cdn.example/a.mp3",
            "webhook_url": CALLBACK,
            "webhook_auth_header_name": "X-Webhook-Secret",
            "webhook_auth_header_value": "webhook-secret-0001",
        },
        {"authorization": "id:s3cret"},
    ),
    accepted={"id": "t-1", "status": "queued", "audio_url": "https://cdn.example/a.mp3"},
    run="t-1",
    read="/v2/transcript/t-1",
    shows=_flat(id="t-1"),
    words={"queued": P, "processing": R, "completed": S, "error": F},
    succeeded=({"text": "coo"}, ()),
    failed=({"error": "file does not exist"}, ("provider_error", "file does not exist")),
    deletes=False,
)

MUX = Case(
    adapter="mux",
    input={"input": [{"url": "https://cdn.example/a.mov"}], "meta": {"title": "pigeon"}},
    submitted=(
        "/video/v1/assets",
        {"input": [{"url": "https://cdn.example/a.mov"}], "meta": {"title": "pigeon", "external_id": TOKEN}},
        {"authorization": "Basic aWQ6czNjcmV0"},
    ),
    accepted={"data": {"id": "as-1", "status": "preparing"}},
    run="as-1",
    read="/video/v1/assets/as-1",
    shows=_data(id="as-1"),
    words={"preparing": R, "ready": S, "errored": F},
    succeeded=(
        {
            "playback_ids": [{"id": "pb-0", "policy": "signed"}, {"id": "pb-1", "policy": "public"}],
            "static_renditions": {"status": "ready", "files": [{"name": "720p.mp4", "filesize": "12"}]},
            "master": {"status": "ready", "url": "https://master.example/m.mp4"},
        },
        ("https://master.example/m.mp4", "https://stream.mux.com/pb-1/720p.mp4"),
    ),
    failed=(
        {"errors": {"type": "invalid_input", "messages": ["no video", "no audio"]}},
        ("invalid_input", "no video; no audio"),
    ),
)

DUBBING = Case(
    adapter="elevenlabs",
    input={"endpoint": "dubbing", "source_url": "https://cdn.example/a.mp4", "target_lang": "de", "watermark": True},
    submitted=(
        "/v1/dubbing",
        (
            'name="source_url"\r\n\r\nhttps://cdn.example/a.mp4',
            'name="target_lang"\r\n\r\nde',
            'name="watermark"\r\n\r\ntrue',
        ),
        {"xi-api-key": "id:s3cret", "content-type": f"multipart/form-data; boundary=homing{TOKEN}"},
    ),
    accepted={"dubbing_id": "d-1", "expected_duration_sec": 12.5},
    run="dubbing/d-1",
    read="/v1/dubbing/d-1",
    shows=_flat(dubbing_id="d-1", name="x"),
    words={"dubbing": R, "dubbed": S, "failed": F},
    succeeded=({"target_languages": ["de"]}, ("{url}/v1/dubbing/d-1/audio/de",)),
    failed=({"error": "no speech"}, ("provider_error", "no speech")),
)

SPEECH = Case(
    adapter="elevenlabs",
    input={"model_id": "scribe_v2", "cloud_storage_url": "https://cdn.example/a.mp3", "keyterms": ["coo", "gurr"]},
    submitted=(
        "/v1/speech-to-text",
        (
            'name="model_id"\r\n\r\nscribe_v2',
            'name="keyterms"\r\n\r\ncoo',
            'name="keyterms"\r\n\r\ngurr',
            'name="webhook"\r\n\r\ntrue',
            f'name="webhook_metadata"\r\n\r\n{{"homing_token": "{TOKEN}"}}',
        ),
        {"xi-api-key": "id:s3cret"},
    ),
    accepted={"message": "accepted", "request_id": "r-1", "transcription_id": "t-1"},
    run="t-1",
    read="/v1/speech-to-text/transcripts/t-1",
    shows=lambda word, **more: {"text": word, "transcription_id": "t-1", **more},
    words={"coo": S},
    succeeded=({"language_code": "eng"}, ()),
    failed=({}, ("", "")),
    gone=False,
)

CASES = (RUNWAY, HEYGEN, ASSEMBLYAI, MUX, DUBBING, SPEECH)
#: Those whose answers have a status word; a finished transcript is an answer without one.
WORDY = CASES[:-1]
