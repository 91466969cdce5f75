"""Key sets at hand: fetched aside, good for a day, asked for anew when a signature fits none."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Unavailable
from jobs.net.http import HttpClient
from tests.fakes.api import FakeApi, serving_api
from tests.vectors import FAL_PUBLIC, NOW
from webhooks.incoming.receiving.key_sets import KeySets

HOUR_S = 3600
OTHER = "A" * 42 + "E"


def key_set(*keys: str) -> dict[str, object]:
    return {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": key} for key in keys]}


class Desk:
    """Key sets over a server of our own."""

    def __init__(self, api: FakeApi, clock: FakeClock) -> None:
        self.api = api
        self.url = f"{api.url}/jwks.json"
        self.changed: list[str] = []
        client = HttpClient()
        self.sets = KeySets(
            lambda url: client.request("GET", url), monotonic=clock.monotonic, on_new_keys=self.changed.append
        )

    def publish(self, *keys: str, status: int = 200) -> None:
        self.api.answers["GET /jwks.json"] = [(status, key_set(*keys))]

    def keys(self) -> int:
        """How many are at hand, once what is being fetched has come."""
        self.sets.wait()
        return len(self.sets.keys(self.url))

    def fetches(self) -> int:
        self.sets.wait()
        return len(self.api.asked)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def desk(clock: FakeClock) -> Iterator[Desk]:
    with serving_api() as api:
        desk = Desk(api, clock)
        yield desk
        desk.sets.wait()


def test_the_first_request_is_told_to_come_again_and_the_next_finds_the_keys(desk: Desk) -> None:
    desk.publish(FAL_PUBLIC)

    with pytest.raises(Unavailable) as told:
        desk.sets.keys(desk.url)

    assert told.value.retry_after is not None
    assert desk.keys() == 1
    assert desk.fetches() == 1


def test_a_process_that_fetches_at_its_start_has_them_at_the_first_request(desk: Desk) -> None:
    desk.publish(FAL_PUBLIC)

    desk.sets.prefetch([desk.url])

    assert desk.keys() == 1


@pytest.mark.parametrize("answer", [(500, {}), (200, "<html>"), (200, {"keys": []}), (301, {})])
def test_while_fetching_fails_requests_are_told_to_come_again(desk: Desk, answer: tuple[int, object]) -> None:
    desk.api.answers["GET /jwks.json"] = [answer]

    for _ in range(3):
        with pytest.raises(Unavailable):
            desk.keys()

    assert desk.fetches() == 1  # and the sender is not asked once per request


def test_a_failed_fetch_is_tried_again_soon(desk: Desk, clock: FakeClock) -> None:
    desk.publish(status=500)
    with pytest.raises(Unavailable):
        desk.keys()
    desk.publish(FAL_PUBLIC)

    clock.advance(11)
    with pytest.raises(Unavailable):
        desk.sets.keys(desk.url)

    assert desk.keys() == 1


def test_a_set_is_fetched_anew_before_it_grows_old(desk: Desk, clock: FakeClock) -> None:
    desk.publish(FAL_PUBLIC)
    desk.sets.prefetch([desk.url])
    assert desk.keys() == 1
    desk.publish(FAL_PUBLIC, OTHER)

    clock.advance(13 * HOUR_S)
    assert desk.keys() == 1  # answered from memory, and fetched aside
    assert desk.keys() == 2
    assert desk.changed == [desk.url]


def test_a_set_older_than_a_day_is_believed_no_longer(desk: Desk, clock: FakeClock) -> None:
    desk.publish(FAL_PUBLIC)
    desk.sets.prefetch([desk.url])
    assert desk.keys() == 1
    desk.publish(status=503)

    clock.advance(23 * HOUR_S)
    assert desk.keys() == 1
    clock.advance(2 * HOUR_S)
    with pytest.raises(Unavailable):
        desk.keys()


def test_a_signature_that_fits_no_key_has_the_set_fetched_at_most_once_a_minute(desk: Desk, clock: FakeClock) -> None:
    """A forger can cause it at will."""
    desk.publish(FAL_PUBLIC)
    desk.sets.prefetch([desk.url])
    assert desk.fetches() == 1

    for _ in range(50):
        desk.sets.note_unknown_key(desk.url)
        clock.advance(1)
    assert desk.fetches() == 1
    clock.advance(60)
    for _ in range(5):
        desk.sets.note_unknown_key(desk.url)
    assert desk.fetches() == 2


def test_a_set_that_stays_the_same_is_no_news(desk: Desk, clock: FakeClock) -> None:
    desk.publish(FAL_PUBLIC)
    desk.sets.prefetch([desk.url])
    desk.sets.wait()

    clock.advance(120)
    desk.sets.note_unknown_key(desk.url)
    desk.sets.wait()

    assert desk.changed == []


def test_a_slow_sender_makes_nobody_wait(clock: FakeClock) -> None:
    """I17: no request waits for a fetch."""
    let_go = threading.Event()

    def fetch(_url: str) -> object:
        let_go.wait(10)
        raise Unavailable

    sets = KeySets(fetch, monotonic=clock.monotonic)  # type: ignore[arg-type] # it never answers
    try:
        for _ in range(3):
            with pytest.raises(Unavailable):
                sets.keys("https://slow.test/jwks")
        assert len([thread for thread in threading.enumerate() if thread.name == "key-set"]) == 1
    finally:
        let_go.set()
        sets.wait()


def test_what_fails_after_new_keys_does_not_lose_them(desk: Desk, clock: FakeClock) -> None:
    def fail(_url: str) -> None:
        raise RuntimeError

    desk.sets._on_new_keys = fail
    desk.publish(FAL_PUBLIC)
    desk.sets.prefetch([desk.url])
    desk.sets.wait()
    desk.publish(OTHER, FAL_PUBLIC)
    clock.advance(120)
    desk.sets.note_unknown_key(desk.url)

    assert desk.keys() == 2
