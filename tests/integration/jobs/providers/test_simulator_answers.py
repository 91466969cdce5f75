"""The simulator's adapter against a server that says exactly what the field log saw."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from pydantic import SecretStr

from jobs.clock import FakeClock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import ConfigError, Transient, UnknownOutcome
from jobs.core.states import JobState
from jobs.net.http import Bounds, HttpClient
from jobs.providers.port import AlreadyFinished, Gone, KeyReused, Refused, SubmitRequest
from jobs.providers.registry import build_adapter
from jobs.providers.simulator import SimulatorProvider
from tests.fakes.raw_server import Script, ok, raw_server, read_request, says

REQUEST = SubmitRequest({"model": "video", "prompt": "x"}, "key-1", "token-1", "http://me/webhooks/p/token-1")
Serve = Callable[..., SimulatorProvider]


@pytest.fixture
def serve(clock: FakeClock) -> Iterator[Serve]:
    """An adapter whose provider answers by script, one connection after another."""
    with ExitStack() as opened:

        def start(*scripts: Script, **config: object) -> SimulatorProvider:
            server = opened.enter_context(raw_server(*scripts))
            client = HttpClient(Bounds(connect_s=0.5, read_s=0.5, total_s=1.0))
            opened.callback(client.close)
            entry = ProviderConfig(
                adapter="simulator",
                base_url=server.url,
                webhook_scheme="standard-webhooks",
                api_token=SecretStr("s3cret"),
                **config,  # type: ignore[arg-type]
            )
            return SimulatorProvider(entry, client, clock)

        yield start


def json_says(body: object, status: bytes = b"200 OK", headers: bytes = b"") -> Script:
    return says(ok(json.dumps(body).encode(), status=status, headers=headers + b"Connection: close\r\n"))


def resets(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def test_a_submit_says_everything_the_provider_needs(serve: Serve) -> None:
    received: list[bytes] = []

    def script(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(ok(b'{"id":"p-1","status":"queued"}', status=b"201 Created"))

    report = serve(script).submit(REQUEST)

    head, _, body = received[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /jobs HTTP/1.1")
    assert b"Idempotency-Key: key-1" in head
    assert b"Authorization: Bearer s3cret" in head
    assert json.loads(body) == {
        "model": "video",
        "input": {"prompt": "x"},
        "callback_url": "http://me/webhooks/p/token-1",
        "reference": "token-1",
    }
    assert (report.provider_job_id, report.state) == ("p-1", JobState.PENDING)


def test_an_end_in_a_submit_answer_is_left_to_a_read_that_brings_its_result(serve: Serve) -> None:
    report = serve(json_says({"id": "p-1", "status": "succeeded"})).submit(REQUEST)

    assert (report.provider_job_id, report.state, report.unknown_status) == ("p-1", None, None)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(resets, id="reset after the send"),
        pytest.param(says(b""), id="closed without a word"),
        pytest.param(says(ok(b"<html>502</html>")), id="a page under 200"),
        pytest.param(says(ok(b'{"id":"p-')), id="cut JSON"),
        pytest.param(says(ok(b'{"status":"queued"}', status=b"201 Created")), id="accepted without an id"),
        pytest.param(json_says({"error": "x"}, b"500 Oops"), id="500"),
        pytest.param(json_says({"error": "same key in progress"}, b"409 Conflict"), id="409"),
    ],
)
def test_a_submit_without_a_usable_answer_may_have_arrived(serve: Serve, script: Script) -> None:
    """F30 a, c"""
    with pytest.raises(UnknownOutcome) as caught:
        serve(script).submit(REQUEST)

    assert not isinstance(caught.value, KeyReused)


def test_a_submit_nobody_listened_to_was_not_accepted(serve: Serve) -> None:
    adapter = serve(says(b""))
    adapter._url = "http://127.0.0.1:1"

    with pytest.raises(Transient):
        adapter.submit(REQUEST)


def test_a_used_key_is_told_from_any_other_422(serve: Serve) -> None:
    used = {"error": {"code": "idempotency_key_reused", "message": "x"}}
    wrong = {"error": {"code": "invalid_request", "message": "model must be one of video"}}
    adapter = serve(json_says(used, b"422 X"), json_says(wrong, b"422 X"))

    with pytest.raises(KeyReused):
        adapter.submit(REQUEST)
    with pytest.raises(Refused, match="model must be one of video"):
        adapter.submit(REQUEST)


def test_every_blip_of_a_read_is_a_delay_and_the_answer_after_them_is_taken(serve: Serve) -> None:
    """F25: 502 page, empty 200, cut 200, reset, 408; then the true one."""
    blips = (
        says(ok(b"<html>502</html>", status=b"502 Bad Gateway", headers=b"Content-Type: text/html\r\n")),
        says(ok(b"")),
        says(ok(b'{"status":"succ')),
        resets,
        says(ok(b"", status=b"408 Request Timeout")),
    )
    adapter = serve(*blips, json_says({"id": "p-1", "status": "succeeded", "output": {"a": 1}, "cost": 0.02}))
    for _ in blips:
        with pytest.raises(Transient):
            adapter.status("p-1")
        adapter._client.close()

    report = adapter.status("p-1")

    assert (report.state, report.output, report.cost) == (JobState.SUCCEEDED, {"a": 1}, 0.02)


def test_a_read_is_about_the_run_that_was_asked_for(serve: Serve) -> None:
    """F26"""
    with pytest.raises(Transient, match="not an answer about run p-1"):
        serve(json_says({"id": "p-2", "status": "succeeded"})).status("p-1")


def test_a_busy_read_says_how_long(serve: Serve) -> None:
    """F27"""
    with pytest.raises(Transient) as caught:
        serve(json_says({}, b"429 Slow", b"Retry-After: 30\r\n")).status("p-1")

    assert caught.value.retry_after == timedelta(seconds=30)


def test_a_failure_without_a_reason_still_has_one(serve: Serve) -> None:
    report = serve(json_says({"id": "p-1", "status": "failed"})).status("p-1")

    assert report.error is not None
    assert report.error.code == "provider_error"


@pytest.mark.parametrize("status", [b"404 Not Found", b"410 Gone"])
def test_a_run_the_provider_does_not_know_is_gone(serve: Serve, status: bytes) -> None:
    adapter = serve(json_says({"error": "no"}, status))

    with pytest.raises(Gone):
        adapter.status("p-1")
    with pytest.raises(Gone):
        adapter.cancel("p-1")


@pytest.mark.parametrize("run", [".", ".."])
def test_an_id_that_would_fold_the_path_away_is_never_asked_for(serve: Serve, run: str) -> None:
    with pytest.raises(Gone):
        serve(says(b"")).status(run)


def test_an_id_cannot_leave_its_place_in_the_path(serve: Serve) -> None:
    received: list[bytes] = []

    def script(connection: socket.socket) -> None:
        received.append(connection.recv(65536))
        connection.sendall(ok(b"{}", status=b"404 Not Found"))

    with pytest.raises(Gone):
        serve(script).status("../ledger?x=1")

    assert received[0].startswith(b"GET /jobs/..%2Fledger%3Fx%3D1 ")


def test_a_cancel_that_came_too_late_is_told_apart(serve: Serve) -> None:
    adapter = serve(json_says({"error": {"code": "job_finished"}}, b"409 Conflict"), json_says({}, b"500 X"))

    with pytest.raises(AlreadyFinished):
        adapter.cancel("p-1")
    with pytest.raises(Transient):
        adapter.cancel("p-1")


@pytest.mark.parametrize(
    "body", [{"data": []}, {"jobs": None}, {"jobs": [{"status": "queued"}]}, {"jobs": ["p-1"]}, [], "x"]
)
def test_a_list_of_another_shape_is_no_empty_list(serve: Serve, body: object) -> None:
    with pytest.raises(Transient):
        serve(json_says(body)).find(idempotency_key="key-1", token="token-1")


def test_a_busy_list_says_how_long(serve: Serve) -> None:
    with pytest.raises(Transient) as caught:
        serve(json_says({}, b"429 X", b"Retry-After: 7\r\n")).find(idempotency_key="k", token="t")

    assert caught.value.retry_after == timedelta(seconds=7)


def test_a_run_is_looked_for_by_token_and_then_by_key(serve: Serve) -> None:
    adapter = serve(json_says({"jobs": []}), json_says({"jobs": [{"id": "p-1", "status": "processing"}]}))

    (report,) = adapter.find(idempotency_key="key-1", token="token-1")

    assert (report.provider_job_id, report.state) == ("p-1", JobState.RUNNING)


def test_an_adapter_is_chosen_by_name_with_a_hint(clock: FakeClock) -> None:
    entry = ProviderConfig(adapter="simulater", base_url="http://127.0.0.1:1", webhook_scheme="standard-webhooks")

    with pytest.raises(ConfigError, match="did you mean simulator"):
        build_adapter(entry, HttpClient(), clock)
