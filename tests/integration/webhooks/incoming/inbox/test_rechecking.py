"""After a corrected secret, what was refused comes in: once, exactly like a fresh delivery."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import DRAIN
from jobs.clock import FakeClock
from jobs.core.errors import Conflict
from jobs.core.signatures import parse_secrets, sign
from jobs.services.keys import Role, create_key
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import Reply, World, a_world, an_entry, call, says
from tests.vectors import FAL_PRIVATE, TEXT_SECRET, WHSEC_SECRET
from webhooks.incoming.inbox.rechecking import recheck
from webhooks.incoming.receiving import quarantine_rows
from webhooks.incoming.receiving.quarantine_rows import Refused, insert_refused
from webhooks.incoming.schema import quarantined_requests

WRONG = "whsec_b3RoZXItc2VjcmV0LW9mLXRoZS10ZXN0cw=="


def with_secrets(entry: ProviderEntry, *texts: str) -> ProviderEntry:
    secrets = parse_secrets(entry.config.webhook_scheme, texts)
    return replace(entry, config=entry.config.model_copy(update={"webhook_secrets": secrets}))


def configure(world: World, name: str, *texts: str) -> None:
    """What a restart with another configuration does."""
    world.runtime.providers[name] = with_secrets(world.runtime.providers[name], *texts)  # type: ignore[index]


@pytest.fixture
def wrong(database: Database, clock: FakeClock) -> Iterator[World]:
    """A fleet whose operator has configured another secret than the provider signs with."""
    world = a_world(
        database,
        clock,
        more=[
            an_entry("shared", "shared-secret", clock, secrets=["not-the-shared-secret"]),
            an_entry("calls", "twilio", clock, secrets=["not-the-token"], adapter="events"),
        ],
    )
    configure(world, "renders", WRONG)
    yield world
    world.intake.stop()


def kept(world: World) -> list[dict[str, Any]]:
    world.intake.quarantine.stop()
    with world.database.read() as tx:
        return tx.rows(sa.select(quarantined_requests).order_by(quarantined_requests.c.id))


def check_again(world: World, name: str = "renders") -> dict[str, Any]:
    world.intake.quarantine.stop()
    found = recheck(world.runtime, world.intake.admission, name)
    return {key: value for key, value in found.items() if value and key != "provider"}


def test_a_refused_request_is_kept_and_is_no_event(wrong: World) -> None:
    reply = wrong.deliver(says("succeeded"), token="tok-1")

    (row,) = kept(wrong)
    assert reply.status == 403
    assert wrong.events() == []
    assert (row["provider"], row["token"], row["reason"]) == ("renders", "tok-1", "mismatch")
    assert row["received_at"] == wrong.clock.now()


def test_an_authentic_request_is_not_kept(world: World) -> None:
    world.deliver(says("succeeded"))

    assert kept(world) == []


def test_a_corrected_secret_brings_the_lost_event_home(wrong: World) -> None:
    job_id, token = wrong.submitted_job()
    body = json.dumps(says("succeeded", output={"url": "https://x.test"})).encode()
    wrong.deliver(body, token=token)
    wrong.clock.advance(2 * 3600)  # by now its timestamp is long out of tolerance

    configure(wrong, "renders", WHSEC_SECRET)
    found = check_again(wrong)
    wrong.drain()

    assert found == {"checked": 1, "taken": 1, "accepted": 1}
    assert wrong.job(job_id)["state"] == "succeeded"
    assert wrong.event()["raw"] == body
    assert wrong.event()["delivery_id"] == "msg_1"
    assert kept(wrong) == []
    assert (DRAIN,) in wrong.broker.messages


def test_checking_twice_brings_it_in_once(wrong: World) -> None:
    job_id, token = wrong.submitted_job()
    wrong.deliver(says("succeeded"), token=token)
    configure(wrong, "renders", WHSEC_SECRET)

    check_again(wrong)
    again = check_again(wrong)
    wrong.drain()
    wrong.drain()

    assert again == {}
    assert wrong.told(job_id).count("job.succeeded") == 1


def test_what_the_provider_has_sent_again_meanwhile_is_a_duplicate(wrong: World) -> None:
    job_id, token = wrong.submitted_job()
    wrong.deliver(says("succeeded"), token=token)
    configure(wrong, "renders", WHSEC_SECRET)
    assert wrong.deliver(says("succeeded"), token=token).said == "accepted"

    found = check_again(wrong)
    wrong.drain()

    assert found == {"checked": 1, "taken": 1, "duplicate": 1}
    assert wrong.event()["duplicates"] == 1
    assert wrong.told(job_id).count("job.succeeded") == 1


def test_several_tries_of_one_delivery_become_one_event(wrong: World) -> None:
    wrong.submitted_job()
    for _ in range(5):
        wrong.deliver(says("succeeded"))
        wrong.clock.advance(60)
    configure(wrong, "renders", WHSEC_SECRET)

    assert check_again(wrong) == {"checked": 5, "taken": 5, "accepted": 1, "duplicate": 4}
    assert wrong.event()["duplicates"] == 4


def test_a_recheck_with_the_wrong_secret_still_changes_nothing(wrong: World) -> None:
    wrong.deliver(says("succeeded"))

    assert check_again(wrong) == {"checked": 1, "refused": 1}
    assert len(kept(wrong)) == 1
    assert wrong.events() == []


def test_a_forged_request_stays_out_whatever_is_corrected(wrong: World) -> None:
    good = sign("standard-webhooks", secret=WHSEC_SECRET, body=b"{}", delivery_id="m", at=wrong.clock.now())
    call(wrong.app, "/webhooks/renders", body=b'{"job":"p-123","status":"failed"}', headers=good)
    configure(wrong, "renders", WHSEC_SECRET)

    assert check_again(wrong) == {"checked": 1, "refused": 1}


def test_a_recording_played_back_is_not_let_in_by_a_recheck(world: World) -> None:
    """It is judged by the time it came, not by the time it was signed."""
    world.deliver(says("succeeded"), signed_at=world.clock.now() - timedelta(minutes=10))

    assert check_again(world) == {"checked": 1, "refused": 1}


def test_another_providers_requests_are_left_alone(wrong: World) -> None:
    wrong.deliver(says("succeeded"))

    assert check_again(wrong, "stripy") == {}
    assert len(kept(wrong)) == 1


def test_an_unusable_body_is_quarantined_in_the_inbox_as_it_would_have_been(wrong: World) -> None:
    wrong.deliver(b"not json")
    configure(wrong, "renders", WHSEC_SECRET)

    assert check_again(wrong) == {"checked": 1, "taken": 1, "quarantined": 1}
    assert [letter["kind"] for letter in wrong.letters()] == ["inbox"]


def test_a_provider_without_a_secret_cannot_be_rechecked(world: World) -> None:
    with pytest.raises(Conflict):
        recheck(world.runtime, world.intake.admission, "silent")


def test_a_shared_secret_is_rechecked_by_its_digest(wrong: World) -> None:
    headers = {"X-Webhook-Secret": TEXT_SECRET}
    body = json.dumps(says("succeeded")).encode()
    assert call(wrong.app, "/webhooks/shared", body=body, headers=headers).status == 403
    assert TEXT_SECRET not in str(kept(wrong))

    assert check_again(wrong, "shared") == {"checked": 1, "refused": 1}
    configure(wrong, "shared", "newer-shared-secret", TEXT_SECRET)
    assert check_again(wrong, "shared") == {"checked": 1, "taken": 1, "accepted": 1}
    assert wrong.event()["secret_index"] == 1
    assert TEXT_SECRET not in str(wrong.event()["headers"])


def test_a_digest_sent_as_the_secret_opens_nothing(wrong: World) -> None:
    """Who reads a database must not be able to send webhooks with what it says."""
    headers = {"X-Webhook-Secret": TEXT_SECRET}
    call(wrong.app, "/webhooks/shared", body=b"{}", headers=headers)
    (row,) = kept(wrong)
    configure(wrong, "shared", TEXT_SECRET)

    replayed = {"X-Webhook-Secret": row["headers"]["x-webhook-secret"]}

    assert call(wrong.app, "/webhooks/shared", body=b"{}", headers=replayed).status == 403


def test_a_signed_url_is_rechecked_with_its_query(wrong: World) -> None:
    url = wrong.runtime.settings.public_url + "/webhooks/calls?line=2"
    headers = sign("twilio", secret=TEXT_SECRET, body=b"a=1", delivery_id="d", at=wrong.clock.now(), url=url)
    reply = call(wrong.app, "/webhooks/calls", body=b"a=1", headers=headers, environ={"QUERY_STRING": "line=2"})
    configure(wrong, "calls", TEXT_SECRET)
    wrong.intake.quarantine.stop()

    assert reply.status == 403
    assert check_again(wrong, "calls") == {"checked": 1, "taken": 1, "accepted": 1}


# Bounds --------------------------------------------------------------------------------------------------


def refused(world: World, number: int, *, size: int = 10, provider: str = "renders", age: timedelta) -> Refused:
    at = world.clock.now() - age
    return Refused(f"ref_{number:06}", provider, None, "/x", {}, b"x" * size, size, "mismatch", at)


def fill(world: World, *rows: Refused) -> None:
    with world.database.write() as tx:
        insert_refused(tx, rows)


def test_each_provider_has_room_for_so_many_and_the_oldest_leave_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine_rows, "MAX_ROWS", 3)
    young = timedelta(minutes=1)
    fill(world, refused(world, 0, provider="other", age=young))

    fill(world, *[refused(world, number, age=young) for number in range(1, 6)])

    assert [row["id"] for row in kept(world)] == ["ref_000000", "ref_000003", "ref_000004", "ref_000005"]


def test_each_provider_has_room_for_so_many_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_rows, "MAX_BYTES", 250)

    fill(world, *[refused(world, number, size=100, age=timedelta(minutes=1)) for number in range(4)])

    assert [row["id"] for row in kept(world)] == ["ref_000002", "ref_000003"]


def test_after_three_days_a_refused_request_is_forgotten(world: World) -> None:
    fill(world, refused(world, 1, age=timedelta(days=2, hours=23)))
    fill(world, refused(world, 2, age=timedelta(minutes=1)))
    assert len(kept(world)) == 2

    world.clock.advance(2 * 3600)
    check_again(world)

    assert [row["id"] for row in kept(world)] == ["ref_000002"]


# New keys ------------------------------------------------------------------------------------------------


def test_what_was_signed_with_a_key_published_meanwhile_comes_in_by_itself(
    database: Database, clock: FakeClock
) -> None:
    from tests.fakes.api import serving_api
    from tests.vectors import FAL_PUBLIC

    def key_set(x: str) -> dict[str, Any]:
        return {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x}]}

    with serving_api() as api:
        api.on("GET /jwks", key_set("A" * 42 + "E"))
        world = a_world(database, clock, more=[an_entry("fal", "fal", clock, jwks_url=f"{api.url}/jwks")])
        body = json.dumps(says("succeeded")).encode()
        headers = sign("fal", secret=FAL_PRIVATE, body=body, delivery_id="req-1", at=clock.now())

        def post() -> Reply:
            reply = call(world.app, "/webhooks/fal", body=body, headers=headers)
            world.intake.quarantine.stop()
            world.intake.key_sets.wait()
            return reply

        first = post()
        assert (first.status, "Retry-After" in first.headers) == (503, True)
        api.answers["GET /jwks"] = [(200, key_set(FAL_PUBLIC))]
        assert post().status == 403  # the set at hand has another key; it was fetched a moment ago
        clock.advance(61)
        assert post().status == 403  # this has the new one fetched
        world.intake.key_sets.wait()

        assert [event["status"] for event in world.events()] == ["accepted"]
        assert post().said == "duplicate"
        world.intake.stop()


# The API -------------------------------------------------------------------------------------------------


def ask(world: World, name: str, *, role: Role = Role.ADMIN) -> Reply:
    key = create_key(world.database, tenant="default", role=role)
    return call(world.app, f"/v1/providers/{name}/recheck", headers={"Authorization": f"Bearer {key.key}"})


def test_the_api_rechecks_and_counts(wrong: World) -> None:
    wrong.deliver(says("succeeded"))
    wrong.intake.quarantine.stop()
    configure(wrong, "renders", WHSEC_SECRET)

    reply = ask(wrong, "renders")

    assert reply.status == 200
    assert reply.json == {
        "provider": "renders",
        "checked": 1,
        "taken": 1,
        "refused": 0,
        "accepted": 1,
        "duplicate": 0,
        "conflict": 0,
        "ignored": 0,
        "quarantined": 0,
    }


def test_a_recheck_is_an_admins_to_ask_for(wrong: World) -> None:
    assert ask(wrong, "renders", role=Role.OPERATOR).status == 403
    assert ask(wrong, "nobody").status == 404
    assert ask(wrong, "silent").status == 409
