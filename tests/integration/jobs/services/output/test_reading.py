"""Listening to a run: every piece kept once and in order, whoever reads, and however often they die."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import READ_OUTPUT
from jobs.clock import FakeClock
from jobs.core.errors import Transient
from jobs.core.states import JobState
from jobs.providers.port import Gone
from jobs.services.output import reading as output_reading
from jobs.services.output.reading import MAX_STARTS, MAX_TRIES, Came, read_output
from jobs.services.output.streams import GRACE, can_follow_locked, claim_due
from jobs.services.resolving import Action, Resolution, resolve
from jobs.services.runtime import Runtime
from jobs.services.work import LEASE
from jobs.storage.database import Database
from jobs.storage.jobs import get_job, update_bookkeeping
from jobs.storage.output import append_output, find_stream, renew_stream, take_stream
from jobs.storage.output_schema import job_output, output_streams
from jobs.storage.premise import always
from reconciler.sweeps.streams import Streams
from tests.factories import TENANT, new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime
from tests.fakes.speaking import SpeakingProvider
from tests.services.waiting import wait_until


@pytest.fixture
def provider() -> SpeakingProvider:
    return SpeakingProvider()


@pytest.fixture
def runtime(database: Database, provider: SpeakingProvider, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setattr(output_reading, "COLLECT_S", 0.02)
    monkeypatch.setattr(output_reading, "_IDLE_S", 0.05)
    entries = {"renders": provider.entry()}
    made = a_runtime(database, providers=entries)
    made.observer.can_follow = partial(can_follow_locked, entries)
    return made


@pytest.fixture
def job_id(runtime: Runtime) -> str:
    return a_running_job(runtime)


def a_running_job(runtime: Runtime, **columns: Any) -> str:
    """A job whose run has just become known, by a webhook that came before the submit's answer."""
    job = new_job(runtime.database, **columns)
    observe(runtime, job["id"], JobState.RUNNING)
    return str(job["id"])


def observe(runtime: Runtime, job_id: str, state: JobState) -> None:
    with runtime.database.write() as tx:
        at = runtime.clock.now()
        runtime.observer.observe(tx, job_id, seen(state, provider_job_id=f"p-{job_id}", at=at))


def stream_of(runtime: Runtime, job_id: str) -> dict[str, Any]:
    with runtime.database.read() as tx:
        found = find_stream(tx, job_id)
    assert found is not None
    return dict(found)


def text_of(runtime: Runtime, job_id: str) -> str:
    """The stored text, whose batches must follow on one another."""
    with runtime.database.read() as tx:
        batches = tx.rows(sa.select(job_output).filter_by(job_id=job_id).order_by(job_output.c.offset))
    text = ""
    for batch in batches:
        assert batch["offset"] == len(text)
        text += batch["text"]
    stream = stream_of(runtime, job_id)
    assert {batch["generation"] for batch in batches} <= {stream["generation"]}
    assert stream["length"] == len(text)
    return text


@contextmanager
def listening(runtime: Runtime, job_id: str, token: str | None = None) -> Iterator[Callable[[], Came]]:
    """A reader in a thread of its own; gives a function that waits for what came of it."""
    came: list[Came | BaseException] = []

    def read() -> None:
        try:
            came.append(read_output(runtime, job_id, token))
        except BaseException as error:  # noqa: BLE001 - told by whoever asks
            came.append(error)

    thread = threading.Thread(target=read)

    def result() -> Came:
        thread.join(20)
        (only,) = came
        assert isinstance(only, Came), only
        return only

    thread.start()
    yield result
    thread.join(20)


def heard(runtime: Runtime, job_id: str, text: str) -> None:
    wait_until(lambda: stream_of(runtime, job_id)["length"] >= len(text), within_s=10, what="the text stored")
    assert text_of(runtime, job_id) == text


def test_a_run_is_listened_to_from_its_first_piece_to_its_last(
    runtime: Runtime, provider: SpeakingProvider, job_id: str
) -> None:
    provider.say("The ", "pigeon ", "flies ")

    with listening(runtime, job_id) as result:
        heard(runtime, job_id, "The pigeon flies ")
        provider.say("home: 鳩\x00.")
        heard(runtime, job_id, "The pigeon flies home: 鳩�.")
        provider.end()

        assert result() is Came.ENDED
    stream = stream_of(runtime, job_id)
    assert (stream["reason"], stream["next_read_at"], stream["lease_token"]) == ("complete", None, None)
    wait_until(lambda: provider.open_count == 0, within_s=5, what="the provider's connection closed")


def test_a_job_whose_run_says_nothing_has_no_stream(runtime: Runtime, provider: SpeakingProvider) -> None:
    job_id = a_running_job(runtime, input={"model": "mute"})

    with runtime.database.read() as tx:
        assert find_stream(tx, job_id) is None
    assert read_output(runtime, job_id) is Came.NOTHING


def test_an_adapter_that_breaks_when_asked_costs_its_stream_alone(
    runtime: Runtime, provider: SpeakingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "can_follow", lambda _inputs: 1 / 0)

    job_id = a_running_job(runtime)

    with runtime.database.read() as tx:
        assert find_stream(tx, job_id) is None


def test_f66_a_message_that_comes_twice_has_one_reader(
    runtime: Runtime, provider: SpeakingProvider, job_id: str
) -> None:
    """A redelivered message while the first copy reads: it finds the lease taken, and ends."""
    ((claimed, token),) = claim_due(runtime, 10)
    assert claimed == job_id
    provider.say("once ")

    with listening(runtime, job_id, token) as result:
        heard(runtime, job_id, "once ")
        again = [read_output(runtime, job_id, token), read_output(runtime, job_id)]
        provider.end()

        assert result() is Came.ENDED
    assert again == [Came.NOTHING, Came.NOTHING]
    assert len(provider.heard) == 1


def test_f67_a_reader_that_died_is_followed_by_one_that_goes_on(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    """The dead reader's lease runs out; the sweep rings; the next goes on after the last piece that was kept."""
    with runtime.database.write() as tx:
        dead = take_stream(tx, job_id, held=None, until=tx.now + output_reading.LEASE)
        assert dead is not None
        assert append_output(tx, dead, "The pigeon ", {"place": "2"})
    provider.said = ["The ", "pigeon ", "flies ", "home."]
    sweep, broker = Streams(), runtime.broker
    assert isinstance(broker, RecordingBroker)
    assert sweep.run_once(runtime, always).handled == 0
    clock.advance(output_reading.LEASE)

    assert sweep.run_once(runtime, always).rung == 1
    ((name, claimed, token),) = [message for message in broker.messages if message[0] == READ_OUTPUT]
    provider.end()
    came = read_output(runtime, claimed, token)

    assert (name, came) == (READ_OUTPUT, Came.ENDED)
    assert provider.heard == ["2"]
    assert text_of(runtime, job_id) == "The pigeon flies home."
    assert stream_of(runtime, job_id)["generation"] == 1


def test_i7_a_reader_that_was_overtaken_writes_nothing(runtime: Runtime, clock: FakeClock, job_id: str) -> None:
    with runtime.database.write() as tx:
        slow = take_stream(tx, job_id, held=None, until=tx.now + output_reading.LEASE)
        assert slow is not None
    clock.advance(output_reading.LEASE)
    with runtime.database.write() as tx:
        fresh = take_stream(tx, job_id, held=None, until=tx.now + output_reading.LEASE)
        assert fresh is not None
        assert append_output(tx, fresh, "fresh", {})

    with runtime.database.write() as tx:
        assert not append_output(tx, slow, "stale", {})
        assert not append_output(tx, fresh, "twice", {})  # its own batch, repeated after a lost answer

    assert text_of(runtime, job_id) == "fresh"


def test_where_the_provider_cannot_go_on_the_text_begins_anew_with_the_next_piece(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    provider.resumes_output = False
    with runtime.database.write() as tx:
        dead = take_stream(tx, job_id, held=None, until=tx.now + output_reading.LEASE)
        assert dead is not None
        assert append_output(tx, dead, "The pig", {})
    clock.advance(output_reading.LEASE)

    with listening(runtime, job_id) as result:
        wait_until(lambda: provider.heard == [None], within_s=5, what="a listener")
        assert text_of(runtime, job_id) == "The pig"
        provider.say("The ", "pigeon.")
        wait_until(lambda: stream_of(runtime, job_id)["generation"] == 2, within_s=5, what="another generation")
        heard(runtime, job_id, "The pigeon.")
        provider.end()
        assert result() is Came.ENDED


def test_what_was_heard_stays_where_nothing_more_can_be(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    provider.resumes_output = False
    with runtime.database.write() as tx:
        dead = take_stream(tx, job_id, held=None, until=tx.now + output_reading.LEASE)
        assert dead is not None
        assert append_output(tx, dead, "The pig", {})
    clock.advance(output_reading.LEASE)
    provider.end(Gone("kept no longer"))

    assert read_output(runtime, job_id) is Came.ENDED

    assert (text_of(runtime, job_id), stream_of(runtime, job_id)["reason"]) == ("The pig", "gone")


def test_a_stream_that_breaks_is_read_again_with_growing_waits_and_then_left(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    """Streaming is extra: it never fails the job."""
    waits = []
    for _ in range(MAX_TRIES - 1):
        provider.end(Transient("cut off"))
        assert read_output(runtime, job_id) is Came.RETRY
        waits.append(stream_of(runtime, job_id)["next_read_at"] - clock.now())
        clock.advance(waits[-1])
    provider.end(Transient("cut off"))

    assert read_output(runtime, job_id) is Came.ENDED

    assert waits[0] <= timedelta(seconds=2) < waits[-1] <= timedelta(seconds=60)
    assert stream_of(runtime, job_id)["reason"] == f"cut off (after {MAX_TRIES} tries)"
    with runtime.database.read() as tx:
        assert get_job(tx, job_id)["state"] == JobState.RUNNING


def test_a_new_piece_forgives_the_failures_before_it(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    provider.end(Transient("cut off"))
    read_output(runtime, job_id)
    clock.advance(timedelta(minutes=1))
    provider.said = ["The "]
    provider.end(Transient("cut off"))

    assert read_output(runtime, job_id) is Came.RETRY

    assert (stream_of(runtime, job_id)["tries"], text_of(runtime, job_id)) == (1, "The ")


def test_what_the_provider_asks_for_is_waited(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    provider.end(Transient("later", retry_after=timedelta(minutes=5)))

    read_output(runtime, job_id)

    assert stream_of(runtime, job_id)["next_read_at"] - clock.now() == timedelta(minutes=5)
    assert claim_due(runtime, 10) == []


def test_a_stream_that_kills_its_readers_is_left_alone(runtime: Runtime, clock: FakeClock, job_id: str) -> None:
    for _ in range(MAX_STARTS):
        with runtime.database.write() as tx:
            assert take_stream(tx, job_id, held=None, until=tx.now + output_reading.LEASE) is not None
        clock.advance(output_reading.LEASE)

    assert read_output(runtime, job_id) is Came.NOTHING

    assert stream_of(runtime, job_id)["reason"] == "unreadable"


def test_text_beyond_the_longest_is_cut_off(
    runtime: Runtime, provider: SpeakingProvider, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_reading, "MAX_CHARS", 10)
    provider.say("twelve chars", "more")

    assert read_output(runtime, job_id) is Came.ENDED

    assert (text_of(runtime, job_id), stream_of(runtime, job_id)["reason"]) == ("twelve cha", "truncated")


def test_a_finished_jobs_text_is_read_on_for_the_grace_and_no_longer(
    runtime: Runtime, provider: SpeakingProvider, clock: FakeClock, job_id: str
) -> None:
    with listening(runtime, job_id) as result:
        provider.say("The ")
        heard(runtime, job_id, "The ")
        observe(runtime, job_id, JobState.SUCCEEDED)
        clock.advance(timedelta(seconds=4))
        provider.say("end")
        heard(runtime, job_id, "The end")

        clock.advance(GRACE)
        provider.say(", too late")

        assert result() is Came.ENDED
    assert (text_of(runtime, job_id), stream_of(runtime, job_id)["reason"]) == ("The end", "job_ended")


def test_a_finished_job_whose_run_has_fallen_silent_is_not_waited_for(
    runtime: Runtime, clock: FakeClock, job_id: str
) -> None:
    with listening(runtime, job_id) as result:
        wait_until(lambda: stream_of(runtime, job_id)["starts"] == 1, within_s=5, what="a reader")
        observe(runtime, job_id, JobState.SUCCEEDED)
        clock.advance(output_reading.SILENCE)

        assert result() is Came.ENDED


def test_streams_that_nobody_waits_for_are_ended_where_nobody_reads_at_all(
    runtime: Runtime, clock: FakeClock, job_id: str
) -> None:
    observe(runtime, job_id, JobState.SUCCEEDED)
    overdue = a_running_job(runtime, deadline_at=clock.now() + timedelta(seconds=40))
    assert len(claim_due(runtime, 10)) == 2
    clock.advance(timedelta(seconds=60))

    assert claim_due(runtime, 10) == []

    assert {stream_of(runtime, each)["reason"] for each in (job_id, overdue)} == {"job_ended"}


def test_a_job_past_its_deadline_is_listened_to_no_longer(runtime: Runtime, clock: FakeClock, job_id: str) -> None:
    with listening(runtime, job_id) as result:
        wait_until(lambda: stream_of(runtime, job_id)["starts"] == 1, within_s=5, what="a reader")
        clock.advance(timedelta(hours=1))

        assert result() is Came.ENDED
    assert stream_of(runtime, job_id)["reason"] == "deadline"


def test_another_attempt_begins_another_text_and_the_old_reader_has_lost_it(
    runtime: Runtime, provider: SpeakingProvider, job_id: str
) -> None:
    with listening(runtime, job_id) as result:
        provider.say("The old")
        heard(runtime, job_id, "The old")
        with runtime.database.write() as tx:
            update_bookkeeping(tx, job_id, {"attempt": 2})
            renew_stream(tx, job_id, attempt=2)
        provider.say(" text")

        assert result() in (Came.LOST, Came.ENDED)
    stream = stream_of(runtime, job_id)
    assert (stream["attempt"], stream["generation"], text_of(runtime, job_id)) == (2, 2, "")
    assert (stream["next_read_at"], stream["ended_at"]) == (None, None)


def test_a_resubmit_begins_another_text_and_its_run_is_listened_to(
    runtime: Runtime, provider: SpeakingProvider, job_id: str
) -> None:
    provider.said = ["The old"]
    provider.end()
    read_output(runtime, job_id)
    with runtime.database.write() as tx:
        update_bookkeeping(tx, job_id, {"review_reason": "overdue", "review_since": tx.now})
    again = Resolution(action=Action.RESUBMIT, reason="once more", by="key_1")
    resolve(runtime, job_id, tenant=TENANT, decided=again)
    between = stream_of(runtime, job_id)

    with runtime.database.write() as tx:
        facts = {"attempt": 2, "provider_job_id": f"p-{job_id}-2", "at": tx.now}
        runtime.observer.observe(tx, job_id, seen(JobState.RUNNING, **facts))
    provider.said = ["The new"]
    provider.end()

    assert (between["generation"], between["length"], between["next_read_at"]) == (2, 0, None)
    assert read_output(runtime, job_id) is Came.ENDED
    assert (text_of(runtime, job_id), stream_of(runtime, job_id)["attempt"]) == ("The new", 2)


def test_a_process_that_ends_hands_its_readings_over(
    runtime: Runtime, provider: SpeakingProvider, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_reading, "_readings", output_reading._Readings())
    with listening(runtime, job_id) as result:
        provider.say("The ")
        heard(runtime, job_id, "The ")

        output_reading.hand_over()

        assert result() is Came.HANDED_OVER
    ((claimed, _token),) = claim_due(runtime, 10)
    assert claimed == job_id


def test_a_paused_account_is_not_listened_to(runtime: Runtime, provider: SpeakingProvider, job_id: str) -> None:
    with runtime.database.write() as tx:
        tx.execute(sa.text("INSERT INTO provider_accounts (name, paused_at) VALUES ('renders', 1)"))

    assert read_output(runtime, job_id) is Came.NOTHING

    assert provider.heard == []
    assert stream_of(runtime, job_id)["next_read_at"] > runtime.clock.now()


def test_a_database_that_was_busy_costs_no_piece(
    runtime: Runtime, provider: SpeakingProvider, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.core.errors import Unavailable

    write, failures = append_output, [Unavailable("busy"), Unavailable("busy")]

    def fail_first(*arguments: Any) -> bool:
        if failures:
            raise failures.pop()
        return write(*arguments)

    monkeypatch.setattr(output_reading, "append_output", fail_first)
    provider.say("The ", "end")
    provider.end()

    assert read_output(runtime, job_id) is Came.ENDED

    assert text_of(runtime, job_id) == "The end"


def test_the_more_streams_a_process_reads_the_larger_their_batches() -> None:
    readings = output_reading._Readings()

    for _ in range(100):
        readings.__enter__()

    assert readings.collect_s == pytest.approx(2.0)


def test_no_row_of_a_stream_can_say_two_things(runtime: Runtime, job_id: str) -> None:
    from sqlalchemy.exc import IntegrityError

    for change in ({"ended_at": runtime.clock.now()}, {"reason": "complete"}, {"length": -1}):
        with pytest.raises(IntegrityError), runtime.database.write() as tx:
            tx.execute(sa.update(output_streams).values(change))


# More of them than readers -----------------------------------------------------------------------------------


def tenants_of(runtime: Runtime, job_ids: list[str]) -> list[str]:
    with runtime.database.read() as tx:
        return [get_job(tx, job_id)["tenant"] for job_id in job_ids]


def test_tenants_take_turns_where_there_are_more_streams_than_may_wait(runtime: Runtime, clock: FakeClock) -> None:
    for _ in range(6):
        a_running_job(runtime, tenant="many")
    clock.advance(1)
    for tenant in ("few", "one"):
        a_running_job(runtime, tenant=tenant)

    claims = claim_due(runtime, 4)

    assert sorted(tenants_of(runtime, [job_id for job_id, _ in claims])) == ["few", "many", "many", "one"]


def test_streams_that_wait_for_a_reader_make_room_only_when_one_comes(runtime: Runtime) -> None:
    """Else the queue would grow by a message for each of them, over and over, for as long as all readers are busy."""
    for _ in range(5):
        a_running_job(runtime)
    claims = claim_due(runtime, 3)
    assert len(claims) == 3
    assert claim_due(runtime, 3) == []

    job_id, token = claims[0]
    with runtime.database.write() as tx:
        assert take_stream(tx, job_id, held=token, until=tx.now + LEASE)

    assert len(claim_due(runtime, 3)) == 1


def test_whoever_calls_for_a_reader_in_vain_waits_longer_each_time(runtime: Runtime, clock: FakeClock) -> None:
    """Twenty seconds at first, which is what a lost message costs; five minutes where nobody has time."""
    job_id, called = a_running_job(runtime), []
    for second in range(1000):
        if claim_due(runtime, 10):
            called.append(second)
        clock.advance(1)

    assert called == [0, 20, 60, 140, 300, 620, 940]
    assert stream_of(runtime, job_id)["rings"] == 7


def test_a_reader_that_came_is_called_soon_again_when_it_dies(runtime: Runtime, clock: FakeClock) -> None:
    job_id = a_running_job(runtime)
    for wait_s in (20, 40, 80):
        assert len(claim_due(runtime, 10)) == 1
        clock.advance(wait_s)
    with runtime.database.write() as tx:
        assert take_stream(tx, job_id, held=None, until=tx.now + LEASE)
    clock.advance(LEASE)
    claim_due(runtime, 10)

    left = stream_of(runtime, job_id)["lease_until"] - clock.now()

    assert left == LEASE
