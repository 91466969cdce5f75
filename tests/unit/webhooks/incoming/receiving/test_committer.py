"""Group commit, without a database: batches, their limits, and the memory of what was seen committed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import pytest

from jobs.core.errors import Unavailable
from tests.unit.webhooks.incoming.test_events import an_event
from webhooks.incoming.events import KnownEvent, NewEvent, Stored
from webhooks.incoming.receiving.committer import Committer, _Caller
from webhooks.incoming.receiving.seen import SeenEvents


class Inbox:
    """Stores in memory; can be held up, so that a batch gathers."""

    def __init__(self) -> None:
        self.batches: list[list[str | None]] = []
        self.copies: Counter[str] = Counter()
        self.rings = 0
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def store(self, events: Sequence[NewEvent]) -> list[Stored]:
        self.reached.set()
        assert self.go_on.wait(5)
        self.batches.append([event.delivery_id for event in events])
        return [Stored("accepted", event.id, KnownEvent(event.id, event.digest, event.fact), True) for event in events]

    def count(self, copies: Mapping[str, int]) -> dict[str, int]:
        self.copies.update(copies)
        return {}

    def ring(self) -> None:
        self.rings += 1


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def committer(inbox: Inbox) -> Iterator[Committer]:
    built = Committer(inbox.store, count_copies=inbox.count, on_commit=inbox.ring, caller_wait=timedelta(seconds=5))
    yield built
    built.stop()


def submit_all(committer: Committer, count: int, *, prefix: str = "m", raw: bytes = b"{}") -> list[threading.Thread]:
    threads = [
        threading.Thread(target=committer.submit, args=(an_event(header_id=f"{prefix}{number}", raw=raw),))
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    return threads


def finish(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def gather(committer: Committer, inbox: Inbox, count: int, *, raw: bytes = b"{}") -> None:
    """Holds the first commit up until ``count`` more events wait."""
    inbox.go_on.clear()
    first = submit_all(committer, 1)
    assert inbox.reached.wait(5)
    others = submit_all(committer, count, prefix="w", raw=raw)
    while len(committer._queue) < count:
        threading.Event().wait(0.001)
    inbox.go_on.set()
    finish([*first, *others])


def test_what_waits_while_a_commit_is_under_way_is_the_next_batch(committer: Committer, inbox: Inbox) -> None:
    gather(committer, inbox, 10)

    assert [len(batch) for batch in inbox.batches] == [1, 10]
    assert inbox.rings == 2


def test_a_batch_is_bounded_by_rows(committer: Committer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.incoming.receiving.committer._MAX_BATCH", 4)

    gather(committer, inbox, 10)

    assert [len(batch) for batch in inbox.batches] == [1, 4, 4, 2]


def test_a_batch_is_bounded_by_bytes(committer: Committer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.incoming.receiving.committer._MAX_BATCH_BYTES", 250)

    gather(committer, inbox, 6, raw=b"x" * 100)

    assert [len(batch) for batch in inbox.batches] == [1, 3, 3]


def test_an_event_alone_waits_for_no_timer(committer: Committer, inbox: Inbox) -> None:
    for number in range(3):
        committer.submit(an_event(header_id=f"m{number}"))

    assert [len(batch) for batch in inbox.batches] == [1, 1, 1]


def test_a_batch_is_held_open_until_it_is_as_large_as_the_last_one(committer: Committer, inbox: Inbox) -> None:
    """Those released together come back together; else each commit would take half of them."""
    gather(committer, inbox, 3)
    committer._gathering_pause_s = 60

    finish(submit_all(committer, 3, prefix="back"))

    assert [len(batch) for batch in inbox.batches] == [1, 3, 3]


def test_those_who_waited_meanwhile_are_held_until_those_released_are_back(committer: Committer, inbox: Inbox) -> None:
    """Else two halves of the callers would take turns, and each commit would serve one of them."""
    gather(committer, inbox, 3)
    committer._gathering_pause_s = 60
    inbox.go_on.clear()
    inbox.reached.clear()
    released = submit_all(committer, 3, prefix="one")
    assert inbox.reached.wait(5)
    waiting = submit_all(committer, 2, prefix="other")
    while len(committer._queue) < 2:
        threading.Event().wait(0.001)

    inbox.go_on.set()
    finish(released)
    finish([*waiting, *submit_all(committer, 3, prefix="back")])

    assert [len(batch) for batch in inbox.batches] == [1, 3, 3, 5]


def test_a_batch_is_held_open_no_longer_than_more_keep_coming(committer: Committer, inbox: Inbox) -> None:
    gather(committer, inbox, 3)

    committer.submit(an_event(header_id="alone"))
    committer.submit(an_event(header_id="again"))

    assert inbox.batches[2:] == [["alone"], ["again"]]


def test_whoever_waits_in_an_open_batch_is_committed_at_a_stop(committer: Committer, inbox: Inbox) -> None:
    """I14: nobody is lost between the queue and the commit."""
    gather(committer, inbox, 5)
    committer._gathering_pause_s = 60
    waiting = submit_all(committer, 2, prefix="late")
    while len(committer._queue) < 2:
        threading.Event().wait(0.001)

    committer.stop()

    finish(waiting)
    assert sorted(map(str, inbox.batches[2])) == ["late0", "late1"]


def test_an_open_batch_that_everybody_has_left_ends_no_thread(
    committer: Committer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever came between a thread's last look and its end would wait for nobody."""
    committer.submit(an_event(header_id="first"))
    thread, wait, have_left = committer._thread, committer._condition.wait, threading.Event()

    def leave(timeout: float | None = None) -> bool:
        if not committer._queue:
            return wait(timeout)
        committer._queue.clear()
        have_left.set()
        return False

    monkeypatch.setattr(committer._condition, "wait", leave)
    with committer._condition:
        committer._expected = 2
        committer._queue.append(_Caller(an_event(header_id="impatient")))
        committer._condition.notify()
    assert have_left.wait(5)

    committer.submit(an_event(header_id="next"))

    assert committer._thread is thread
    assert inbox.batches == [["first"], ["next"]]


def test_a_thread_that_died_is_replaced_at_the_next_event(committer: Committer, inbox: Inbox) -> None:
    gather(committer, inbox, 3)
    committer.stop()
    committer._queue.append(_Caller(an_event(header_id="left behind")))

    committer.submit(an_event(header_id="next"))

    assert inbox.batches[2:] == [["left behind", "next"]]


def test_while_a_commit_holds_everybody_up_nobody_else_waits_for_it(inbox: Inbox) -> None:
    """F19: no hanging threads; those that a frozen database held would keep the others from their 503."""
    committer = Committer(
        inbox.store, count_copies=inbox.count, on_commit=inbox.ring, caller_wait=timedelta(milliseconds=20)
    )
    inbox.go_on.clear()
    with pytest.raises(Unavailable, match="not stored in time"):
        committer.submit(an_event(header_id="m1"))

    committer._caller_wait_s = 60
    with pytest.raises(Unavailable, match="taking too long"):
        committer.submit(an_event(header_id="m2"))

    inbox.go_on.set()
    while committer._is_busy:
        threading.Event().wait(0.001)
    assert committer.submit(an_event(header_id="m3")).status == "accepted"
    committer.stop()
    assert inbox.batches == [["m1"], ["m3"]]


def test_only_what_was_seen_committed_answers_a_repeat(committer: Committer, inbox: Inbox) -> None:
    inbox.store, whole = lambda _events: (_ for _ in ()).throw(Unavailable()), inbox.store  # type: ignore[method-assign,assignment]
    committer._store = inbox.store
    with pytest.raises(Unavailable):
        committer.submit(an_event())
    committer._store = whole

    first = committer.submit(an_event())
    second = committer.submit(an_event())
    committer.stop()

    assert (first.status, second.status) == ("accepted", "duplicate")
    assert inbox.batches == [["msg_1"]]
    assert inbox.copies == {first.event_id: 1}


def test_a_count_that_fails_is_made_with_the_next(committer: Committer, inbox: Inbox) -> None:
    failures = [Unavailable(), ValueError("odd")]

    def count(copies: Mapping[str, int]) -> dict[str, int]:
        if failures:
            raise failures.pop()
        return inbox.count(copies)

    committer._count_copies = count
    committer.submit(an_event())
    for _ in range(3):
        committer.submit(an_event())
        committer.stop()

    assert failures == []
    assert sum(inbox.copies.values()) >= 1


def test_after_a_stop_the_next_event_starts_another_thread(committer: Committer, inbox: Inbox) -> None:
    committer.submit(an_event(header_id="m1"))
    committer.stop()
    committer.submit(an_event(header_id="m2"))

    assert inbox.batches == [["m1"], ["m2"]]


def test_the_longest_unused_is_forgotten_first() -> None:
    seen = SeenEvents(capacity=2)
    events = [an_event(header_id=f"m{number}") for number in range(3)]
    seen.add(events[0].key, KnownEvent("e0", events[0].digest, events[0].fact))
    seen.add(events[1].key, KnownEvent("e1", events[1].digest, events[1].fact))
    assert seen.find_repeated(events[0]) is not None

    seen.add(events[2].key, KnownEvent("e2", events[2].digest, events[2].fact))

    assert [seen.find_repeated(event) is not None for event in events] == [True, False, True]
