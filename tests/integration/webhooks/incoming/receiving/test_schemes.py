"""Every scheme at the door: authentic requests come in, all others get the one refusal, whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.core.signatures import SCHEMES, SchemeOptions, sign
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import Reply, World, a_world, an_entry, call, says
from tests.vectors import FAL_PRIVATE, FAL_PUBLIC, TEXT_SECRET, WHPK_SECRET, WHSEC_SECRET, WHSK_SECRET

PUBLIC_URL = "https://homing.test"
#: Per scheme: the sender's secret and the receiver's.
PAIRS = {
    **dict.fromkeys(SCHEMES, (TEXT_SECRET, TEXT_SECRET)),
    "standard-webhooks": (WHSK_SECRET, WHPK_SECRET),
    "fal": (FAL_PRIVATE, FAL_PUBLIC),
}
SIGNED = sorted(set(SCHEMES) - {"none"})
BODY = json.dumps(says("succeeded")).encode()
FORM = b"job=p-123&status=succeeded&a=1+2"


def entries(clock: FakeClock) -> Iterator[ProviderEntry]:
    for scheme in SIGNED:
        yield an_entry(f"by-{scheme}", scheme, clock, secrets=[PAIRS[scheme][1]])
    yield an_entry("by-none", "none", clock)


@pytest.fixture
def world(sqlite_url: str, clock: FakeClock) -> Iterator[World]:
    database = Database.connect(sqlite_url, clock=clock)
    built = a_world(database, clock, environ={"HOMING_PUBLIC_URL": PUBLIC_URL}, more=list(entries(clock)))
    yield built
    built.intake.stop()
    database.close()


def path_of(scheme: str, token: str | None = None) -> str:
    return f"/webhooks/by-{scheme}" + (f"/{token}" if token else "")


def signed(world: World, scheme: str, body: bytes, path: str) -> dict[str, str]:
    return sign(
        scheme,
        secret=PAIRS[scheme][0],
        body=body,
        delivery_id="msg_1",
        at=world.clock.now(),
        url=PUBLIC_URL + path,
    )


def send(
    world: World, scheme: str, body: bytes = BODY, *, headers: Mapping[str, str] | None = None, **request: Any
) -> Reply:
    path = request.pop("path", path_of(scheme))
    sent = signed(world, scheme, body, path) if headers is None else headers
    return call(world.app, path.partition("?")[0], body=body, headers=sent, **request)


def form_or_json(scheme: str) -> bytes:
    """Twilio binds forms; JSON only by its URL."""
    return FORM if scheme == "twilio" else BODY


@pytest.mark.parametrize("scheme", SIGNED)
def test_an_authentic_request_comes_in_byte_for_byte(world: World, scheme: str) -> None:
    reply = send(world, scheme, form_or_json(scheme))

    event = world.event()
    assert reply.said == ("quarantined" if scheme == "twilio" else "accepted")  # a form is no event of the simulator's
    assert (event["raw"], event["scheme"], event["secret_index"]) == (form_or_json(scheme), scheme, 0)


def refusals(world: World, scheme: str) -> Iterator[tuple[str, Reply]]:
    body = form_or_json(scheme)
    good = signed(world, scheme, body, path_of(scheme))
    yield "nothing", send(world, scheme, body, headers={})
    yield "another body", send(world, scheme, body + b"0", headers=good)
    for name in good:
        if name.lower() in ("webhook-id", "x-fal-webhook-user-id", "x-fal-webhook-request-id"):
            continue
        for label, value in (
            ("empty", ""),
            ("blank", " "),
            ("a byte beyond ascii", good[name] + "\xe9"),
            ("eight kilobytes", "a" * 8192),
            ("a prefix alone", "sha256="),
            ("another digest", "sha1=" + "0" * 40),
            ("no time", "t=,v1="),
            ("junk for a time", "t=abc,v1=00,v0=00"),
        ):
            yield f"{name}: {label}", send(world, scheme, body, headers={**good, name: value})


@pytest.mark.parametrize("scheme", sorted(set(SIGNED) - {"shared-secret"}))
def test_every_refusal_has_one_shape_and_tells_nothing(world: World, scheme: str) -> None:
    """F02, F03, for each scheme."""
    replies = dict(refusals(world, scheme))

    assert {name: reply.status for name, reply in replies.items() if reply.status != 403} == {}
    assert len({(reply.body, tuple(sorted(reply.headers.items()))) for reply in replies.values()}) == 1
    assert world.events() == []


def test_all_schemes_refuse_alike(world: World) -> None:
    shapes = {send(world, scheme, headers={}).body for scheme in SCHEMES}

    assert len(shapes) == 1


@pytest.mark.parametrize("value", ["", " ", "wrong-secret", TEXT_SECRET + "x", TEXT_SECRET[:-1], "\xe9" * 20])
def test_a_wrong_shared_secret_is_refused(world: World, value: str) -> None:
    assert send(world, "shared-secret", headers={"X-Webhook-Secret": value}).status == 403


@pytest.mark.parametrize(
    ("scheme", "tolerance_s"),
    [
        *[(scheme, 300) for scheme in ("standard-webhooks", "stripe", "slack", "hmac-timestamp-body", "fal")],
        ("elevenlabs", 1800),
        ("cloudinary", 7200),
    ],
)
def test_a_signed_time_may_be_so_far_away_either_way(world: World, scheme: str, tolerance_s: int) -> None:
    """F04, for each scheme with its own tolerance."""
    headers = signed(world, scheme, BODY, path_of(scheme))

    outcomes = []
    for seconds in (-tolerance_s - 1, -tolerance_s, tolerance_s, tolerance_s + 1):
        world.clock.advance(seconds)
        outcomes.append(send(world, scheme, headers=headers).status)
        world.clock.advance(-seconds)

    assert outcomes == [403, 200, 200, 403]


# Twilio --------------------------------------------------------------------------------------------------


def test_twilio_signs_the_public_url_with_its_query(world: World) -> None:
    """F01: the form is not eaten, and the query is part of what is signed."""
    path = path_of("twilio") + "?account=a%20b&x=1"
    headers = signed(world, "twilio", FORM, path)
    form = {"CONTENT_TYPE": "application/x-www-form-urlencoded"}

    assert send(world, "twilio", FORM, path=path, headers=headers).status == 403  # called without its query
    asked = {"QUERY_STRING": "account=a%20b&x=1", **form}
    assert send(world, "twilio", FORM, path=path, headers=headers, environ=asked).status == 200
    assert world.event()["raw"] == FORM


# Schemes that do not bind the body -----------------------------------------------------------------------


def test_a_shared_secret_is_nowhere_to_be_read(world: World) -> None:
    send(world, "shared-secret")

    event = world.event()
    assert TEXT_SECRET not in json.dumps(event["headers"])
    assert event["headers"]["x-webhook-secret"] == "[removed]"


def test_what_a_shared_secret_brought_is_asked_for_and_not_believed(world: World) -> None:
    job_id, token = world.submitted_job(provider="by-shared-secret")

    reply = send(world, "shared-secret", path=path_of("shared-secret", token))
    world.drain()

    assert reply.said == "accepted"
    assert world.job(job_id)["state"] == "pending"
    assert world.job(job_id)["next_poll_at"] == world.clock.now()
    assert world.event()["reason"] == "a hint: the provider is asked"


@pytest.mark.parametrize("token", [None, "unknown-token", "\xe9" * 30])
def test_unsigned_without_a_token_of_ours_is_refused(world: World, token: str | None) -> None:
    world.submitted_job(provider="by-none")

    assert send(world, "none", path=path_of("none", token), headers={}).status == 403
    assert world.events() == []


def test_another_providers_token_opens_nothing(world: World) -> None:
    _, token = world.submitted_job(provider="by-shared-secret")

    assert send(world, "none", path=path_of("none", token), headers={}).status == 403


def test_an_unsigned_callback_to_a_token_of_ours_is_a_hint(world: World) -> None:
    job_id, token = world.submitted_job(provider="by-none")

    reply = send(world, "none", path=path_of("none", token), headers={})
    world.drain()

    assert reply.said == "accepted"
    assert world.event()["secret_index"] == -1
    assert world.job(job_id)["state"] == "pending"
    assert world.job(job_id)["next_poll_at"] == world.clock.now()


def test_unsigned_while_the_database_is_away_is_told_to_come_again(world: World, monkeypatch: Any) -> None:
    from jobs.core.errors import Unavailable

    def away(*_: object) -> bool:
        raise Unavailable

    monkeypatch.setattr(world.intake.admission, "_is_known_token", away)
    reply = send(world, "none", path=path_of("none", "any-token"), headers={})

    assert (reply.status, "Retry-After" in reply.headers) == (503, True)


# A sender's own way --------------------------------------------------------------------------------------


def test_an_entry_that_counts_in_milliseconds_takes_them_and_refuses_seconds(sqlite_url: str, clock: FakeClock) -> None:
    """F04: an adapter that declares milliseconds."""
    entry = an_entry("ms", "slack", clock, secrets=[TEXT_SECRET], webhook_timestamp_unit="ms")
    database = Database.connect(sqlite_url, clock=clock)
    world = a_world(database, clock, more=[entry])

    statuses = []
    for unit in ("ms", "s"):
        options = SchemeOptions(timestamp_unit=unit)  # type: ignore[arg-type] # a literal each
        headers = sign("slack", secret=TEXT_SECRET, body=BODY, delivery_id="d", at=clock.now(), options=options)
        statuses.append(call(world.app, "/webhooks/ms", body=BODY, headers=headers).status)
    world.intake.stop()
    database.close()

    assert statuses == [200, 403]


def test_slack_gets_its_challenge_back_and_only_when_it_signed_it(world: World) -> None:
    body = b'{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}'

    assert send(world, "slack", body, headers={}).status == 403
    reply = send(world, "slack", body)

    assert (reply.status, reply.body) == (200, b"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
    assert reply.headers["Content-Type"] == "text/plain"


def test_a_challenge_that_is_a_page_is_not_echoed(world: World) -> None:
    body = b'{"challenge":"<script>","type":"url_verification"}'

    assert send(world, "slack", body).said in ("accepted", "ignored")


def test_each_of_several_secrets_is_good_and_recorded(sqlite_url: str, clock: FakeClock) -> None:
    entry = an_entry("many", "standard-webhooks", clock, secrets=[WHPK_SECRET, WHSEC_SECRET])
    database = Database.connect(sqlite_url, clock=clock)
    world = a_world(database, clock, more=[entry])

    for number, secret in enumerate((WHSK_SECRET, WHSEC_SECRET)):
        body = json.dumps(says("processing", id=f"evt_{number}")).encode()
        headers = sign("standard-webhooks", secret=secret, body=body, delivery_id=f"msg_{number}", at=clock.now())
        assert call(world.app, "/webhooks/many", body=body, headers=headers).said == "accepted"

    found = sorted(event["secret_index"] for event in world.events())
    world.intake.stop()
    database.close()
    assert found == [0, 1]
