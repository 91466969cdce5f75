"""What one adapter or another does that `test_every_vendor` does not ask of all of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.states import JobState
from jobs.providers.port import AlreadyFinished, Gone, Refused, SubmitRequest
from jobs.services.submitting.plan import Sent, SubmitStep, next_step
from tests.contract.asking import Open, a_request, a_word, every
from tests.contract.queue_cases import QUEUES
from tests.contract.vendor_cases import (
    ASSEMBLYAI,
    CALLBACK,
    CASES,
    DUBBING,
    HEYGEN,
    KEY,
    MUX,
    RUNWAY,
    SPEECH,
    TOKEN,
    Case,
)
from tests.contract.vendor_server import Lost, Says

ALL = CASES + QUEUES


# Submit --------------------------------------------------------------------------------------------------


@every(ALL)
def test_an_id_that_is_a_number_is_none(open_vendor: Open, case: Case) -> None:
    with pytest.raises(UnknownOutcome):
        open_vendor(case, Says({"data": {}, "id": 7, "dubbing_id": ""})).adapter.submit(a_request(case))


@every(ALL)
def test_a_refused_submit_is_over(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says({"error": {"code": "invalid", "message": "prompt is too long"}}, "400 Bad"))

    with pytest.raises(Refused, match="prompt is too long"):
        server.adapter.submit(a_request(case))


@every((RUNWAY, HEYGEN, DUBBING))
@pytest.mark.parametrize("endpoint", ["../tasks", "Image", "", "a b", 7, None])
def test_a_route_that_is_none_is_refused_before_anything_is_sent(
    open_vendor: Open, case: Case, endpoint: object
) -> None:
    server = open_vendor(case, Says(case.accepted))
    request = SubmitRequest({**case.input, "endpoint": endpoint}, KEY, TOKEN, CALLBACK)  # type: ignore[dict-item]

    with pytest.raises(Refused, match="endpoint"):
        server.adapter.submit(request)

    assert server.asked == []


def test_heygens_key_is_not_trusted_beyond_its_day(open_vendor: Open, clock: FakeClock) -> None:
    capabilities = open_vendor(HEYGEN, Lost()).adapter.capabilities

    assert next_step(Sent(clock.now()), capabilities, now=clock.now() + timedelta(hours=24)) is SubmitStep.WAIT


# Read ----------------------------------------------------------------------------------------------------


def test_a_transcript_that_is_not_there_yet_is_no_news(open_vendor: Open) -> None:
    report = open_vendor(SPEECH, Says({"detail": "not found"}, "404 Not Found")).adapter.status("t-1")

    assert (report.provider_job_id, report.state, report.unknown_status) == ("t-1", None, None)


@every(CASES)
def test_an_id_cannot_leave_its_place_in_the_path(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says({}, "404 Not Found"))
    folder = case.read.rpartition("/")[0]

    for run in ("..", ".", "../x?y=1"):
        try:
            server.adapter.status("dubbing/" + run if case is DUBBING else run)
        except Gone:
            continue

    assert [asked.line for asked in server.asked] == [f"GET {folder}/..%2Fx%3Fy%3D1"]


def test_an_asset_is_ready_when_the_files_asked_for_are(open_vendor: Open) -> None:
    preparing = (
        {"static_renditions": {"status": "preparing", "files": []}},
        {
            "static_renditions": {
                "files": [{"name": "a.mp4", "status": "preparing"}, {"name": "b.mp4", "status": "ready"}]
            }
        },
        {"master": {"status": "preparing"}},
    )
    server = open_vendor(MUX, *(Says(MUX.shows("ready", **fields)) for fields in preparing))

    seen = [server.adapter.status("as-1") for _ in preparing]

    assert {report.state for report in seen} == {JobState.RUNNING}
    assert {report.links for report in seen} == {()}


def test_a_transcript_does_not_show_the_address_it_was_called_back_at(open_vendor: Open) -> None:
    server = open_vendor(ASSEMBLYAI, Says(ASSEMBLYAI.shows("completed", text="coo", webhook_url=CALLBACK)))

    assert server.adapter.status("t-1").output == {"id": "t-1", "status": "completed", "text": "coo"}


# Search --------------------------------------------------------------------------------------------------


def test_an_asset_is_found_by_our_token_on_a_later_page(open_vendor: Open) -> None:
    """F30 d"""
    other = {"id": "as-0", "status": "ready", "meta": {"external_id": "nobody's"}}
    ours = {"id": "as-1", "status": "preparing", "meta": {"external_id": TOKEN}}
    server = open_vendor(
        MUX, Says({"data": [other, {}], "next_cursor": "c2"}), Says({"data": [ours], "next_cursor": None})
    )

    (found,) = server.adapter.find(idempotency_key=KEY, token=TOKEN)

    assert (found.provider_job_id, found.state) == ("as-1", JobState.RUNNING)
    assert server.asked[1].line == "GET /video/v1/assets?limit=100&cursor=c2"


@pytest.mark.parametrize("body", [{"data": None}, {"jobs": []}, {"data": ["as-1"]}, []])
def test_a_list_of_another_shape_is_no_empty_list(open_vendor: Open, body: object) -> None:
    with pytest.raises(Transient):
        open_vendor(MUX, Says(body)).adapter.find(idempotency_key=KEY, token=TOKEN)


# Cancel --------------------------------------------------------------------------------------------------


@every(tuple(case for case in CASES if case.deletes and case is not SPEECH))
def test_a_run_at_work_is_canceled_by_its_deletion(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says(case.shows(a_word(case, JobState.RUNNING))), Says(b"", "204 No Content"))

    report = server.adapter.cancel(case.run)

    assert report is not None
    assert (report.provider_job_id, report.state) == (case.run, JobState.CANCELED)
    assert [asked.line for asked in server.asked] == [f"GET {case.read}", f"DELETE {case.read}"]


@every(tuple(case for case in CASES if case.deletes))
def test_a_finished_run_is_never_deleted(open_vendor: Open, case: Case) -> None:
    """F34"""
    server = open_vendor(case, Says(case.shows(a_word(case, JobState.SUCCEEDED))))

    with pytest.raises(AlreadyFinished):
        server.adapter.cancel(case.run)

    assert [asked.line for asked in server.asked] == [f"GET {case.read}"]


def test_what_cannot_be_canceled_says_so(open_vendor: Open) -> None:
    server = open_vendor(ASSEMBLYAI, Says({}))

    assert not server.adapter.capabilities.cancel
    assert server.adapter.cancel("t-1") is None
    assert server.asked == []
