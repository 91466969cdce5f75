"""Adapters against servers that say exactly what a test wants, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.states import JobState
from jobs.providers.port import AlreadyFinished, Gone, Refused, SubmitRequest
from jobs.services.submit_plan import Sent, SubmitStep, next_step
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
    WORDY,
    Case,
)
from tests.contract.vendor_server import Lost, Reply, Says, Vendor, vendor

Open = Callable[..., Vendor]
ALL, ALL_WORDY = CASES + QUEUES, WORDY + QUEUES


@pytest.fixture
def open_vendor(clock: FakeClock) -> Iterator[Open]:
    with ExitStack() as opened:

        def start(case: Case, *replies: Reply, **entry: object) -> Vendor:
            return opened.enter_context(vendor(case.adapter, clock, *replies, **{**case.entry, **entry}))

        yield start


def every(cases: tuple[Case, ...]) -> pytest.MarkDecorator:
    names = [f"{case.adapter}-{case.read.split('/')[2]}" for case in cases]
    return pytest.mark.parametrize("case", cases, ids=names)


def a_request(case: Case) -> SubmitRequest:
    return SubmitRequest(case.input, KEY, TOKEN, CALLBACK)  # type: ignore[arg-type]  # JSON by construction


def a_word(case: Case, *states: JobState) -> str:
    return next(word for word, state in case.words.items() if state in states)


# Submit --------------------------------------------------------------------------------------------------


@every(ALL)
def test_a_submit_is_worded_as_the_vendor_has_it(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says(case.accepted, "201 Created"))

    report = server.adapter.submit(a_request(case))

    path, body, headers = case.submitted
    (asked,) = server.asked
    assert report.provider_job_id == case.run
    assert asked.line == f"POST {path}"
    assert headers.items() <= asked.headers.items()
    if isinstance(body, tuple):
        assert [part for part in body if part.encode() not in asked.body] == []
    else:
        assert asked.json == body


@every(ALL)
def test_every_try_of_an_attempt_sends_the_same_bytes(open_vendor: Open, case: Case) -> None:
    """F30"""
    server = open_vendor(case, Says(case.accepted))

    server.adapter.submit(a_request(case))
    server.adapter.submit(a_request(case))

    first, second = server.asked
    assert (first.body, first.headers.get("idempotency-key")) == (second.body, second.headers.get("idempotency-key"))


@every(ALL)
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Lost(), id="reset after the send"),
        pytest.param(Says(b"<html>502</html>"), id="a page under 200"),
        pytest.param(Says(b'{"id":"p-'), id="cut JSON"),
        pytest.param(Says({"status": "queued"}, "201 Created"), id="accepted without an id"),
        pytest.param(Says({"data": {}, "id": 7, "dubbing_id": ""}), id="an id that is none"),
        pytest.param(Says({"error": "x"}, "500 Oops"), id="500"),
        pytest.param(Says({"error": {"code": "request_in_progress"}}, "409 Conflict"), id="same key in progress"),
    ],
)
def test_a_submit_without_a_usable_answer_may_have_arrived(open_vendor: Open, case: Case, reply: Reply) -> None:
    """F30 a, c"""
    server = open_vendor(case, reply)

    with pytest.raises(UnknownOutcome):
        server.adapter.submit(a_request(case))

    assert len(server.asked) == 1


@every(ALL)
def test_a_submit_that_must_wait_was_not_accepted(open_vendor: Open, case: Case) -> None:
    """F27"""
    server = open_vendor(case, Says({"error": "slow"}, "429 Slow", "Retry-After: 30"), Says({}, "401 No"))

    with pytest.raises(Transient) as caught:
        server.adapter.submit(a_request(case))
    assert caught.value.retry_after == timedelta(seconds=30)
    with pytest.raises(Transient):
        server.adapter.submit(a_request(case))


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


@pytest.mark.parametrize(
    ("case", "step"),
    [
        pytest.param(RUNWAY, SubmitStep.WAIT, id="runway: no key, no list, no webhook"),
        pytest.param(HEYGEN, SubmitStep.RESEND, id="heygen: the same key again"),
        pytest.param(ASSEMBLYAI, SubmitStep.WAIT, id="assemblyai: its webhook or a person"),
        pytest.param(MUX, SubmitStep.ASK, id="mux: its list"),
        pytest.param(SPEECH, SubmitStep.WAIT, id="elevenlabs: its webhook or a person"),
    ],
)
def test_after_a_lost_answer_only_what_the_vendor_can_bear_is_done(
    open_vendor: Open, clock: FakeClock, case: Case, step: SubmitStep
) -> None:
    """F30 d, e"""
    capabilities = open_vendor(case, Lost()).adapter.capabilities

    assert next_step(Sent(clock.now()), capabilities, now=clock.now() + timedelta(minutes=1)) is step


def test_heygens_key_is_not_trusted_beyond_its_day(open_vendor: Open, clock: FakeClock) -> None:
    capabilities = open_vendor(HEYGEN, Lost()).adapter.capabilities

    assert next_step(Sent(clock.now()), capabilities, now=clock.now() + timedelta(hours=24)) is SubmitStep.WAIT


# Read ----------------------------------------------------------------------------------------------------


@every(ALL)
def test_every_status_word_has_its_state_in_any_case(open_vendor: Open, case: Case) -> None:
    """F24"""
    words = [*case.words, *(f" {word.capitalize()} " for word in case.words)]
    server = open_vendor(case, *(Says(case.shows(word)) for word in words))

    seen = [server.adapter.status(case.run).state for _ in words]

    assert seen == [*case.words.values()] * 2
    assert {asked.line for asked in server.asked} == {f"GET {case.read}"}


@every(ALL_WORDY)
@pytest.mark.parametrize("word", ["aborted", "EXPIRED", None, {"code": 3}, ""])
def test_a_word_the_vendor_does_not_have_is_no_state(open_vendor: Open, case: Case, word: object) -> None:
    """F24"""
    report = open_vendor(case, Says(case.shows(word))).adapter.status(case.run)

    own = case.words.get(word.lower()) if isinstance(word, str) else None
    assert report.provider_job_id == case.run
    assert report.state is own
    assert bool(report.unknown_status) is (own is None)


@every(ALL)
def test_success_brings_output_and_links(open_vendor: Open, case: Case) -> None:
    fields, links = case.succeeded
    server = open_vendor(case, Says(case.shows(a_word(case, JobState.SUCCEEDED), **fields)))

    report = server.adapter.status(case.run)

    assert report.state is JobState.SUCCEEDED
    assert report.output
    assert [link.url for link in report.links] == [link.format(url=server.config.base_url) for link in links]


@every(ALL_WORDY)
def test_failure_brings_its_reason(open_vendor: Open, case: Case) -> None:
    fields, (code, message) = case.failed
    server = open_vendor(case, Says(case.shows(a_word(case, JobState.FAILED), **fields)))

    report = server.adapter.status(case.run)

    assert report.state is JobState.FAILED
    assert report.error is not None
    assert (report.error.code, report.error.message) == (code, message)


@every(ALL)
def test_every_blip_of_a_read_is_a_delay_and_the_answer_after_them_is_taken(open_vendor: Open, case: Case) -> None:
    """F25, F26: pages, empty and cut bodies, resets, other shapes, other runs; then the true one."""
    blips: tuple[Reply, ...] = (
        Says(b"<html>502</html>", "502 Bad Gateway"),
        Says(b"<html><head><title>502 Bad Gateway</title>"),
        Says(b""),
        Says(b'{"status":"succ'),
        Lost(),
        Says(b"", "408 Request Timeout"),
        Says({"error": {"code": "rate_limited"}}),
        Says({"data": None}),
        Says([]),
        Says({"id": "other", "dubbing_id": "other", "transcription_id": "other", "text": "", "status": "completed"}),
        Says({"data": {"id": "other", "status": "ready"}}),
    )
    server = open_vendor(case, *blips, Says(case.shows(a_word(case, JobState.SUCCEEDED))))

    for _ in blips:
        with pytest.raises(Transient):
            server.adapter.status(case.run)

    assert server.adapter.status(case.run).state is JobState.SUCCEEDED


@every(ALL)
def test_a_busy_read_says_how_long(open_vendor: Open, case: Case) -> None:
    """F27"""
    server = open_vendor(case, Says({}, "429 Slow", "Retry-After: 30"))

    with pytest.raises(Transient) as caught:
        server.adapter.status(case.run)

    assert caught.value.retry_after == timedelta(seconds=30)


@every(ALL_WORDY)
@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_a_run_the_vendor_does_not_know_is_gone(open_vendor: Open, case: Case, status: str) -> None:
    with pytest.raises(Gone):
        open_vendor(case, Says({"error": "no"}, status)).adapter.status(case.run)


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
