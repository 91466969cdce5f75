"""A run's output on its way to a reader, over real processes that die on the way."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.e2e.fleet_process import FleetProcess
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.timeout(240)]

_SECRET = "whsec_c3RyZWFtcy1vZi1hLXRlc3QtZmxlZXQ="
_CONFIG = """
[providers.resuming]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{secret}"]

[providers.forgetful]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{secret}"]
stream_resume = false
"""


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A provider that outlives whatever is done to the fleet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("homing")), "simulator", "--port", str(port), "--faults", "none"]
    log = tmp_path_factory.mktemp("simulator") / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            env={**os.environ, "SIMULATOR_WEBHOOK_SECRET": _SECRET},
        )
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: _answers(url), within_s=60, what=f"the simulator: {log.read_text()}")
    yield url
    process.terminate()
    process.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/ledger", timeout=2).ok
    except requests.RequestException:
        return False


@pytest.fixture(scope="module")
def fleet(simulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetProcess]:
    folder = tmp_path_factory.mktemp("fleet")
    config = folder / "homing.toml"
    config.write_text(_CONFIG.format(url=simulator, secret=_SECRET))
    started = FleetProcess(folder, "--config", str(config))
    try:
        started.wait_ready()
        yield started
    finally:
        started.stop()


@dataclass
class Reader:
    """Follows a job by its stream, resuming whenever the connection ends before the job."""

    fleet: FleetProcess
    job_id: str
    text: str = ""
    deltas: int = 0
    resets: int = 0
    ids: list[str] = field(default_factory=list)
    end: dict[str, Any] | None = None
    fault: BaseException | None = None

    @classmethod
    def of(cls, fleet: FleetProcess, provider: str, prompt: str, *, tokens: int, duration_s: float) -> Reader:
        inputs = {"model": "llm-stream", "prompt": prompt, "max_tokens": tokens, "duration_s": duration_s}
        answer = fleet.call("POST", "/v1/jobs", json={"provider": provider, "input": inputs})
        reader = cls(fleet, answer.json()["id"])
        threading.Thread(target=reader._follow, daemon=True).start()
        return reader

    def wait(self) -> dict[str, Any]:
        """The job, once the stream has told its end."""
        wait_until(lambda: self.end is not None or self.fault is not None, within_s=90, what="the end of the stream")
        assert self.fault is None, self.fault
        job: dict[str, Any] = self.fleet.call("GET", f"/v1/jobs/{self.job_id}").json()
        return job

    def _follow(self) -> None:
        try:
            while self.end is None:
                self._read()
        except BaseException as error:  # noqa: BLE001 - told by whoever waits
            self.fault = error

    def _read(self) -> None:
        running = self.fleet.running
        headers = {"Authorization": f"Bearer {running.api_key}"}
        if self.ids:
            headers["Last-Event-ID"] = self.ids[-1]
        url = f"{running.url}/v1/jobs/{self.job_id}/events"
        with requests.get(url, headers=headers, stream=True, timeout=60) as answer:
            message: dict[str, str] = {}
            for line in answer.iter_lines(decode_unicode=True):
                name, _, value = line.partition(": ")
                if line:
                    message[name] = value
                    continue
                self._hear(message)
                message = {}

    def _hear(self, message: dict[str, str]) -> None:
        if "id" in message:
            assert message["id"] not in self.ids
            self.ids.append(message["id"])
        data = json.loads(message.get("data", "null"))
        match message.get("event"):
            case "job.output.delta":
                assert data["data"]["offset"] == len(self.text)
                self.text += data["data"]["text"]
                self.deltas += 1
            case "job.output.reset":
                self.text, self.resets = "", self.resets + 1
            case "job.succeeded" | "job.failed" | "job.canceled":
                self.end = data


def test_a_reader_hears_it_all_though_the_worker_that_listens_is_killed(fleet: FleetProcess) -> None:
    """F67: kill -9 in mid-stream. The text goes on where the provider can, and else begins anew; the end comes last."""
    resuming = Reader.of(fleet, "resuming", "the pigeon", tokens=400, duration_s=8)
    forgetful = Reader.of(fleet, "forgetful", "the keeper", tokens=400, duration_s=8)
    wait_until(lambda: min(resuming.deltas, forgetful.deltas) >= 3, within_s=60, what="the first pieces of both")

    os.kill(fleet.pids("worker-streams")[0], signal.SIGKILL)

    for reader in (resuming, forgetful):
        job = reader.wait()
        assert reader.text == job["output"]["text"]
    assert (resuming.resets, forgetful.resets) == (0, 1)


def test_a_reader_hears_it_all_though_redis_is_killed_and_forgets(fleet: FleetProcess) -> None:
    """Redis is only the bell; a worker of threads goes on taking messages once it is back."""
    during = Reader.of(fleet, "resuming", "a letter", tokens=200, duration_s=4)
    wait_until(lambda: during.deltas >= 2, within_s=60, what="the first pieces")
    before = fleet.pids("redis")

    os.kill(before[0], signal.SIGKILL)

    job = during.wait()
    assert during.text == job["output"]["text"]
    wait_until(lambda: fleet.pids("redis") not in ([], before), within_s=30, what="Redis back")
    after = Reader.of(fleet, "resuming", "the wind", tokens=60, duration_s=3)
    job = after.wait()
    assert after.text == job["output"]["text"]
    assert after.deltas >= 2
    assert during.resets == after.resets == 0
