"""Senders that are no job providers: verified, deduplicated, stored, handed on; the lab of a webhook course."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import RUN_HANDLER
from jobs.clock import FakeClock
from jobs.core.errors import Unprocessable
from jobs.core.events import Event
from jobs.core.signatures import SchemeOptions, sign
from jobs.handlers import Handler
from jobs.net.http import HttpClient
from jobs.services.creation import NewJob, create_job
from jobs.services.handling import claim_due_runs, run_handler
from jobs.services.relay import relay
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from jobs.storage.schema import outbox
from tests.fakes.api import FakeApi, serving_api
from tests.fakes.runtime import Sink
from tests.integration.webhooks.incoming.world import Reply, World, a_world, an_entry, call
from tests.vectors import B4, TEXT_SECRET, WHSEC_SECRET
from webhooks.incoming.applying.notices import MAX_BODY_BYTES
from webhooks.incoming.inbox.entries import reprocess

GITHUB = SchemeOptions(header="X-Hub-Signature-256", delivery_id_header="X-GitHub-Delivery")
SHOPIFY = SchemeOptions(
    header="X-Shopify-Hmac-SHA256", prefix="", encoding="base64", delivery_id_header="X-Shopify-Webhook-Id"
)
JSON_TYPE = "application/json"


def senders(clock: FakeClock) -> Iterator[ProviderEntry]:
    def entry(name: str, scheme: str, **config: Any) -> ProviderEntry:
        secret = WHSEC_SECRET if scheme == "standard-webhooks" else TEXT_SECRET
        return an_entry(name, scheme, clock, adapter="events", secrets=[secret], **config)

    yield entry("stripe", "stripe", webhook_delivery_id_field="id", tenant="acme")
    yield entry("resend", "standard-webhooks")
    yield entry("slack", "slack", webhook_delivery_id_field="event_id")
    yield entry("deep", "hmac-body", webhook_delivery_id_field="meta.event.id")
    yield entry("plain-text", "hmac-body")
    yield entry("calls", "twilio")
    yield entry("shared", "shared-secret", webhook_delivery_id_header="X-Id")
    yield entry(
        "github",
        "hmac-body",
        webhook_header="X-Hub-Signature-256",
        webhook_delivery_id_header="X-GitHub-Delivery",
    )
    yield entry(
        "shopify",
        "hmac-body",
        webhook_header="X-Shopify-Hmac-SHA256",
        webhook_prefix="",
        webhook_encoding="base64",
        webhook_delivery_id_header="X-Shopify-Webhook-Id",
    )


@dataclass
class Lab:
    """A fleet that receives, with a worker at hand."""

    world: World

    def post(
        self,
        name: str,
        body: bytes | Mapping[str, Any],
        *,
        delivery_id: str = "d-1",
        options: SchemeOptions | None = None,
        content_type: str = JSON_TYPE,
        **headers: str,
    ) -> Reply:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        config = self.world.runtime.providers[name].config
        signature = sign(
            config.webhook_scheme,
            secret=WHSEC_SECRET if config.webhook_scheme == "standard-webhooks" else TEXT_SECRET,
            body=raw,
            delivery_id=delivery_id,
            at=self.world.clock.now(),
            options=options or config.scheme_options,
            url=f"{self.world.runtime.settings.public_url}/webhooks/{name}",
        )
        sent = {**signature, **{key.replace("_", "-"): value for key, value in headers.items()}}
        environ = {"CONTENT_TYPE": content_type}
        return call(self.world.app, f"/webhooks/{name}", body=raw, headers=sent, environ=environ)

    def work(self) -> None:
        """What workers do: drain the inbox, relay, run handlers."""
        self.world.drain()
        relay(self.world.runtime)
        self.world.broker.take(RUN_HANDLER)
        self.world.clock.advance(120)
        for run_id, token in claim_due_runs(self.world.runtime):
            run_handler(self.world.runtime, run_id, token)

    def told(self) -> list[dict[str, Any]]:
        """The events of type webhook.received."""
        statement = sa.select(outbox).where(outbox.c.type == "webhook.received").order_by(outbox.c.row_id)
        with self.world.database.read() as tx:
            return tx.rows(statement)


@pytest.fixture
def lab_with(database: Database, clock: FakeClock) -> Iterator[Callable[..., Lab]]:
    built: list[World] = []

    def make(*handlers: Handler) -> Lab:
        built.append(a_world(database, clock, more=list(senders(clock)), handlers=handlers))
        return Lab(built[0])

    yield make
    for world in built:
        world.intake.stop()


@pytest.fixture
def lab(lab_with: Callable[..., Lab]) -> Lab:
    return lab_with()


# The lab -------------------------------------------------------------------------------------------------


def test_a_stripe_event_replayed_ten_times_has_one_effect(lab_with: Callable[..., Lab]) -> None:
    """The first lab: the sender repeats itself, and a balance is credited once."""

    def credit(event: Event, connection: sa.Connection) -> None:
        paid: Any = event.data["body"]
        amount = {"amount": paid["data"]["object"]["amount"]}
        connection.execute(sa.text("UPDATE balance SET cents = cents + :amount"), amount)

    lab = lab_with(Handler("credit", ("webhook.received",), credit, "stripe", transactional=True))
    with lab.world.database.write() as tx:
        tx.execute(sa.text("CREATE TABLE balance (cents INTEGER)"))
        tx.execute(sa.text("INSERT INTO balance VALUES (0)"))
    paid = {"id": "evt_pay", "type": "payment_intent.succeeded", "data": {"object": {"amount": 500}}}

    said = []
    for number in range(10):
        said.append(lab.post("stripe", {**paid, "pending_webhooks": 10 - number}).said)  # a sender's own counter
        if number % 3 == 0:
            lab.work()
    lab.work()
    lab.work()

    with lab.world.database.read() as tx:
        assert [row["cents"] for row in tx.rows(sa.text("SELECT cents FROM balance"))] == [500]
    assert said == ["accepted", *["duplicate"] * 9]
    assert len(lab.told()) == 1
    assert lab.world.event()["duplicates"] == 9


def test_a_resend_event_out_of_order_asks_the_provider(lab_with: Callable[..., Lab]) -> None:
    """The second lab: events say that something happened; what is true now is asked."""
    state: dict[str, str] = {}

    def refresh(event: Event, api: FakeApi) -> None:
        said: Any = event.data["body"]
        email_id = said["data"]["email_id"]
        answer = HttpClient().request("GET", f"{api.url}/emails/{email_id}")
        state[email_id] = json.loads(answer.body)["last_event"]

    with serving_api() as api:
        api.on("GET /emails/em_1", {"id": "em_1", "last_event": "delivered"})
        lab = lab_with(Handler("refresh", ("webhook.received",), lambda event: refresh(event, api), "resend"))
        for number, kind in enumerate(("email.delivered", "email.sent")):  # the older one comes last
            lab.post("resend", {"type": kind, "data": {"email_id": "em_1"}}, delivery_id=f"msg_{number}")
            lab.work()

    assert state == {"em_1": "delivered"}
    assert len(api.asked) == 2


# What is handed on ---------------------------------------------------------------------------------------


def test_an_event_is_handed_on_with_where_it_came_from(lab: Lab) -> None:
    reply = lab.post("github", {"action": "opened"}, delivery_id="guid-1", X_GitHub_Event="issues", Cookie="c=1")
    lab.work()

    (event,) = lab.told()
    assert reply.said == "accepted"
    assert (event["tenant"], event["provider"], event["job_id"], event["sequence"]) == (None, "github", None, None)
    assert event["data"] == {
        "provider": "github",
        "delivery_id": "guid-1",
        "inbox": reply.json["event"],
        "received_at": "2026-01-01T00:00:00.000000Z",
        "is_hint": False,
        "headers": {"content-type": JSON_TYPE, "x-github-delivery": "guid-1", "x-github-event": "issues"},
        "body": {"action": "opened"},
        "body_base64": None,
        "is_body_omitted": False,
    }
    assert lab.world.event()["status"] == "applied"
    assert lab.world.letters() == []


def test_the_entrys_tenant_owns_the_event(lab: Lab) -> None:
    lab.post("stripe", {"id": "evt_1"})
    lab.work()

    assert [event["tenant"] for event in lab.told()] == ["acme"]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (B4.body, "application/x-www-form-urlencoded"),
        (b"pong", "text/plain"),
        (b"17", JSON_TYPE),
        (b"\xff\x00\xfe", "application/octet-stream"),
        (b'{"cut":', JSON_TYPE),
        (b"", "text/plain"),
    ],
)
def test_a_body_of_any_type_is_handed_on_byte_for_byte(lab: Lab, body: bytes, content_type: str) -> None:
    """F01 (c)."""
    assert lab.post("plain-text", body, content_type=content_type).said == "accepted"
    lab.work()

    (event,) = lab.told()
    assert event["data"]["body"] is None
    assert base64.b64decode(event["data"]["body_base64"]) == body
    assert lab.world.event()["raw"] == body


def test_a_form_of_twilios_comes_in(lab: Lab) -> None:
    form = b"CallSid=CA1&Caller=%2B14158675309&Body=two+words"
    assert lab.post("calls", form, content_type="application/x-www-form-urlencoded").said == "accepted"
    lab.work()

    assert base64.b64decode(lab.told()[0]["data"]["body_base64"]) == form


def test_a_zipped_body_is_handed_on_unzipped(lab: Lab) -> None:
    packed = gzip.compress(b'{"a":1}')
    lab.post("plain-text", packed, Content_Encoding="gzip")
    lab.work()

    assert lab.told()[0]["data"]["body"] == {"a": 1}
    assert lab.world.event()["raw"] == packed


def test_a_body_that_is_not_gzip_though_it_says_so_is_quarantined(lab: Lab) -> None:
    assert lab.post("plain-text", b"plain", Content_Encoding="gzip").said == "quarantined"
    lab.work()

    assert lab.told() == []
    assert len(lab.world.letters()) == 1


def test_a_nul_in_a_text_is_cleaned_and_kept_raw(lab: Lab) -> None:
    """F21."""
    body = b'{"name":"a\\u0000b","\\ud800":1}'
    lab.post("plain-text", body)
    lab.work()

    assert lab.told()[0]["data"]["body"] == {"name": "a\ufffdb", "\ufffd": 1}
    assert lab.world.event()["raw"] == body


def test_a_large_body_is_left_in_the_inbox(lab: Lab) -> None:
    lab.post("plain-text", b"x" * (MAX_BODY_BYTES + 1))
    lab.work()

    data = lab.told()[0]["data"]
    assert (data["body"], data["body_base64"], data["is_body_omitted"]) == (None, None, True)


def test_what_a_shared_secret_brought_says_that_it_is_a_hint(lab: Lab) -> None:
    lab.post("shared", {"a": 1}, delivery_id="d-1")
    lab.work()

    data = lab.told()[0]["data"]
    assert data["is_hint"] is True
    assert TEXT_SECRET not in json.dumps(data)


def test_proofs_and_the_journey_stay_out_of_what_is_handed_on(lab: Lab) -> None:
    lab.post("slack", {"event_id": "Ev1"}, X_Forwarded_For="10.0.0.1", X_Slack_Retry_Num="1", X_Api_Key="k")
    lab.work()

    assert set(lab.told()[0]["data"]["headers"]) == {"content-type", "x-slack-request-timestamp", "x-slack-retry-num"}


# Dedupe --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "body", "options"),
    [
        ("stripe", {"id": "evt_1"}, None),
        ("slack", {"event_id": "Ev1"}, None),
        ("deep", {"meta": {"event": {"id": 17}}}, None),
        ("resend", {"type": "email.sent"}, None),
        ("github", {"zen": "x"}, GITHUB),
        ("shopify", {"id": 1}, SHOPIFY),
    ],
)
def test_a_delivery_is_handed_on_once_however_its_sender_names_it(
    lab: Lab, name: str, body: Mapping[str, Any], options: SchemeOptions | None
) -> None:
    """F10, F12 (c): the body may change from try to try."""
    said = [lab.post(name, {**body, "try": number}, options=options).said for number in range(3)]
    lab.work()
    said.append(lab.post(name, body, options=options).said)
    lab.work()

    assert said == ["accepted", "duplicate", "duplicate", "duplicate"]
    assert len(lab.told()) == 1


@pytest.mark.parametrize("useless", [None, "", {}, [], True, "x" * 10_000, 1.5])
def test_a_useless_id_counts_as_none_and_merges_nothing(lab: Lab, useless: Any) -> None:
    """F12 (a), (b)."""
    said = [lab.post("stripe", {"id": useless, "number": number}).said for number in range(2)]
    said += [lab.post("stripe", {"id": useless, "number": 1}).said]
    lab.work()

    assert said == ["accepted"] * 3
    assert len(lab.told()) == 3


def test_senders_without_an_id_are_not_deduplicated(lab: Lab) -> None:
    """F12 (d): two equal bodies may be two events, both meant."""
    assert [lab.post("plain-text", {"rang": True}).said for _ in range(2)] == ["accepted", "accepted"]
    lab.work()

    assert len(lab.told()) == 2


def test_the_same_id_from_another_sender_is_another_event(lab: Lab) -> None:
    """F13 (a), (b)."""
    assert lab.post("stripe", {"id": "evt_1"}).said == "accepted"
    assert lab.post("slack", {"event_id": "evt_1"}).said == "accepted"
    lab.work()

    assert {event["provider"] for event in lab.told()} == {"stripe", "slack"}


def test_ids_of_a_number_and_a_text_are_one_id(lab: Lab) -> None:
    assert lab.post("stripe", {"id": 17}).said == "accepted"
    assert lab.post("stripe", {"id": "17"}).said == "duplicate"


# Once ----------------------------------------------------------------------------------------------------


def test_a_worker_killed_between_claim_and_commit_hands_on_once(lab: Lab) -> None:
    """F11: a claim has a lease, and what it did not commit did not happen."""
    from webhooks.incoming.applying.claims import LEASE, claim_due

    lab.post("stripe", {"id": "evt_1"})
    with lab.world.database.write() as tx:
        claim_due(tx, token="dead", limit=10)

    lab.work()
    assert lab.told() == []
    lab.world.clock.advance(LEASE.total_seconds() + 1)
    lab.work()
    lab.work()

    assert len(lab.told()) == 1


def test_what_was_handed_on_is_not_handed_on_again_by_a_reprocess(lab: Lab) -> None:
    from jobs.services.keys import Principal, Role

    lab.post("github", {"a": 1})
    lab.work()

    done = reprocess(lab.world.runtime, Principal("acme", Role.ADMIN, "key_1"), lab.world.event()["id"])
    lab.work()

    assert done.why_not == "it was handed on already"
    assert len(lab.told()) == 1


def test_handlers_of_another_sender_are_not_called(lab_with: Callable[..., Lab]) -> None:
    stripe, everything = Sink(), Sink()
    lab = lab_with(
        Handler("stripe", ("webhook.received",), stripe, "stripe"), Handler("all", ("webhook.*",), everything)
    )

    lab.post("github", {"a": 1})
    lab.work()

    assert (len(stripe.calls), len(everything.calls)) == (0, 1)


def test_no_job_can_be_given_to_a_sender_of_events(lab: Lab) -> None:
    with pytest.raises(Unprocessable, match="only receives events"):
        create_job(lab.world.runtime, tenant="acme", body=NewJob(provider="stripe"), key=None)


def test_a_self_test_comes_in_and_is_handed_to_nobody(lab: Lab) -> None:
    from homing.cli.provider_check import SELF_TEST

    assert lab.post("stripe", SELF_TEST).said == "ignored"
    lab.work()

    assert lab.told() == []
