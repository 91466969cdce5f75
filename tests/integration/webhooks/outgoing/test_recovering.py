"""What an endpoint missed is kept, and comes when it is asked for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Conflict, NotFound, Unprocessable
from jobs.services.letters.dead_letters import redrive
from jobs.storage.schema import dead_letters
from tests.factories import T
from tests.integration.webhooks.outgoing.world import DOWN, OK, OPERATOR, STRANGER, World
from webhooks.outgoing import recovering
from webhooks.outgoing.deliveries import read_delivery, resend
from webhooks.outgoing.endpoints import (
    delete_endpoint,
    disable_endpoint,
    enable_endpoint,
    recover_endpoint,
)
from webhooks.outgoing.letters import LETTER_KIND, redrive_delivery
from webhooks.outgoing.retrying import MAX_TRIES

HOUR = timedelta(hours=1)


def exhaust(world: World, clock: FakeClock) -> None:
    for _ in range(MAX_TRIES):
        world.run()
        row = world.row()
        if row["next_try_at"] is not None:
            clock.advance(row["next_try_at"] - clock.now())


def test_enabling_sends_from_now_on_and_recovering_brings_the_rest(world: World) -> None:
    made = world.endpoint()
    disable_endpoint(world.runtime, OPERATOR, made["id"])
    missed = world.events(3)
    world.run()
    enable_endpoint(world.runtime, OPERATOR, made["id"])
    fresh = world.event()
    world.run()
    assert [sent.event for sent in world.sent] == [fresh]

    recover_endpoint(world.runtime, OPERATOR, made["id"], since=T - HOUR, until=None)
    world.run()

    assert {sent.event for sent in world.sent} == {*missed, fresh}
    assert len(world.sent) == 4


def test_a_recovery_has_no_cap_and_goes_on_after_a_restart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world.endpoint(rate_per_s=1000.0, concurrency=50)
    disable_endpoint(world.runtime, OPERATOR, made["id"])
    missed = world.events(45)
    world.run()
    enable_endpoint(world.runtime, OPERATOR, made["id"])
    monkeypatch.setattr(recovering.advance, "__kwdefaults__", {"limit": 10})
    recover_endpoint(world.runtime, OPERATOR, made["id"], since=T - HOUR, until=None)

    world.look()
    assert [row["state"] for row in world.rows()].count("held") == 35
    world.broker.messages.clear()  # every message is lost, and with it the worker that had claimed
    world.clock.advance(31)
    world.run()

    assert {sent.event for sent in world.sent} == set(missed)
    assert not world.lane(made)["recover_next_at"]


def test_a_recovery_sends_a_jobs_events_in_their_order(world: World) -> None:
    made = world.endpoint()
    disable_endpoint(world.runtime, OPERATOR, made["id"])
    jobs = [world.whole_job() for _ in range(3)]
    world.run()
    enable_endpoint(world.runtime, OPERATOR, made["id"])

    recover_endpoint(world.runtime, OPERATOR, made["id"], since=T - HOUR, until=None)
    world.run()

    for mine in jobs:
        assert [sent.event for sent in world.sent if sent.event in mine] == mine


def test_a_recovery_keeps_to_its_span(world: World, clock: FakeClock) -> None:
    made = world.endpoint()
    disable_endpoint(world.runtime, OPERATOR, made["id"])
    world.event()
    world.relay()
    clock.advance(HOUR)
    wanted = world.event()
    world.relay()
    clock.advance(HOUR)
    world.event()
    world.relay()
    enable_endpoint(world.runtime, OPERATOR, made["id"])

    half = HOUR / 2
    recover_endpoint(world.runtime, OPERATOR, made["id"], since=T + half, until=T + 3 * half)
    world.run()

    assert [sent.event for sent in world.sent] == [wanted]


@pytest.mark.parametrize("until", [T - HOUR, T - 2 * HOUR])
def test_a_span_that_ends_before_it_begins_is_refused(world: World, until: object) -> None:
    made = world.endpoint()

    with pytest.raises(Unprocessable, match="until"):
        recover_endpoint(world.runtime, OPERATOR, made["id"], since=T - HOUR, until=until)  # type: ignore[arg-type]


def test_a_second_recovery_leaves_out_nothing_the_first_asked_for(world: World) -> None:
    made = world.endpoint()
    recover_endpoint(world.runtime, OPERATOR, made["id"], since=T - 3 * HOUR, until=T - 2 * HOUR)
    recover_endpoint(world.runtime, OPERATOR, made["id"], since=T - HOUR, until=None)

    lane = world.lane(made)
    assert (lane["recover_since"], lane["recover_until"]) == (T - 3 * HOUR, T)


def test_a_resend_a_day_later_has_the_same_id_and_bytes(world: World, clock: FakeClock) -> None:
    """F48."""
    world.endpoint()
    world.event()
    world.run()
    clock.advance(24 * HOUR)

    resend(world.runtime, OPERATOR, world.row()["id"])
    world.run()

    first, second = world.sent
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 86400
    assert len(read_delivery(world.database, OPERATOR, world.row()["id"])["attempts"]) == 2


def test_a_dead_letter_is_redriven(world: World, clock: FakeClock) -> None:
    made = world.endpoint()
    world.runtime.redrivers = {LETTER_KIND: redrive_delivery}
    world.receives(made["url"], DOWN)
    world.event()
    exhaust(world, clock)
    (letter,) = world.rows(dead_letters)
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("delivery", world.row()["id"], MAX_TRIES)
    world.receives(made["url"], OK)

    assert redrive(world.runtime, OPERATOR, letter["id"]).why_not is None
    clock.advance(1)
    world.run()

    assert world.row()["state"] == "succeeded"
    assert world.row()["attempts"] == MAX_TRIES + 1


def test_what_cannot_be_sent_again_says_why(world: World) -> None:
    made = world.endpoint()
    world.event()
    world.run()
    delivery = world.row()["id"]

    with pytest.raises(NotFound):
        resend(world.runtime, STRANGER, delivery)
    disable_endpoint(world.runtime, OPERATOR, made["id"])
    with pytest.raises(Conflict, match="disabled"):
        resend(world.runtime, OPERATOR, delivery)
    delete_endpoint(world.runtime, OPERATOR, made["id"])
    with pytest.raises(Conflict, match="deleted"):
        resend(world.runtime, OPERATOR, delivery)


def test_a_deleted_endpoint_is_sent_nothing_more(world: World) -> None:
    made = world.endpoint()
    world.event()
    world.relay()
    world.look()

    delete_endpoint(world.runtime, OPERATOR, made["id"])
    world.work()
    world.event()
    world.run()

    assert world.sent == []
    assert world.row()["state"] == "dropped"
