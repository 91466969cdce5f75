"""Result files: what is promised about them, and how their download may go wrong."""

from __future__ import annotations

import hashlib
import io
import json
import wave
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image
from werkzeug.test import TestResponse

from homing.simulator.faults import Fault, Faults
from homing.simulator.files import FileStore
from homing.simulator.models import ResultFile
from jobs.clock import FakeClock
from tests.unit.homing.simulator.stage import Receiver, Stage, planned

Build = Callable[..., Stage]

VIDEO: dict[str, Any] = {"model": "video", "prompt": "A paper boat", "duration_s": 1}


def fetch(stage: Stage, artifact: dict[str, Any]) -> TestResponse:
    return stage.client.get(artifact["url"].removeprefix(stage.provider.base_url))


def only_artifact(stage: Stage, given: dict[str, Any] = VIDEO) -> dict[str, Any]:
    return dict(stage.run_to_end(given)["artifacts"][0])


def test_an_artifact_is_what_was_promised(stage: Stage) -> None:
    artifact = only_artifact(stage)

    answer = fetch(stage, artifact)

    assert answer.status_code == 200
    assert answer.mimetype == artifact["content_type"] == "image/gif"
    assert len(answer.data) == artifact["size"]
    assert hashlib.sha256(answer.data).hexdigest() == artifact["sha256"]
    assert artifact["expires_at"] == "2026-01-01T01:00:02Z"


def test_the_files_of_the_models_open(stage: Stage) -> None:
    clip = fetch(stage, only_artifact(stage)).data
    still = fetch(stage, only_artifact(stage, {**VIDEO, "format": "png"})).data
    speech = stage.run_to_end({"model": "transcribe", "text": "good morning", "duration_s": 1})["artifacts"]

    with Image.open(io.BytesIO(clip)) as image:
        assert (image.format, image.size, getattr(image, "n_frames", 1)) == ("GIF", (320, 180), 8)
    with Image.open(io.BytesIO(still)) as image:
        assert image.format == "PNG"
    with wave.open(io.BytesIO(fetch(stage, speech[0]).data)) as sound:
        assert sound.getnframes() > 0
    assert json.loads(fetch(stage, speech[1]).data)["text"] == "good morning"


def test_a_part_of_a_file_can_be_had(stage: Stage) -> None:
    artifact = only_artifact(stage)
    url = artifact["url"].removeprefix(stage.provider.base_url)

    answer = stage.client.get(url, headers={"Range": "bytes=0-5"})

    assert (answer.status_code, answer.data) == (206, b"GIF89a")


def test_a_url_runs_out_and_a_new_read_gives_a_fresh_one(stage: Stage) -> None:
    facts = stage.run_to_end(VIDEO)
    stage.clock.advance(3601)

    old = fetch(stage, facts["artifacts"][0])
    new = fetch(stage, stage.read(facts["id"]).json["artifacts"][0])

    assert (old.status_code, new.status_code) == (403, 200)
    assert b"AccessDenied" in old.data


@pytest.mark.parametrize("spoil", [lambda u: u[:-1], lambda u: u.replace("expires=1", "expires=2"), lambda u: u + "é"])
def test_a_changed_url_is_refused(stage: Stage, spoil: Callable[[str], str]) -> None:
    url = only_artifact(stage)["url"].removeprefix(stage.provider.base_url)

    assert stage.client.get(spoil(url)).status_code == 403
    assert stage.client.get(url.split("?", maxsplit=1)[0]).status_code == 403


def test_the_first_url_may_be_born_expired(build_stage: Build, receiver: Receiver) -> None:
    """F39: a new poll gives a fresh URL."""
    stage = build_stage(fault_plan=planned(Faults(artifact=Fault.URL_EXPIRED), VIDEO))
    facts = stage.run_to_end(VIDEO)

    told = fetch(stage, receiver.received[1].event["artifacts"][0])
    read = fetch(stage, facts["artifacts"][0])

    assert (told.status_code, read.status_code) == (403, 200)


def test_every_url_may_be_born_expired(build_stage: Build) -> None:
    stage = build_stage(fault_plan=planned(Faults(artifact=Fault.URL_LOST), VIDEO))
    stage.run_to_end(VIDEO)
    run_id = stage.provider.runs.list_runs()[0].id

    for _ in range(3):
        assert fetch(stage, stage.read(run_id).json["artifacts"][0]).status_code == 403


@pytest.mark.parametrize("fault", [Fault.TRUNCATED, Fault.WRONG_TYPE])
def test_only_the_first_download_goes_wrong(build_stage: Build, fault: Fault) -> None:
    """F37, F38: a 200 that is not the file, and looks whole."""
    stage = build_stage(fault_plan=planned(Faults(artifact=fault), VIDEO))
    artifact = only_artifact(stage)

    first, second = fetch(stage, artifact), fetch(stage, artifact)

    assert first.status_code == second.status_code == 200
    assert int(first.headers["Content-Length"]) == len(first.data) < artifact["size"]
    assert first.mimetype == ("image/gif" if fault is Fault.TRUNCATED else "text/html")
    assert hashlib.sha256(second.data).hexdigest() == artifact["sha256"]
    assert stage.ledger["totals"][fault.value] == 1


def test_the_oldest_files_leave_when_there_is_no_more_room() -> None:
    from datetime import timedelta

    store = FileStore(FakeClock(), signing_key="k", ttl=timedelta(hours=1), kept_bytes=10)

    for number in range(3):
        store.put(f"p-{number}", (ResultFile("a", "text/plain", b"12345"),))

    assert [store.get(f"p-{number}", "a") is not None for number in range(3)] == [False, True, True]


def test_a_file_that_left_is_not_found(stage: Stage) -> None:
    artifact = only_artifact(stage)
    stage.provider.files._files.clear()

    assert fetch(stage, artifact).status_code == 404
