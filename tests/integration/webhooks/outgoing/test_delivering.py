"""From a committed event to an endpoint's 2xx, whatever comes between."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from datetime import timedelta

import pytest
import standardwebhooks
import svix

from jobs.clock import FakeClock, SystemClock
from jobs.core.events import EventType
from jobs.services.documents import job_document
from jobs.services.relay import relay
from jobs.storage.database import Database
from jobs.storage.outbox import append_event
from jobs.storage.schema import jobs
from tests.integration.webhooks.outgoing.world import ADMIN, DOWN, OK, OPERATOR, STRANGER, Sent, World
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.endpoints import disable_endpoint, rotate_secret
from webhooks.outgoing.lanes import LEASE
from webhooks.outgoing.retrying import WAITS
from webhooks.outgoing.rounds import deliver_all
from webhooks.outgoing.schema import endpoints

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


class Killed(BaseException):
    """The worker's process is gone."""


def test_an_event_reaches_each_endpoint_that_wants_it_once(world: World) -> None:
    one, two = world.endpoint("http://127.0.0.1:1/one"), world.endpoint("http://127.0.0.1:1/two", "job.succeeded")
    world.endpoint("http://127.0.0.1:1/failures", "job.failed")
    event = world.event()

    world.run()

    assert sorted((sent.url, sent.event) for sent in world.sent) == [(one["url"], event), (two["url"], event)]
    assert {row["state"] for row in world.rows()} == {"succeeded"}


def test_the_envelope_is_the_event_as_it_was_committed(world: World) -> None:
    """F70: what is sent is what was written with the change."""
    world.endpoint()
    event = world.event()

    world.run()

    (sent,), (job,) = world.sent, world.rows(jobs)
    assert json.loads(sent.body) == {
        "id": event,
        "type": "job.succeeded",
        "schema_version": 1,
        "sequence": 1,
        "occurred_at": "2026-01-01T00:00:00.000000Z",
        "tenant": "acme",
        "data": {"job": job_document(job, with_input=False)},
    }
    assert sent.headers["Content-Type"] == "application/json"


def test_a_change_that_was_rolled_back_is_told_to_nobody(world: World) -> None:
    """F70: no event exists for what never became true."""
    world.endpoint()

    def write_and_die() -> None:
        with world.database.write() as tx:
            append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", data={})
            raise Killed

    with pytest.raises(Killed):
        write_and_die()
    world.run()

    assert world.sent == []


def test_another_tenants_events_and_those_of_the_fleet_stay_away(world: World) -> None:
    world.endpoint("http://127.0.0.1:1/acme", "*")
    world.endpoint("http://127.0.0.1:1/admin", "*", by=ADMIN)
    world.endpoint("http://127.0.0.1:1/globex", "job.*", by=STRANGER)
    mine, theirs = world.event(), world.event(tenant="globex")
    fleet = world.silence()

    world.run()

    received = {
        url: {sent.event for sent in world.sent if sent.url.endswith(url)} for url in ("acme", "admin", "globex")
    }
    assert received == {"acme": {mine}, "admin": {mine, fleet}, "globex": {theirs}}


def verify(sent: Sent, secret: str) -> None:
    headers = {name.lower(): value for name, value in sent.headers.items()}
    standardwebhooks.Webhook(secret).verify(sent.body, headers)
    renamed = {name.replace("webhook-", "svix-"): value for name, value in headers.items()}
    svix.Webhook(secret).verify(sent.body, renamed)


@pytest.fixture
def today(database: Database) -> FakeClock:
    """The vendors' libraries read the machine's clock."""
    clock = database.clock
    assert isinstance(clock, FakeClock)
    clock.advance(SystemClock().now() - clock.now())
    return clock


@pytest.mark.usefixtures("today")
def test_what_we_sign_is_verified_by_the_official_packages_and_by_hand(world: World) -> None:
    made = world.endpoint()
    event = world.event()

    world.run()

    (sent,) = world.sent
    verify(sent, made["secret"])
    assert sent.headers["webhook-id"] == event
    by_hand = hmac.new(made["secret"].encode(), sent.body, hashlib.sha256).hexdigest()
    assert sent.headers["X-Signature"] == f"sha256={by_hand}"


@pytest.mark.usefixtures("today")
def test_every_try_has_the_same_id_and_bytes_and_a_signature_of_its_own(world: World, clock: FakeClock) -> None:
    """F48: also over a rotation between two tries."""
    made = world.endpoint()
    world.event()
    world.receives(made["url"], DOWN)
    world.run()
    clock.advance(10 * MINUTE)
    rotated = rotate_secret(world.runtime, OPERATOR, made["id"], None)
    world.receives(made["url"], OK)

    world.run()

    first, second = world.sent
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) >= 600
    versions = second.headers["webhook-signature"].split()
    assert len(versions) == 2
    newest = hmac.new(rotated["secret"].encode(), second.body, hashlib.sha256).hexdigest()
    before = hmac.new(made["secret"].encode(), second.body, hashlib.sha256).hexdigest()
    assert second.headers["X-Signature"] == f"sha256={newest}"
    assert second.headers["X-Signature-Previous"] == f"sha256={before}"


@pytest.mark.usefixtures("today")
@pytest.mark.parametrize(("later", "signers"), [(timedelta(0), 2), (timedelta(hours=24), 1)])
def test_both_secrets_sign_for_a_day(world: World, clock: FakeClock, later: timedelta, signers: int) -> None:
    made = world.endpoint()
    rotated = rotate_secret(world.runtime, OPERATOR, made["id"], None)
    clock.advance(later)
    world.event()

    world.run()

    (sent,) = world.sent
    assert len(sent.headers["webhook-signature"].split()) == signers
    if signers == 2:
        verify(sent, made["secret"])
        verify(sent, rotated["secret"])


def test_retries_come_at_the_times_of_the_table(world: World, clock: FakeClock) -> None:
    made = world.endpoint()
    world.event()
    world.receives(made["url"], Answered(500, "status_500"))

    world.run()
    for wait in WAITS:
        due = world.row()["next_try_at"]
        assert 0.79 * wait < due - world.sent[-1].at < 1.21 * wait
        clock.advance(due - clock.now())
        world.run()

    assert len(world.sent) == 10
    assert (world.row()["state"], world.row()["attempts"]) == ("failed", 10)
    assert "dead_letter.created" in world.told()


def test_a_retry_after_is_obeyed_for_the_endpoint_as_a_whole(world: World, clock: FakeClock) -> None:
    made = world.endpoint(concurrency=1)
    first, second = world.event(), world.event()
    world.receives(made["url"], Answered(429, "status_429", None, "120"))
    world.run()
    world.receives(made["url"], OK)

    clock.advance(100)
    world.run()
    assert [sent.event for sent in world.sent] == [first]

    clock.advance(21)
    world.run()
    assert {sent.event for sent in world.sent} == {first, second}
    assert {row["state"] for row in world.rows()} == {"succeeded"}


def test_410_disables_at_once_and_events_are_held(world: World) -> None:
    made = world.endpoint()
    world.events(3)
    world.receives(made["url"], Answered(410, "status_410"))

    world.run()

    world.event()
    world.run()
    assert world.lane(made)["state"] == "disabled"
    assert [row["state"] for row in world.rows()] == ["held"] * 4
    assert world.told().count("endpoint.disabled") == 1


def test_five_days_of_failure_disable(world: World, clock: FakeClock) -> None:
    made = world.endpoint()
    world.receives(made["url"], DOWN)
    for _ in range(6):
        world.event()
        world.run()
        assert world.lane(made)["state"] == "enabled" or clock.now().day == 6
        clock.advance(DAY)

    assert world.lane(made)["state"] == "disabled"
    assert world.told().count("endpoint.disabled") == 1


def test_two_failures_a_week_apart_are_no_outage(world: World, clock: FakeClock) -> None:
    made = world.endpoint()
    world.receives(made["url"], Answered(410 - 10, "status_400"))
    with world.database.write() as tx:
        week_ago = tx.now - timedelta(days=7)
        tx.execute(endpoints.update().values(failing_since=week_ago, last_failed_at=week_ago))
    world.event()

    world.run()

    assert world.lane(made)["state"] == "enabled"
    assert world.lane(made)["failing_since"] == world.sent[-1].at


@pytest.mark.parametrize("after", ["before the answer", "after the answer"])
def test_a_worker_killed_around_the_answer_sends_the_same_bytes_again(
    world: World, clock: FakeClock, after: str
) -> None:
    """F66: the receiver may see it twice, always with the same id and bytes; the log shows both tries."""
    made = world.endpoint()

    def dies(_sent: Sent) -> Answered:
        raise Killed(after)

    world.receives(made["url"], dies)
    world.event()
    world.relay()
    world.look()
    with pytest.raises(Killed):
        world.work()
    world.receives(made["url"], OK)

    clock.advance(LEASE + timedelta(seconds=1))
    world.run()

    first, second = world.sent
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert [(line["number"], line["status"]) for line in world.log()] == [(1, None), (2, 200)]
    assert (world.row()["state"], world.row()["attempts"]) == ("succeeded", 2)


def test_a_message_that_comes_twice_sends_once(world: World) -> None:
    world.endpoint()
    world.event()
    world.relay()
    world.look()
    (claims,) = world.messages()

    deliver_all(world.runtime, claims, send=world.send)
    deliver_all(world.runtime, claims, send=world.send)

    assert len(world.sent) == 1


def test_who_lost_the_lease_does_not_overwrite_the_new_owner(world: World, clock: FakeClock) -> None:
    """F66: a slow worker's late word is in the log, and nowhere else."""
    made = world.endpoint()
    world.event()
    world.relay()
    world.look()

    def slow(_sent: Sent) -> Answered:
        clock.advance(LEASE + timedelta(seconds=1))
        world.receives(made["url"], OK)
        world.look()
        world.work()
        return DOWN

    world.receives(made["url"], slow)
    world.work()

    assert world.row()["state"] == "succeeded"
    assert [(line["number"], line["status"], line["error"]) for line in world.log()] == [
        (1, None, "not_sent"),
        (2, 200, None),
    ]


def test_two_relays_at_once_open_one_delivery(world: World) -> None:
    """F66."""
    world.endpoint()
    world.events(30)
    threads = [threading.Thread(target=relay, args=(world.runtime,)) for _ in range(2)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.run()

    assert len(world.rows()) == 30
    assert len({sent.event for sent in world.sent}) == len(world.sent) == 30


def test_a_lost_message_costs_the_rest_of_its_lease(world: World, clock: FakeClock) -> None:
    world.endpoint()
    world.event()
    world.relay()
    world.look()
    world.messages()

    clock.advance(LEASE)
    world.run()

    assert len(world.sent) == 1
    assert world.row()["attempts"] == 1


def test_a_disabled_endpoint_is_sent_nothing_even_by_messages_on_their_way(world: World) -> None:
    made = world.endpoint()
    world.event()
    world.relay()
    world.look()
    disable_endpoint(world.runtime, OPERATOR, made["id"])

    world.work()

    assert world.sent == []
    assert world.row()["state"] == "held"


def test_a_jobs_events_are_sent_one_at_a_time_in_their_order(world: World) -> None:
    """F67: order is promised per job and endpoint, where nothing fails; other jobs do not wait."""
    world.endpoint()
    mine = world.whole_job()
    others = world.events(3)
    world.relay()

    world.look()
    (claims,) = world.messages()
    claimed = {row["event_id"] for row in world.rows() if row["id"] in {claim.delivery_id for claim in claims}}
    assert claimed == {mine[0], *others}

    for claim in claims:
        deliver_all(world.runtime, [claim], send=world.send)
    world.run()
    assert [sent.event for sent in world.sent if sent.event in mine] == mine


@pytest.mark.parametrize("losses", [1, 3])
def test_a_lost_message_does_not_let_a_jobs_later_events_pass(world: World, clock: FakeClock, losses: int) -> None:
    """F67: what was claimed and never sent is still the first of its job when its lease has ended."""
    world.endpoint()
    jobs = [world.whole_job() for _ in range(3)]
    world.relay()
    for _ in range(losses):
        world.look()
        assert world.messages()
        clock.advance(LEASE)

    world.run()

    for mine in jobs:
        assert [sent.event for sent in world.sent if sent.event in mine] == mine


def test_a_worker_killed_while_sending_does_not_let_a_jobs_later_events_pass(world: World, clock: FakeClock) -> None:
    """F66, F67: at a receiver that is well, the same event comes again before the next one."""
    made = world.endpoint()
    mine = world.whole_job()
    world.relay()
    world.look()

    def dies(_sent: Sent) -> Answered:
        raise Killed("answer")

    world.receives(made["url"], dies)
    with pytest.raises(Killed):
        world.work()
    world.receives(made["url"], OK)
    clock.advance(LEASE)
    world.run()

    assert [sent.event for sent in world.sent] == [mine[0], *mine]


def test_what_was_lost_waits_its_turn_at_an_endpoint_that_takes_one_at_a_time(world: World, clock: FakeClock) -> None:
    world.endpoint(concurrency=1)
    first, second = world.whole_job(), world.whole_job()
    world.relay()
    world.look()
    world.messages()
    clock.advance(LEASE)

    world.run()

    for mine in (first, second):
        assert [sent.event for sent in world.sent if sent.event in mine] == mine
