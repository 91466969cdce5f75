"""A client and the API it talks to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homing.client import Homing
from tests.fakes.api import FakeApi, serving_api


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving_api() as fake:
        yield fake


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.client.following._FIRST_REST_S", 0.001)
    monkeypatch.setattr("homing.client.following._LONGEST_REST_S", 0.001)
    monkeypatch.setattr("homing.client.api._wait_s", lambda _state: 0.001)


@pytest.fixture
def fleet(api: FakeApi) -> Iterator[Homing]:
    with Homing(api.url, "hk_test") as client:
        yield client
