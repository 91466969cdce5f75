"""The receiver of the how-to, called with what Homing sends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jobs.clock import FakeClock, SystemClock
from tests.integration.webhooks.outgoing.world import World

PAGE = Path(__file__).parents[4] / "docs/howto/send_webhooks.md"


def receiver(secret: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    (sample,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(sample.splitlines()) <= 21
    monkeypatch.setenv("ENDPOINT_SECRET", secret)
    scope: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(sample, "receiver.py", "exec"), scope)
    return scope


def test_the_receiver_of_the_how_to_takes_an_event_once_and_refuses_a_forgery(
    world: World, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock.advance(SystemClock().now() - clock.now())
    made = world.endpoint()
    event = world.event()
    world.run()
    (sent,) = world.sent
    scope = receiver(made["secret"], monkeypatch)
    client = scope["app"].test_client()

    for _ in range(2):
        assert client.post("/hooks", data=sent.body, headers=dict(sent.headers)).status_code == 204
    forged = client.post("/hooks", data=sent.body + b" ", headers=dict(sent.headers))

    assert forged.status_code == 400
    assert scope["seen"] == {event}
    assert capsys.readouterr().out.count("job.succeeded") == 1
