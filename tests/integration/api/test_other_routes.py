from __future__ import annotations

from typing import Any

import pytest

from jobs.broker import RELAY
from jobs.clock import FakeClock
from jobs.core.states import JobState
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage.accounts import lock_account, update_account
from jobs.storage.attempts import get_attempt
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter
from jobs.storage.jobs import get_job
from jobs.storage.learned import put_standing
from tests.factories import T, new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.integration.api.conftest import TENANT, Api, a_body


def a_letter(database: Database, *, tenant: str | None = TENANT) -> tuple[str, str]:
    job_id = str(new_job(database, next_submit_at=None)["id"])
    with database.write() as tx:
        letter = dead_letter(
            tx, "submit", job_id, reason="8 tries", attempts=8, tenant=tenant, job_id=job_id, evidence={"run": None}
        )
    return job_id, letter


def test_a_review_is_ended_over_the_api(api: Api, database: Database, broker: RecordingBroker) -> None:
    review = {"review_reason": "ambiguous_submit", "review_since": T}
    job_id = new_job(database, next_submit_at=None, **review)["id"]
    body = {"action": "settle", "state": "failed", "reason": "the provider has no trace of it"}

    answer = api.post(f"/v1/jobs/{job_id}/resolve", body)

    assert (answer.status_code, answer.json["state"], answer.json["review"]) == (200, "failed", None)
    history = api.get(f"/v1/jobs/{job_id}/transitions").json["data"]
    assert history[-1]["reason"] == f"settle by {api.key_id}: the provider has no trace of it"
    assert broker.take(RELAY) == [()]
    assert api.post(f"/v1/jobs/{job_id}/resolve", body).status_code == 409


def test_whoever_must_look_for_a_run_is_told_what_its_submit_carried(api: Api, database: Database) -> None:
    review = {"review_reason": "ambiguous_submit", "review_since": T}
    job_id = new_job(database, next_submit_at=None, **review)["id"]
    with database.read() as tx:
        attempt = get_attempt(tx, job_id, 1)

    sent = api.get(f"/v1/jobs/{job_id}").json["review"]["sent"]

    assert (sent["idempotency_key"], sent["reference"]) == (attempt["idempotency_key"], attempt["token"])
    assert "sent" not in api.get("/v1/jobs").json["data"][0]["review"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "settle", "reason": "r"}, "state"),
        ({"action": "give up", "reason": "r"}, "action"),
        ({"action": "poll"}, "reason"),
        ({"action": "poll", "reason": ""}, "reason"),
        ({"action": "settle", "reason": "r", "state": "done"}, "state"),
        ({"action": "poll", "reason": "r", "state": "failed"}, "state"),
    ],
)
def test_a_resolution_that_cannot_be_meant_is_refused(
    api: Api, database: Database, body: dict[str, Any], field: str
) -> None:
    job_id = new_job(database, review_reason="overdue", review_since=T)["id"]

    answer = api.post(f"/v1/jobs/{job_id}/resolve", body)

    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json["errors"]] == [field]


def test_dead_letters_are_listed_shown_and_redriven(api: Api, database: Database, clock: FakeClock) -> None:
    job_id, letter_id = a_letter(database)

    listed = api.get("/v1/dead-letters?open=true&kind=submit").json["data"]
    shown = api.get(f"/v1/dead-letters/{letter_id}").json
    redriven = api.post(f"/v1/dead-letters/{letter_id}/redrive")
    again = api.post(f"/v1/dead-letters/{letter_id}/redrive")

    assert listed == [shown]
    facts = {name: shown[name] for name in ("id", "kind", "ref", "reason", "attempts", "redriven_at")}
    expected = {"id": letter_id, "kind": "submit", "ref": job_id, "reason": "8 tries", "attempts": 8}
    assert facts == {**expected, "redriven_at": None}
    assert (redriven.status_code, redriven.json["redriven_by"]) == (202, api.key_id)
    assert (again.status_code, again.json["status"]) == (200, "noop")
    assert "redriven before" in again.json["why"]
    with database.read() as tx:
        assert get_job(tx, job_id)["next_submit_at"] == clock.now()
    assert api.get("/v1/dead-letters?open=true").json["data"] == []


def test_a_dead_letter_is_discarded_once(api: Api, database: Database) -> None:
    _, letter_id = a_letter(database)

    first, second = (api.post(f"/v1/dead-letters/{letter_id}/discard") for _ in range(2))

    assert (first.status_code, first.json["discarded_by"]) == (200, api.key_id)
    assert second.json["status"] == "noop"


def test_another_tenants_dead_letter_is_not_there(stranger: Api, database: Database) -> None:
    _, letter_id = a_letter(database)
    own = f"/v1/dead-letters/{letter_id}"

    answers = [stranger.get(own), stranger.post(f"{own}/redrive"), stranger.post(f"{own}/discard")]

    assert {answer.status_code for answer in answers} == {404}
    assert stranger.get("/v1/dead-letters").json["data"] == []


def test_events_are_listed_in_commit_order_from_a_position_on(api: Api, runtime: Runtime) -> None:
    job_id = api.submit().json["id"]
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))
    assert api.get("/v1/events").json["data"] == []  # not relayed yet: no position, no place in the list
    relay(runtime)

    events = api.get("/v1/events").json["data"]

    assert [event["type"] for event in events] == ["job.created", "job.submitted", "job.succeeded"]
    assert [event["position"] for event in events] == [1, 2, 3]
    assert [event["sequence"] for event in events] == [1, 2, 3]
    later = api.get("/v1/events?after=1&limit=1").json
    assert [event["position"] for event in later["data"]] == [2]
    rest = api.get("/v1/events", query_string={"cursor": later["next_cursor"]}).json
    assert [event["position"] for event in rest["data"]] == [3]


def test_events_are_filtered(api: Api, runtime: Runtime) -> None:
    one, other = api.submit().json["id"], api.submit().json["id"]
    relay(runtime)

    def found(**query: str) -> list[str]:
        return [event["data"]["job"]["id"] for event in api.get("/v1/events", query_string=query).json["data"]]

    assert found(job=one) == [one]
    assert found(type="job.created") == found(type="job.*") == [one, other]
    assert found(type="job.succeeded") == found(type="job.%") == found(type="job.crea_ed") == []


def test_an_event_describes_the_state_that_was_committed(api: Api, runtime: Runtime) -> None:
    """F70: the payload's status is the committed one, and the job read on arrival is at least as new."""
    job_id = api.submit().json["id"]
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, output={"n": 1}))
    relay(runtime)

    told = api.get("/v1/events?type=job.succeeded").json["data"][0]["data"]["job"]
    read = api.get(f"/v1/jobs/{job_id}").json

    assert told == {name: value for name, value in read.items() if name != "input"}


def test_what_is_rolled_back_leaves_no_event(api: Api, runtime: Runtime) -> None:
    """F60 (d), F70: a rollback after the outbox insert: no event exists."""
    job_id = api.submit().json["id"]
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))
        tx.connection.rollback()
    relay(runtime)

    assert [event["type"] for event in api.get("/v1/events").json["data"]] == ["job.created"]


def test_a_job_whose_message_was_lost_is_found_by_its_due_time(
    api: Api, broker: RecordingBroker, database: Database, clock: FakeClock
) -> None:
    """F60 (b): the process dies after the commit and before the message; the row says that it is due."""
    broker.reachable = False

    job = api.submit().json

    with database.read() as tx:
        assert get_job(tx, job["id"])["next_submit_at"] <= clock.now()


def test_events_of_nobody_are_an_admins(api: Api, admin: Api, runtime: Runtime, database: Database) -> None:
    a_letter(database, tenant=None)
    relay(runtime)

    assert api.get("/v1/events?type=dead_letter.created").json["data"] == []
    assert len(admin.get("/v1/events?type=dead_letter.created").json["data"]) == 1


@pytest.mark.parametrize("query", ["after=-1", "after=x", f"after={2**63}", "limit=500", "cursor=x", "topic=job"])
def test_a_list_of_events_that_cannot_be_meant_is_refused(api: Api, query: str) -> None:
    assert api.get(f"/v1/events?{query}").status_code == 422


def test_providers_show_how_they_are_doing(api: Api, runtime: Runtime, database: Database) -> None:
    api.submit()
    job_id = api.submit(a_body(provider="private")).json["id"]
    new_job(database, tenant="globex")
    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))
        lock_account(tx, "renders")
        update_account(tx, "renders", blocked_until=T)

    private, renders = api.get("/v1/providers").json["data"]

    assert (private["name"], private["home_by"], private["jobs"]["succeeded"]) == ("private", {"webhook": 1}, 1)
    assert (renders["name"], renders["backlog"], renders["home_by"]) == ("renders", 1, {})
    assert renders["blocked_until"] == "2026-01-01T00:00:00.000000Z"
    assert renders["spend"] == {"currency": "USD", "today": 0.0, "month": 0.0, "budget": None, "exhausted": False}


def test_providers_show_how_their_webhooks_fare_and_what_they_cost(
    api: Api, runtime: Runtime, database: Database
) -> None:
    job_id = api.submit().json["id"]
    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, cost=0.25, at=tx.now))
        recent = [["webhook", "succeeded", 0.0], ["poll", "failed", 6.0]]
        put_standing(tx, "renders", recent=recent, degraded_at=T)

    _private, renders = api.get("/v1/providers").json["data"]

    assert (renders["webhook_share"], renders["error_rate"]) == (0.5, 0.5)
    assert renders["heal_s"] == {"median": 6.0, "worst": 6.0}
    assert renders["webhooks_degraded_at"] == "2026-01-01T00:00:00.000000Z"
    assert (renders["spend"]["today"], renders["spend"]["month"]) == (0.25, 0.25)


def test_a_provider_is_paused_and_resumed(admin: Api, clock: FakeClock) -> None:
    paused = admin.post("/v1/providers/renders/pause")
    clock.advance(60)
    again = admin.post("/v1/providers/renders/pause")
    resumed = admin.post("/v1/providers/renders/resume")

    assert (paused.status_code, paused.json["paused_at"]) == (200, "2026-01-01T00:00:00.000000Z")
    assert again.json["paused_at"] == paused.json["paused_at"]
    assert resumed.json["paused_at"] is None


def test_a_paused_provider_still_takes_jobs(admin: Api) -> None:
    admin.post("/v1/providers/renders/pause")

    assert admin.submit().status_code == 202


def test_another_tenants_provider_is_not_there(admin: Api) -> None:
    assert admin.post("/v1/providers/theirs/pause").status_code == 404
    assert admin.post("/v1/providers/nobodys/pause").status_code == 404
    assert [entry["name"] for entry in admin.get("/v1/providers").json["data"]] == ["private", "renders"]


def test_a_provider_that_is_away_says_since_when_and_why(api: Api, database: Database) -> None:
    def outages() -> dict[str, object]:
        return {provider["name"]: provider["outage"] for provider in api.get("/v1/providers").json["data"]}

    assert outages()["renders"] is None
    with database.write() as tx:
        lock_account(tx, "renders")
        update_account(tx, "renders", outage_at=T, outage_reason="answered: HTTP 502", next_probe_at=T, probes=3)

    at = "2026-01-01T00:00:00.000000Z"
    assert outages()["renders"] == {"since": at, "reason": "answered: HTTP 502", "probes": 3, "next_probe_at": at}
