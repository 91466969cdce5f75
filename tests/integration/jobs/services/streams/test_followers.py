from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs.core.cursors import Cursor
from jobs.core.errors import Unavailable
from jobs.core.observations import Progress
from jobs.core.states import JobState
from jobs.services.documents import Row
from jobs.services.stream_bell import CHANNEL, RedisBell, announce
from jobs.services.streams import output as stream_output
from jobs.services.streams.followers import Follower, Streams, TooManyStreams
from jobs.services.streams.messages import Message
from jobs.services.streams.reading import News, open_stream
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import get_job
from jobs.storage.output import append_output, arm_stream, begin_text_anew, end_stream, find_stream, take_stream
from jobs.tasks.relay import relay
from tests.factories import TENANT, an_observer, new_job, seen
from tests.fakes.runtime import a_runtime
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

SOON_S = 2.0


class NoBell:
    """Only the period wakes the reader."""

    def wait(self, at_most_s: float) -> None:
        threading.Event().wait(at_most_s)

    def close(self) -> None:
        return


def some_streams(database: Database, *, bell: RedisBell | NoBell | None = None, period_s: float = 0.02) -> Streams:
    return Streams(database, bell or NoBell(), seats=40, seats_per_tenant=30, period=timedelta(seconds=period_s))


def observe(database: Database, job_id: str, state: JobState, progress: float | None = None) -> None:
    with database.write() as tx:
        told = Progress(progress, None) if progress is not None else None
        an_observer().observe(tx, job_id, seen(state, progress=told, provider_job_id=f"p-{job_id}"))


def opening_of(database: Database, job_id: str, last_id: str | None = None) -> News:
    return open_stream(database, tenant=TENANT, job_id=job_id, last_id=last_id)


def join(streams: Streams, database: Database, job_id: str, last_id: str | None = None) -> tuple[Follower, News]:
    follower = streams.enter(tenant=TENANT, job_id=job_id)
    opening = opening_of(database, job_id, last_id)
    streams.follow(follower, opening.place)
    return follower, opening


def hear(follower: Follower, within_s: float = SOON_S) -> Message:
    message = follower.next(within_s)
    assert message is not None, "the stream was let go"
    return message


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, socket_timeout=0.5) as connected:
        yield connected


@pytest.fixture
def no_thread_stays() -> Iterator[None]:
    yield
    wait_until(
        lambda: all(thread.name != "stream-reader" for thread in threading.enumerate()),
        within_s=10,
        what="the end of the reader",
    )


def test_a_follower_is_told_each_event_once(database: Database, no_thread_stays: None) -> None:
    job_id = new_job(database)["id"]
    streams = some_streams(database)
    follower, opening = join(streams, database, job_id)

    observe(database, job_id, JobState.RUNNING)
    observe(database, job_id, JobState.RUNNING, 0.5)
    first, second = hear(follower), hear(follower)
    if second.type == "job.started":  # accepted and started are two events of one observation
        first, second = second, hear(follower)
    observe(database, job_id, JobState.SUCCEEDED)
    third = hear(follower)

    assert [message.type for message in opening.messages] == ["snapshot"]
    assert (first.type, second.type, third.type) == ("job.started", "job.progress", "job.succeeded")
    assert second.data["data"]["job"]["progress"] == {"fraction": 0.5, "message": None}
    assert third.is_last
    streams.leave(follower)


def test_a_finished_job_is_told_with_its_end_and_then_is_over(database: Database) -> None:
    job_id = new_job(database)["id"]
    observe(database, job_id, JobState.SUCCEEDED)

    opening = opening_of(database, job_id)

    assert [message.type for message in opening.messages] == ["snapshot", "job.succeeded"]
    assert opening.is_whole
    end = opening.messages[-1].place
    assert end is not None
    assert opening_of(database, job_id, end.cursor.to_text(job_id)).is_over


@pytest.mark.parametrize("last_id", ["junk", "0", "x.1.1", "\x00", "7" * 200])
def test_an_unknown_place_begins_anew_and_says_so(database: Database, last_id: str) -> None:
    job_id = new_job(database)["id"]

    (snapshot,) = opening_of(database, job_id, last_id).messages

    assert snapshot.data["reset"] is True
    assert snapshot.place is None


def test_a_place_in_the_future_is_unknown(database: Database) -> None:
    job_id = new_job(database)["id"]

    (snapshot,) = opening_of(database, job_id, Cursor(9, 9).to_text(job_id)).messages

    assert snapshot.data["reset"] is True


def test_f63_a_job_that_ends_between_the_reading_and_the_joining_is_told(database: Database) -> None:
    """F63: finished between the snapshot and the subscription."""
    job_id = new_job(database)["id"]
    streams = some_streams(database)
    follower = streams.enter(tenant=TENANT, job_id=job_id)
    opening = opening_of(database, job_id)

    observe(database, job_id, JobState.SUCCEEDED)
    streams.follow(follower, opening.place)

    heard = [hear(follower)]
    while not heard[-1].is_last:
        heard.append(hear(follower))
    assert heard[-1].type == "job.succeeded"
    streams.leave(follower)


def test_f63_a_job_that_ends_before_the_subscription_is_confirmed_is_told(
    database: Database, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F63, the variant: SUBSCRIBE was sent and not confirmed; a long period shows that the look after it finds it."""
    job_id = new_job(database)["id"]
    bell = RedisBell(client, monotonic=lambda: 0.0)
    subscribe = bell._subscribe

    def finish_first(client: redis.Redis) -> None:
        observe(database, job_id, JobState.SUCCEEDED)
        subscribe(client)

    monkeypatch.setattr(bell, "_subscribe", finish_first)
    streams = some_streams(database, bell=bell, period_s=5)
    follower, _ = join(streams, database, job_id)

    while not hear(follower).is_last:
        pass
    streams.leave(follower)
    announce(client)


def test_a_ring_is_heard_before_the_period_is_over(database: Database, client: redis.Redis) -> None:
    job_id = new_job(database)["id"]
    streams = some_streams(database, bell=RedisBell(client, monotonic=lambda: 0.0), period_s=20)
    follower, _ = join(streams, database, job_id)
    wait_until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 1, within_s=10, what="the subscription")

    client.flushall()  # what Redis forgets is none of a stream's business
    observe(database, job_id, JobState.SUCCEEDED)
    announce(client)

    while not hear(follower, 10).is_last:
        pass
    streams.leave(follower)
    announce(client)
    wait_until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 0, within_s=10, what="the end of the subscription")


def test_the_relay_rings_once_it_has_relayed(
    database: Database, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = a_runtime(database)
    runtime.redis = client
    monkeypatch.setattr("jobs.tasks.relay.current", lambda: runtime)
    observe(database, new_job(database)["id"], JobState.RUNNING)
    with client.pubsub() as heard:
        heard.subscribe(CHANNEL)
        assert heard.get_message(timeout=5)["type"] == "subscribe"

        relay()
        relay()  # nothing was left for it

        assert heard.get_message(timeout=5)["type"] == "message"
        assert heard.get_message(timeout=0.1) is None


def test_streams_go_on_while_redis_is_away(database: Database, tmp_path: Path) -> None:
    service = RedisService.start_in(tmp_path)
    client = redis.Redis.from_url(service.url, socket_timeout=0.5, socket_connect_timeout=0.5)
    job_id = new_job(database)["id"]
    streams = some_streams(database, bell=RedisBell(client, monotonic=lambda: 0.0), period_s=0.1)
    follower, _ = join(streams, database, job_id)
    wait_until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 1, within_s=10, what="the subscription")

    service.kill()
    observe(database, job_id, JobState.SUCCEEDED)

    while not hear(follower, 10).is_last:
        pass
    streams.leave(follower)
    client.close()


def test_seats_are_bounded_for_a_tenant_and_for_all(database: Database) -> None:
    streams = some_streams(database)
    taken = [streams.enter(tenant=TENANT, job_id="job_1") for _ in range(30)]

    with pytest.raises(TooManyStreams) as refused:
        streams.enter(tenant=TENANT, job_id="job_1")
    assert (refused.value.status, refused.value.retry_after) == (429, timedelta(seconds=10))
    others = [streams.enter(tenant="globex", job_id="job_2") for _ in range(10)]
    with pytest.raises(Unavailable):
        streams.enter(tenant="globex", job_id="job_2")

    for follower in [*taken, *others, *others]:
        streams.leave(follower)
    assert streams.occupied == 0


def test_a_job_that_cannot_be_read_ends_its_own_streams_only(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.services.streams import followers

    sick, sound = new_job(database)["id"], new_job(database)["id"]
    find: Callable[[Transaction, str], object] = followers.find_job

    def find_or_fail(tx: Transaction, job_id: str) -> object:
        if job_id == sick:
            raise ValueError("no JSON")
        return find(tx, job_id)

    monkeypatch.setattr(followers, "find_job", find_or_fail)
    streams = some_streams(database)
    ill, _ = join(streams, database, sick)
    well, _ = join(streams, database, sound)

    observe(database, sick, JobState.FAILED)
    observe(database, sound, JobState.SUCCEEDED)

    assert ill.next(SOON_S) is None
    assert hear(well) is not None
    streams.leave(ill)
    streams.leave(well)


def test_a_reader_far_behind_is_let_go(database: Database) -> None:
    streams = some_streams(database)
    follower, opening = join(streams, database, new_job(database)["id"])

    follower.tell([Message("job.progress", {}, opening.place)] * 101, opening.place)

    assert [follower.next(0) is None for _ in range(102)] == [False] * 101 + [True]
    streams.leave(follower)


STEPS = st.lists(
    st.sampled_from(["running", "progress", "say", "say", "hear", "hear", "anew", "cut", "hush", "wipe"]), max_size=20
)


@pytest.mark.invariant("I12")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(steps=["say", "hear", "hear", "anew", "hear", "cut", "say"], end=JobState.SUCCEEDED)
@example(steps=["say", "hear", "cut", "hear", "say", "cut", "anew", "anew"], end=JobState.FAILED)
@given(steps=STEPS, end=st.sampled_from([JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED]))
def test_a_resume_has_no_gap_and_no_duplicate(
    database: Database, client: redis.Redis, monkeypatch: pytest.MonkeyPatch, steps: list[str], end: JobState
) -> None:
    """I12: wherever a stream is cut, its parts add up to the job's events, each once, and to the whole of its output;
    whatever Redis forgets, and also where the output began anew in between.
    """
    monkeypatch.setattr(stream_output, "PIECE_CHARS", 2)  # shorter than what is said at once
    reader, speaker = Reader(database), Speaker(database)
    speaker.begin(reader.job_id)
    fraction = 0.0
    for step in steps:
        if step == "cut":
            reader.reconnect()
        elif step == "hear":
            reader.hear_one()
        elif step in ("say", "anew", "hush"):
            speaker.act(step)
        elif step == "wipe":
            client.flushall()
        else:
            fraction += 0.01
            reader.observe(JobState.RUNNING, fraction if step == "progress" else None)
    reader.observe(end)
    reader.hear_all()
    speaker.act("say")
    speaker.act("hush")
    reader.hear_all()
    reader.reconnect()
    reader.hear_all()

    assert reader.sequences == list(range(2, reader.event_count + 1))
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.text == speaker.text
    assert reader.is_over


class Speaker:
    """Whoever listens to a run and keeps its text."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stream: Row = {}
        self.text = ""

    def begin(self, job_id: str) -> None:
        with self._database.write() as tx:
            arm_stream(tx, job_id=job_id, provider="renders", attempt=1)
            taken = take_stream(tx, job_id, held=None, until=tx.now + timedelta(days=1))
        assert taken is not None
        self._stream = taken

    def act(self, step: str) -> None:
        """Says a piece, begins anew with one, or falls silent for good."""
        if self._stream["ended_at"] is not None:
            return
        with self._database.write() as tx:
            if step == "anew":
                anew = begin_text_anew(tx, self._stream)
                assert anew is not None
                self._stream, self.text = anew, ""
            if step == "hush":
                assert end_stream(tx, self._stream, "complete")
            else:
                piece = f"鳩{len(self.text)} "
                assert append_output(tx, self._stream, piece, {})
                self.text += piece
            found = find_stream(tx, self._stream["job_id"])
        assert found is not None
        self._stream = found


class Reader:
    """A reader whose connection may break after any message; the streams' thread looks when it is told to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.job_id = new_job(database, event_count=1)["id"]
        self._streams = some_streams(database)
        self._streams._is_reading = True  # no thread: a look happens where the test says
        self._last_id: str | None = None
        self._pending: list[Message] = []
        self._follower: Follower | None = None
        self.sequences: list[int] = []
        self.text = ""
        self._has_end = False
        self.ids: list[str] = []
        self.is_over = False
        self.reconnect()

    @property
    def event_count(self) -> int:
        with self._database.read() as tx:
            return int(get_job(tx, self.job_id)["event_count"])

    def observe(self, state: JobState, progress: float | None = None) -> None:
        observe(self._database, self.job_id, state, progress)

    def reconnect(self) -> None:
        if self._follower is not None:
            self._streams.leave(self._follower)
        self._follower = self._streams.enter(tenant=TENANT, job_id=self.job_id)
        opening = opening_of(self._database, self.job_id, self._last_id)
        self.is_over = opening.is_over
        self._pending = list(opening.messages)
        if self._last_id is None:
            self._hear(self._pending.pop(0))
        self._streams.follow(self._follower, opening.place)

    def hear_one(self) -> None:
        self._look()
        if self._pending:
            self._hear(self._pending.pop(0))

    def hear_all(self) -> None:
        """A reader that was behind is told the rest look by look."""
        self._look()
        while self._pending:
            self._hear(self._pending.pop(0))
            self._look()

    def _look(self) -> None:
        assert self._follower is not None
        self._streams._look(self._streams._followed())
        while True:
            try:
                message = self._follower.next(0)
            except queue.Empty:
                return
            assert message is not None
            self._pending.append(message)

    def _hear(self, message: Message) -> None:
        if message.place is None:
            # A snapshot tells everything up to where it is: count that as heard.
            self.sequences = list(range(2, self._snapshot_sequence() + 1))
            return
        assert not self._has_end, "told after its end"
        self._has_end = message.is_last
        self._last_id = message.place.cursor.to_text(self.job_id)
        self.ids.append(self._last_id)
        if message.type == "job.output.delta":
            assert message.data["data"]["offset"] == len(self.text)
            self.text += message.data["data"]["text"]
        elif message.type == "job.output.reset":
            self.text = ""
        if message.data["sequence"] is not None:
            self.sequences.append(message.data["sequence"])

    def _snapshot_sequence(self) -> int:
        return self.event_count


@pytest.mark.parametrize("fault", [ValueError("I/O operation on closed file"), AttributeError("recv")])
def test_a_client_closed_under_the_reader_is_only_a_lost_bell(fault: Exception) -> None:
    """redis-py raises these where the process closes its client while a thread listens."""

    class Closed:
        def pubsub(self) -> Any:
            raise fault

    bell = RedisBell(Closed(), monotonic=lambda: 0.0)  # type: ignore[arg-type]

    bell.wait(0.01)
    bell.close()
