"""Beat's scheduler while Redis is away."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from homing.celery_app import create_app
from homing.ticker import Ticker


class Post:
    """Takes messages, or does not."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_away = False

    def send(self, entry: Any, **_: Any) -> None:
        if self.is_away:
            raise ConnectionError("connection refused")
        self.sent.append(entry.name)


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def ticker(post: Post, monkeypatch: pytest.MonkeyPatch) -> Ticker:
    ticker = Ticker(create_app("redis://127.0.0.1:6379/0"))
    monkeypatch.setattr(ticker, "apply_async", post.send)
    return ticker


def test_it_ticks_the_schedule_of_the_code(ticker: Ticker) -> None:
    assert {"sweep.due", "sweep.inbox", "canary.poll"} <= set(ticker.schedule)


def test_an_outage_is_said_once_and_every_tick_is_tried(ticker: Ticker, post: Post) -> None:
    entry = ticker.schedule["sweep.due"]
    ticker.apply_entry(entry)
    with capture_logs() as logs:
        post.is_away = True
        for _ in range(100):
            ticker.apply_entry(entry)
        post.is_away = False
        for _ in range(3):
            ticker.apply_entry(entry)

    assert [log["event"] for log in logs] == ["ticks are not sent", "ticks are sent again"]
    assert logs[1]["lost"] == 100
    assert post.sent == ["sweep.due"] * 4
