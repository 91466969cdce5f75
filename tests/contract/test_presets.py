"""What one preset or another does that `test_every_vendor` does not ask of all vendors."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.config.presets import preset_names
from jobs.core.errors import Transient
from jobs.core.states import JobState
from jobs.providers.port import AlreadyFinished, Gone, KeyUse, Refused, SubmitRequest
from tests.contract.asking import Open, a_request, a_word, every, name_of
from tests.contract.described_cases import BATCH, BFL, HF_JOBS, HIGGSFIELD, LUMA, PRESETS, TOGETHER
from tests.contract.vendor_cases import CALLBACK, KEY, TOKEN, Case
from tests.contract.vendor_server import Lost, Says

CANCELS = (
    pytest.param(HIGGSFIELD, "POST /requests/r-1/cancel", id="higgsfield"),
    pytest.param(TOGETHER, "POST /v1/fine-tunes/ft-1/cancel", id="together"),
    pytest.param(BATCH, "POST /v1/batches/bt-1/cancel", id="together-batch"),
    pytest.param(HF_JOBS, "POST /api/jobs/acme/h-1/cancel", id="hf-jobs"),
)


def test_every_preset_is_exercised() -> None:
    assert {case.adapter for case in PRESETS} == set(preset_names())


# Submit --------------------------------------------------------------------------------------------------


@every(PRESETS)
def test_a_refused_submit_is_over_and_says_why(open_vendor: Open, case: Case) -> None:
    words = {"error": "prompt is too long", "detail": "prompt is too long"}

    with pytest.raises(Refused, match="prompt is too long"):
        open_vendor(case, Says(words, "422 Bad")).adapter.submit(a_request(case))


@pytest.mark.parametrize("model", [None, "", "../admin", "a//b", "a/../../b", "."])
@pytest.mark.parametrize("case", [HIGGSFIELD, BFL], ids=["higgsfield", "bfl"])
def test_a_model_that_would_lead_elsewhere_is_refused_before_anything_is_sent(
    open_vendor: Open, case: Case, model: object
) -> None:
    server = open_vendor(case, Says(case.accepted))
    request = SubmitRequest({"model": model, "prompt": "x"}, KEY, TOKEN, CALLBACK)  # type: ignore[dict-item]

    if case is BFL and isinstance(model, str) and "/" in model:  # its model is one segment, which it cannot leave
        server.adapter.submit(request)
    else:
        with pytest.raises(Refused) as caught:
            server.adapter.submit(request)
        assert caught.value.code == "invalid_input"

    assert {asked.line for asked in server.asked} <= {f"POST /v1/{str(model).replace('/', '%2F')}"}


# Search --------------------------------------------------------------------------------------------------


def test_a_generation_is_found_by_the_token_in_its_callback_url(open_vendor: Open) -> None:
    """F30 d"""
    listed = [
        {"id": "g-0", "request": {"callback_url": "https://me.example/webhooks/p/other"}},
        {"id": "g-9"},
        {"id": "g-1", "request": {"callback_url": CALLBACK}},
    ]
    server = open_vendor(LUMA, Says({"generations": listed, "has_more": False}))

    found = server.adapter.find(idempotency_key=KEY, token=TOKEN)

    assert [report.provider_job_id for report in found] == ["g-1"]
    assert server.asked[0].line == "GET /generations?limit=100"


def test_a_job_is_found_by_its_label_and_a_list_that_was_not_filtered_is_looked_through(open_vendor: Open) -> None:
    listed = [{"id": "h-0", "labels": {"homing": "other"}}, {"id": "h-1", "labels": {"homing": TOKEN}}, {"id": "h-2"}]
    server = open_vendor(HF_JOBS, Says(listed))

    found = server.adapter.find(idempotency_key=KEY, token=TOKEN)

    assert [report.provider_job_id for report in found] == ["h-1"]
    assert server.asked[0].line == "GET /api/jobs/acme?label=homing%3Dtoken-1"


@every((LUMA, HF_JOBS))
@pytest.mark.parametrize("body", [{"generations": None}, {"error": "x"}, "no", b"<html>"])
def test_a_list_of_another_shape_is_no_empty_list(open_vendor: Open, case: Case, body: object) -> None:
    with pytest.raises(Transient):
        open_vendor(case, Says(body)).adapter.find(idempotency_key=KEY, token=TOKEN)


# Read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "word"), [(BFL, "Content Moderated"), (HIGGSFIELD, "nsfw")], ids=["bfl", "higgsfield"]
)
def test_a_failure_without_a_reason_tells_the_vendors_word(open_vendor: Open, case: Case, word: str) -> None:
    error = open_vendor(case, Says(case.shows(word))).adapter.status(case.run).error

    assert error is not None
    assert word in error.message


def test_a_task_that_is_not_found_is_lost_and_not_failed(open_vendor: Open) -> None:
    with pytest.raises(Gone):
        open_vendor(BFL, Says({"id": "b-1", "status": "Task not found"})).adapter.status("b-1")


@every(PRESETS)
def test_an_id_cannot_leave_its_place(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says({}, "404 Not Found"))
    field = case.run.rpartition("/")[0]

    for run in ("..", ".", "x?y=1&z#f"):
        with pytest.raises(Gone):
            server.adapter.status(f"{field}/{run}" if field else run)

    lines = [asked.line for asked in server.asked]
    assert lines[-1] == f"GET {case.read}".replace(name_of(case), "x%3Fy%3D1%26z%23f")
    assert case is BFL or len(lines) == 1  # its id is a parameter, where dots fold nothing away


def test_progress_in_per_cent_is_a_fraction(open_vendor: Open) -> None:
    report = open_vendor(BATCH, Says(BATCH.shows("IN_PROGRESS"))).adapter.status(BATCH.run)

    assert report.progress is not None
    assert report.progress.fraction == 0.4


def test_a_link_says_until_when_it_is_good(open_vendor: Open, clock: FakeClock) -> None:
    fields, _links = BFL.succeeded
    server = open_vendor(BFL, Says(BFL.shows("Ready", **fields)))

    (link,) = server.adapter.status("b-1").links

    assert link.expires_at == (clock.now() + timedelta(minutes=10)).isoformat()
    assert server.adapter.capabilities.result_ttl == timedelta(minutes=10)


# Cancel --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "line"), CANCELS)
def test_a_run_is_canceled_where_the_vendor_can(open_vendor: Open, case: Case, line: str) -> None:
    canceled = case.shows(a_word(case, JobState.CANCELED)) if JobState.CANCELED in case.words.values() else {}
    server = open_vendor(case, Says(b"", "202 Accepted"), Says(canceled), Says({}, "400 Too late"), Says(b"<html>"))

    assert server.adapter.cancel(case.run) is None
    report = server.adapter.cancel(case.run)
    assert report is not None
    assert (report.provider_job_id, report.state) == (name_of(case), JobState.CANCELED)
    with pytest.raises(AlreadyFinished):
        server.adapter.cancel(case.run)
    with pytest.raises(Transient):
        server.adapter.cancel(case.run)
    assert {asked.line for asked in server.asked} == {line}


def test_a_generation_at_work_is_deleted_and_a_finished_one_never(open_vendor: Open) -> None:
    """F34"""
    server = open_vendor(LUMA, Says(LUMA.shows("dreaming")), Says(b"", "204 No Content"), Says(LUMA.shows("completed")))

    report = server.adapter.cancel("g-1")
    assert report is not None
    assert report.state is JobState.CANCELED
    with pytest.raises(AlreadyFinished):
        server.adapter.cancel("g-1")

    lines = [asked.line for asked in server.asked]
    assert lines == ["GET /generations/g-1", "DELETE /generations/g-1", "GET /generations/g-1"]


@every(PRESETS)
def test_a_cancel_of_a_run_nobody_knows_is_gone(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says({}, "404 Not Found"))

    assert server.adapter.capabilities.cancel is (case is not BFL)
    if server.adapter.capabilities.cancel:
        with pytest.raises(Gone):
            server.adapter.cancel(case.run)


# Webhook -------------------------------------------------------------------------------------------------


@every((BFL, LUMA, HIGGSFIELD))
def test_an_event_tells_of_its_run(open_vendor: Open, case: Case) -> None:
    adapter = open_vendor(case, Lost()).adapter

    seen = [adapter.read_webhook(case.shows(word), {}).report for word in case.words]  # type: ignore[arg-type]

    assert [report.state for report in seen if report] == [*case.words.values()]
    assert {report.provider_job_id for report in seen if report} == {name_of(case)}
    assert adapter.read_webhook({"status": "completed", "state": "x"}, {}).report is None
    unknown = adapter.read_webhook(case.shows("daydreaming"), {}).report  # type: ignore[arg-type]
    assert unknown is not None
    assert unknown.unknown_status == "daydreaming"


def test_a_signed_event_brings_its_result_and_an_unsigned_one_is_a_reason_to_look(open_vendor: Open) -> None:
    fields, links = BFL.succeeded
    adapters = {case.adapter: open_vendor(case, Lost()).adapter for case in (BFL, LUMA, HIGGSFIELD)}

    report = adapters["bfl"].read_webhook(BFL.shows("Ready", **fields), {}).report  # type: ignore[arg-type]

    assert report is not None
    assert report.output == fields["result"]
    assert tuple(link.url for link in report.links) == links
    hints = {name: adapter.capabilities.webhook_is_hint for name, adapter in adapters.items()}
    assert hints == {"bfl": False, "luma": True, "higgsfield": True}


@every((TOGETHER, HF_JOBS))
def test_a_vendor_without_webhooks_is_sent_no_address(open_vendor: Open, case: Case) -> None:
    adapter = open_vendor(case, Lost()).adapter

    assert not adapter.capabilities.callback_per_request
    assert adapter.capabilities.keys is KeyUse.NONE
    assert adapter.read_webhook({"id": "x", "status": "completed"}, {}).report is None
