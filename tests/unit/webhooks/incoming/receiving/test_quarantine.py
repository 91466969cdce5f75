"""The quarantine's entrance: quick, bounded, and without a secret in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.services.runtime import ProviderEntry
from tests.integration.webhooks.incoming.world import an_entry
from tests.vectors import NOW, TEXT_SECRET
from webhooks.incoming.receiving.admission import Sent
from webhooks.incoming.receiving.quarantine import MAX_REQUEST_BYTES, Quarantine
from webhooks.incoming.receiving.quarantine_rows import Refused

CLOCK = FakeClock(NOW)
RENDERS = an_entry("renders", "standard-webhooks", CLOCK)


class Shelf:
    """Where refused requests end up."""

    def __init__(self) -> None:
        self.kept: list[Refused] = []
        self.writes = 0
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None

    def __call__(self, refused: Sequence[Refused]) -> None:
        self.gate.wait(10)
        self.writes += 1
        if self.error is not None:
            raise self.error
        self.kept += refused


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def quarantine(shelf: Shelf) -> Iterator[Quarantine]:
    built = Quarantine(shelf)
    yield built
    shelf.gate.set()
    built.stop()


def keep(quarantine: Quarantine, entry: ProviderEntry = RENDERS, **sent: Any) -> bool:
    values = {"token": "t-1", "target": "/webhooks/renders/t-1", "headers": {}, "raw": b"{}", **sent}
    return quarantine.keep(entry, Sent(**values), at=NOW, reason="mismatch")


def test_a_refused_request_is_kept_byte_for_byte(quarantine: Quarantine, shelf: Shelf) -> None:
    assert keep(quarantine, raw=b"\xff\x00", headers={"webhook-id": "m\xe9"}, target="/webhooks/renders?x=1")
    quarantine.stop()

    (row,) = shelf.kept
    assert (row.raw, row.headers, row.target) == (b"\xff\x00", {"webhook-id": "m\xe9"}, "/webhooks/renders?x=1")
    assert (row.provider, row.token, row.reason, row.received_at) == ("renders", "t-1", "mismatch", NOW)


def test_a_frozen_database_makes_no_refusal_wait(quarantine: Quarantine, shelf: Shelf) -> None:
    shelf.gate.clear()

    kept = [keep(quarantine) for _ in range(500)]  # returns, though nothing can be written

    assert 100 <= sum(kept) <= 200  # what one write has taken along, and what waits for the next


def test_what_waits_is_bounded_in_bytes(quarantine: Quarantine, shelf: Shelf) -> None:
    shelf.gate.clear()

    kept = [keep(quarantine, raw=b"x" * 200_000) for _ in range(50)]

    assert sum(kept) <= 22


@pytest.mark.parametrize(
    "sent",
    [
        {"raw": b"x" * MAX_REQUEST_BYTES},
        {"headers": {"x": "y" * MAX_REQUEST_BYTES}},
        {"headers": {"x": "\x00"}},
        {"target": "/webhooks/renders/\x00"},
    ],
)
def test_what_is_too_large_or_cannot_be_stored_is_not_kept(quarantine: Quarantine, sent: dict[str, Any]) -> None:
    assert not keep(quarantine, **sent)


def test_what_no_secret_could_admit_is_not_kept(quarantine: Quarantine) -> None:
    assert not keep(quarantine, an_entry("plain", "none", CLOCK))


def test_a_lost_write_is_lost_and_the_next_goes_on(quarantine: Quarantine, shelf: Shelf) -> None:
    shelf.error = RuntimeError("no")
    keep(quarantine)
    quarantine.flush()
    quarantine.stop()
    shelf.error = None

    keep(quarantine, token="t-2")
    quarantine.stop()

    assert [row.token for row in shelf.kept] == ["t-2"]


def test_a_flood_is_written_in_few_writes(quarantine: Quarantine, shelf: Shelf) -> None:
    for _ in range(90):
        keep(quarantine)
    quarantine.stop()

    assert len(shelf.kept) == 90
    assert shelf.writes <= 3


@pytest.mark.parametrize("prefix", [None, "Basic "])
def test_a_shared_secret_is_kept_as_its_digest_only(quarantine: Quarantine, shelf: Shelf, prefix: str | None) -> None:
    entry = an_entry("shared", "shared-secret", CLOCK, secrets=[TEXT_SECRET], webhook_prefix=prefix)
    headers = {"x-webhook-secret": (prefix or "") + "the-secret-as-sent", "authorization": "Bearer us", "cookie": "c"}

    keep(quarantine, entry, headers=headers)
    quarantine.stop()

    (row,) = shelf.kept
    assert "the-secret-as-sent" not in str(row.headers)
    assert len(row.headers["x-webhook-secret"]) == 64
    assert (row.headers["authorization"], row.headers["cookie"]) == ("[removed]", "[removed]")
