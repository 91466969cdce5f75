"""What AssemblyAI, HeyGen, Mux and ElevenLabs send, from the door to the job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.core.signatures import sign
from jobs.net.http import HttpClient
from jobs.providers.registry import build_adapter
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from tests.contract.vendor_server import WEBHOOK_SECRET, an_entry
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime
from tests.integration.webhooks.incoming.world import Reply, World, an_app, call
from webhooks.incoming.installation import build_intake


@dataclass(frozen=True)
class Sent:
    """One vendor's event about a success.

    Attributes:
        body: Speaks of run ``run-1``; ``{token}`` stands for the attempt's token.
        calls_back: Whether the attempt's own URL is called; else the account's, with the token in the body.
        believed: Whether the event is; else it is a hint.
    """

    adapter: str
    body: Mapping[str, Any]
    calls_back: bool = False
    believed: bool = True


ASSEMBLYAI = Sent("assemblyai", {"transcript_id": "run-1", "status": "completed"}, calls_back=True, believed=False)
HEYGEN = Sent(
    "heygen",
    {
        "event_id": "he-1",
        "event_type": "avatar_video.success",
        "event_data": {"video_id": "run-1", "callback_id": "{token}", "url": "https://files.example/v.mp4"},
    },
    believed=False,
)
MUX = Sent(
    "mux",
    {
        "id": "me-1",
        "type": "video.asset.ready",
        "data": {"id": "run-1", "status": "ready", "meta": {"external_id": "{token}"}},
    },
)
ELEVENLABS = Sent(
    "elevenlabs",
    {
        "type": "speech_to_text_transcription",
        "data": {
            "request_id": "r-1",
            "webhook_metadata": '{"homing_token": "{token}"}',
            "transcription": {"transcription_id": "run-1", "text": "coo"},
        },
    },
)
ALL = (ASSEMBLYAI, HEYGEN, MUX, ELEVENLABS)

every_vendor = pytest.mark.parametrize("sent", ALL, ids=lambda sent: sent.adapter)


@pytest.fixture
def world(database: Database, clock: FakeClock) -> Iterator[World]:
    entries = {}
    for sent in ALL:
        config = an_entry(sent.adapter, {})
        entries[sent.adapter] = ProviderEntry(
            sent.adapter, config, config.policy, build_adapter(config, HttpClient(), clock)
        )
    config = replace_secrets(entries["assemblyai"])
    entries["keyless"] = ProviderEntry("keyless", config, config.policy, entries["assemblyai"].adapter)
    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, providers=entries)
    intake = build_intake(runtime)
    yield World(runtime, clock, broker, intake, an_app(runtime, intake, door="hot"))
    intake.stop()


def replace_secrets(entry: ProviderEntry) -> Any:
    return entry.config.model_copy(update={"webhook_secrets": ()})


def deliver(world: World, sent: Sent, token: str, *, provider: str | None = None, **changes: Any) -> Reply:
    """The event, signed as its vendor signs, at the URL its vendor calls."""
    name = provider or sent.adapter
    config = world.runtime.providers[name].config
    text = json.dumps(sent.body).replace("{token}", token)
    body = changes.pop("body", text.encode())
    headers = sign(
        config.webhook_scheme,
        secret=changes.pop("secret", WEBHOOK_SECRET),
        body=body,
        delivery_id="unused",
        at=world.clock.now(),
        options=config.scheme_options,
    )
    path = f"/webhooks/{name}/{token}" if sent.calls_back else f"/webhooks/{name}"
    return call(world.app, path, body=body, headers={n: v for n, v in headers.items() if v != "unused"})


@every_vendor
def test_an_event_ends_the_job_or_has_the_vendor_asked(world: World, sent: Sent) -> None:
    job_id, token = world.submitted_job("run-1", provider=sent.adapter)

    assert deliver(world, sent, token).said == "accepted"
    world.drain()

    job = world.job(job_id)
    assert job["state"] == ("succeeded" if sent.believed else "pending")
    assert job["next_poll_at"] == (None if sent.believed else world.clock.now())


@every_vendor
def test_an_event_finds_the_attempt_whose_submit_answer_was_lost(world: World, sent: Sent) -> None:
    """F30 e, F16: nobody else can tell which run was begun."""
    job_id, token = world.pending_job(provider=sent.adapter)

    deliver(world, sent, token)
    world.drain()

    job = world.job(job_id)
    assert job["provider_job_id"] == "run-1"
    assert job["state"] == ("succeeded" if sent.believed else "pending")
    assert world.letters() == []


@every_vendor
def test_a_second_run_under_one_token_raises_the_alarm(world: World, sent: Sent) -> None:
    job_id, token = world.submitted_job("run-0", provider=sent.adapter)

    deliver(world, sent, token)
    world.drain()

    assert world.job(job_id)["provider_job_id"] == "run-0"
    assert [letter["kind"] for letter in world.letters()] == ["double_submit"]


@every_vendor
def test_a_second_copy_is_known_by_what_the_vendor_repeats(world: World, sent: Sent) -> None:
    _, token = world.submitted_job("run-1", provider=sent.adapter)

    said = [deliver(world, sent, token).said for _ in range(2)]

    assert said == ["accepted", "duplicate"]


@every_vendor
def test_another_secret_is_refused_and_ours_alone_ends_a_vendors_tries(world: World, sent: Sent) -> None:
    """AssemblyAI and ElevenLabs take a 4xx for the last word: only what is not theirs may get one."""
    _, token = world.submitted_job("run-1", provider=sent.adapter)

    assert deliver(world, sent, token, secret="another-secret-0001").status == 403
    assert deliver(world, sent, token, body=b"not JSON").status == 200
    assert deliver(world, sent, token).status == 200


def test_an_account_without_its_secret_asks_the_vendor_to_come_again(world: World) -> None:
    answer = deliver(world, ASSEMBLYAI, "token-1", provider="keyless")

    assert answer.status == 503
    assert answer.headers["Retry-After"]


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (HEYGEN, {"event_id": "1", "event_type": "avatar_video_gif.success", "event_data": {"video_id": "run-1"}}),
        (HEYGEN, {"event_id": "1", "event_type": "avatar_video.success", "event_data": {}}),
        (MUX, {"id": "1", "type": "video.asset.track.ready", "data": {"id": "run-1", "status": "ready"}}),
        (MUX, {"id": "1", "type": "video.asset.deleted", "data": {"id": "run-1", "status": "ready"}}),
        (ELEVENLABS, {"type": "post_call_transcription", "data": {"conversation_id": "c"}}),
        (ELEVENLABS, {"type": "speech_to_text_transcription", "data": {"request_id": "r", "transcription": {}}}),
        (ASSEMBLYAI, {"status": "completed"}),
    ],
)
def test_what_is_not_about_a_run_is_of_no_interest(world: World, sent: Sent, body: object) -> None:
    """F20"""
    job_id, _ = world.submitted_job("run-1", provider=sent.adapter)

    deliver(world, replace(sent, calls_back=False), "t", body=json.dumps(body).encode())
    world.drain()

    assert world.job(job_id)["state"] == "pending"
    assert world.event()["status"] == "ignored"


def test_a_failed_transcript_is_told_with_its_reason(world: World) -> None:
    job_id, token = world.submitted_job("run-1", provider="elevenlabs")
    body = {
        "type": "speech_to_text_transcription",
        "data": {"error": "no speech", "webhook_metadata": {"homing_token": token}},
    }

    deliver(world, ELEVENLABS, token, body=json.dumps(body).encode())
    world.drain()

    job = world.job(job_id)
    assert (job["state"], job["error"]["message"]) == ("failed", "no speech")
