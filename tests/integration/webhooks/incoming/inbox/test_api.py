"""``/v1/inbox``: what came, byte for byte, and another look at it that never makes a second effect."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from jobs.broker import DRAIN
from jobs.core.errors import Transient
from jobs.services import observe
from jobs.services.keys import Principal, Role, create_key
from jobs.services.letters.dead_letters import redrive
from tests.integration.webhooks.incoming.world import Reply, World, call, says
from webhooks.incoming.inbox.entries import LETTER_KIND, redrive_event

ROLES = {"operator": Role.OPERATOR, "viewer": Role.VIEWER, "admin": Role.ADMIN}


class Client:
    """A person with a key."""

    def __init__(self, world: World, *, tenant: str = "acme", role: Role = Role.OPERATOR) -> None:
        self._world = world
        self._headers = {"authorization": f"Bearer {create_key(world.database, tenant=tenant, role=role).key}"}

    def get(self, path: str, query: str = "") -> Reply:
        environ = {"QUERY_STRING": query}
        return call(self._world.app, path, method="GET", headers=self._headers, environ=environ)

    def post(self, path: str) -> Reply:
        return call(self._world.app, path, headers=self._headers)


@pytest.fixture
def applied(world: World) -> dict[str, Any]:
    """The row of an event its job has taken in."""
    world.submitted_job()
    world.deliver(says("succeeded"), headers={"x-odd": "caf\xe9"})
    world.drain()
    return world.event()


def test_an_event_is_shown_byte_for_byte(world: World, applied: dict[str, Any]) -> None:
    shown = Client(world).get(f"/v1/inbox/{applied['id']}").json

    assert base64.b64decode(shown["raw"]) == json.dumps(says("succeeded")).encode()
    assert shown["headers"]["x-odd"] == "caf\xe9"
    expected = {
        "id": applied["id"],
        "provider": "renders",
        "status": "applied",
        "delivery_id": "msg_1",
        "job": applied["job_id"],
        "reason": None,
        "duplicates": 0,
    }
    assert {name: shown[name] for name in expected} == expected
    assert shown["received_at"].startswith("2026-01-01T00:00:00")


def test_a_list_is_newest_first_filtered_and_continued(world: World) -> None:
    world.submitted_job()
    for number in range(5):
        world.deliver(says("processing"), delivery_id=f"m{number}")
        world.clock.advance(1)
    world.drain()
    client = Client(world)

    first = client.get("/v1/inbox", "limit=3").json
    second = client.get("/v1/inbox", f"limit=3&cursor={first['next_cursor']}").json

    shown = [row["delivery_id"] for page in (first, second) for row in page["data"]]
    assert shown == ["m4", "m3", "m2", "m1", "m0"]
    assert second["next_cursor"] is None
    assert client.get("/v1/inbox", "delivery_id=m2").json["data"][0]["delivery_id"] == "m2"
    assert client.get("/v1/inbox", "status=dead").json["data"] == []
    assert client.get("/v1/inbox", "status=odd").status == 422


def test_a_list_leaves_large_bodies_out(world: World) -> None:
    world.submitted_job()
    world.deliver(says("succeeded", output="x" * 100_000))
    world.drain()
    client = Client(world)

    (listed,) = client.get("/v1/inbox").json["data"]

    assert listed["raw"] is None
    assert len(client.get(f"/v1/inbox/{listed['id']}").json["raw"]) > 100_000


def test_another_tenants_event_is_404(world: World, applied: dict[str, Any]) -> None:
    stranger = Client(world, tenant="globex", role=Role.ADMIN)

    assert stranger.get(f"/v1/inbox/{applied['id']}").status == 404
    assert stranger.get("/v1/inbox").json["data"] == []
    assert stranger.post(f"/v1/inbox/{applied['id']}/reprocess").status == 404


def test_what_belongs_to_no_tenant_is_an_admins_to_see(world: World) -> None:
    world.deliver(b"{")

    assert Client(world, role=Role.OPERATOR).get("/v1/inbox").json["data"] == []
    assert len(Client(world, role=Role.ADMIN).get("/v1/inbox").json["data"]) == 1


def test_without_a_key_nothing_is_shown(world: World, applied: dict[str, Any]) -> None:
    reply = call(world.app, f"/v1/inbox/{applied['id']}", method="GET")

    assert reply.status == 401


def test_a_viewer_reads_and_an_operator_reprocesses(world: World, applied: dict[str, Any]) -> None:
    viewer = Client(world, role=Role.VIEWER)

    assert viewer.get(f"/v1/inbox/{applied['id']}").status == 200
    assert viewer.post(f"/v1/inbox/{applied['id']}/reprocess").status == 403


def test_reprocessing_what_was_applied_does_nothing_and_says_why(world: World, applied: dict[str, Any]) -> None:
    reply = Client(world).post(f"/v1/inbox/{applied['id']}/reprocess")
    world.drain()

    assert (reply.status, reply.json["status"]) == (200, "noop")
    assert applied["job_id"] in reply.json["why"]
    assert world.history(applied["job_id"]) == [("pending", "succeeded", True)]


def test_a_quarantined_event_is_applied_once_its_adapter_can_read_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, _ = world.submitted_job()
    adapter = type(world.runtime.providers["renders"].adapter)
    whole = adapter.read_webhook
    monkeypatch.setattr(adapter, "read_webhook", lambda *_: 1 / 0)
    world.deliver(says("succeeded"))
    monkeypatch.setattr(adapter, "read_webhook", whole)
    client = Client(world, role=Role.ADMIN)

    reply = client.post(f"/v1/inbox/{world.event()['id']}/reprocess")
    rung = world.broker.take(DRAIN)
    world.drain()
    again = client.post(f"/v1/inbox/{world.event()['id']}/reprocess")

    assert (reply.status, reply.json["status"], len(rung)) == (202, "accepted", 1)
    assert (again.status, again.json["status"]) == (200, "noop")
    assert world.history(job_id) == [("pending", "succeeded", True)]
    assert [letter["redriven_at"] is not None for letter in world.letters()] == [True]


def test_what_is_still_unusable_is_quarantined_again_with_a_new_letter(world: World) -> None:
    world.deliver(b"{")

    Client(world, role=Role.ADMIN).post(f"/v1/inbox/{world.event()['id']}/reprocess")
    world.drain()

    assert world.event()["status"] == "quarantined"
    assert sorted(letter["redriven_at"] is None for letter in world.letters()) == [False, True]


def test_a_dead_event_is_redriven_through_its_letter_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """F62."""
    job_id, _ = world.submitted_job(tenant="acme")
    whole = observe.Observer.observe_many

    def fail(*_: Any) -> Any:
        raise Transient("not now")

    monkeypatch.setattr(observe.Observer, "observe_many", fail)
    world.deliver(says("succeeded"))
    for _ in range(5):
        world.drain()
        world.clock.advance(600)
    monkeypatch.setattr(observe.Observer, "observe_many", whole)
    world.runtime.redrivers = {LETTER_KIND: redrive_event}
    (letter,) = world.letters()
    admin = Principal("acme", Role.ADMIN, "key_1")

    first = redrive(world.runtime, admin, letter["id"])
    second = redrive(world.runtime, admin, letter["id"])
    world.drain()

    assert (first.why_not, second.why_not is None) == (None, False)
    assert world.history(job_id) == [("pending", "succeeded", True)]
    (after,) = world.letters()
    assert (after["attempts"], after["first_failed_at"]) == (5, letter["first_failed_at"])


def test_a_letter_whose_event_was_applied_meanwhile_says_so(world: World, applied: dict[str, Any]) -> None:
    with world.database.write() as tx:
        why_not = redrive_event(tx, {"ref": applied["id"]})
        gone = redrive_event(tx, {"ref": "evt_nothing"})

    assert why_not is not None
    assert applied["job_id"] in why_not
    assert gone == "the event is no longer here"


def test_an_event_that_is_being_worked_on_is_left_alone(world: World) -> None:
    from webhooks.incoming.applying.claims import claim_due

    world.submitted_job()
    world.deliver(says("succeeded"))
    with world.database.write() as tx:
        claim_due(tx, token="at it", limit=1)

    reply = Client(world, role=Role.ADMIN).post(f"/v1/inbox/{world.event()['id']}/reprocess")

    assert (reply.status, reply.json["status"]) == (200, "noop")
    assert world.event()["lease_token"] == "at it"


def test_a_parked_event_can_be_looked_at_again(world: World) -> None:
    world.deliver(says("succeeded"))
    world.drain()

    reply = Client(world, role=Role.ADMIN).post(f"/v1/inbox/{world.event()['id']}/reprocess")
    world.drain()

    assert reply.status == 202
    assert world.event()["status"] == "parked"
