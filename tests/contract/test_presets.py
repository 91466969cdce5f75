"""The presets against servers that say exactly what a test wants, in each vendor's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.config.presets import preset_names
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.states import JobState
from jobs.providers.port import AlreadyFinished, Gone, KeyUse, Refused, SubmitRequest
from jobs.services.submit_plan import Sent, SubmitStep, next_step
from tests.contract.described_cases import BATCH, BFL, HF_JOBS, HIGGSFIELD, LUMA, PRESETS, TOGETHER
from tests.contract.vendor_cases import CALLBACK, KEY, TOKEN, Case
from tests.contract.vendor_server import Asked, Lost, Reply, Says, Vendor, vendor

Open = Callable[..., Vendor]

CANCELS = (
    pytest.param(HIGGSFIELD, "POST /requests/r-1/cancel", id="higgsfield"),
    pytest.param(TOGETHER, "POST /v1/fine-tunes/ft-1/cancel", id="together"),
    pytest.param(BATCH, "POST /v1/batches/bt-1/cancel", id="together-batch"),
    pytest.param(HF_JOBS, "POST /api/jobs/acme/h-1/cancel", id="hf-jobs"),
)


@pytest.fixture
def open_vendor(clock: FakeClock) -> Iterator[Open]:
    with ExitStack() as opened:

        def start(case: Case, *replies: Reply, **entry: object) -> Vendor:
            return opened.enter_context(vendor(case.adapter, clock, *replies, **{**case.entry, **entry}))

        yield start


def every(cases: tuple[Case, ...] = PRESETS) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[f"{case.adapter}-{case.run}" for case in cases])


def a_request(case: Case) -> SubmitRequest:
    return SubmitRequest(case.input, KEY, TOKEN, CALLBACK)  # type: ignore[arg-type]  # JSON by construction


def bare(case: Case) -> str:
    """The run's id as the vendor has it."""
    return case.run.rpartition("/")[2]


def a_word(case: Case, state: JobState) -> str:
    return next(word for word, known in case.words.items() if known is state)


def is_worded(asked: Asked, case: Case) -> bool:
    path, body, headers = case.submitted
    return asked.line == f"POST {path}" and asked.json == body and headers.items() <= asked.headers.items()


def test_every_preset_is_exercised() -> None:
    assert {case.adapter for case in PRESETS} == set(preset_names())


# Submit --------------------------------------------------------------------------------------------------


@every()
def test_a_submit_is_worded_as_the_vendor_has_it(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says(case.accepted, "201 Created"))

    first = server.adapter.submit(a_request(case))
    server.adapter.submit(a_request(case))

    assert first.provider_job_id == bare(case)
    assert [is_worded(asked, case) for asked in server.asked] == [True, True]
    assert server.asked[0] == server.asked[1]


@every()
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Lost(), id="reset after the send"),
        pytest.param(Says(b"<html>502</html>"), id="a page under 200"),
        pytest.param(Says(b'{"id":"p-'), id="cut JSON"),
        pytest.param(Says({"status": "queued"}, "201 Created"), id="accepted without an id"),
        pytest.param(Says([{"id": "x"}]), id="a list"),
        pytest.param(Says({"error": "x"}, "500 Oops"), id="500"),
        pytest.param(Says({"error": "busy"}, "409 Conflict"), id="409"),
    ],
)
def test_a_submit_without_a_usable_answer_may_have_arrived(open_vendor: Open, case: Case, reply: Reply) -> None:
    """F30 a, c"""
    server = open_vendor(case, reply)

    with pytest.raises(UnknownOutcome):
        server.adapter.submit(a_request(case))

    assert len(server.asked) == 1


@every()
def test_a_submit_that_must_wait_was_not_accepted(open_vendor: Open, case: Case) -> None:
    """F27"""
    server = open_vendor(case, Says({"error": "slow"}, "429 Slow", "Retry-After: 30"))

    with pytest.raises(Transient) as caught:
        server.adapter.submit(a_request(case))

    assert caught.value.retry_after == timedelta(seconds=30)


@every()
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


@pytest.mark.parametrize(
    ("case", "step"),
    [
        pytest.param(BFL, SubmitStep.WAIT, id="bfl: its webhook or a person"),
        pytest.param(LUMA, SubmitStep.ASK, id="luma: its list"),
        pytest.param(HIGGSFIELD, SubmitStep.RESEND, id="higgsfield: the same key again"),
        pytest.param(TOGETHER, SubmitStep.WAIT, id="together: a person"),
        pytest.param(HF_JOBS, SubmitStep.ASK, id="hf-jobs: its labels"),
    ],
)
def test_after_a_lost_answer_only_what_the_vendor_can_bear_is_done(
    open_vendor: Open, clock: FakeClock, case: Case, step: SubmitStep
) -> None:
    """F30 d, e"""
    capabilities = open_vendor(case, Lost()).adapter.capabilities

    assert next_step(Sent(clock.now()), capabilities, now=clock.now() + timedelta(minutes=1)) is step


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


@every()
def test_every_status_word_has_its_state_in_any_case(open_vendor: Open, case: Case) -> None:
    """F24"""
    words = [*case.words, *(f" {word.swapcase()} " for word in case.words)]
    server = open_vendor(case, *(Says(case.shows(word)) for word in words))

    seen = [server.adapter.status(case.run).state for _ in words]

    assert seen == [*case.words.values()] * 2
    assert {asked.line for asked in server.asked} == {f"GET {case.read}"}


@every()
@pytest.mark.parametrize("word", ["aborted", "upscaling", None, {"code": 3}, ""])
def test_a_word_nobody_knows_is_no_state(open_vendor: Open, case: Case, word: object) -> None:
    """F24"""
    report = open_vendor(case, Says(case.shows(word))).adapter.status(case.run)

    assert report.provider_job_id == bare(case)
    assert report.state is None
    assert report.unknown_status


@every()
def test_success_brings_output_and_links(open_vendor: Open, case: Case) -> None:
    fields, links = case.succeeded
    server = open_vendor(case, Says(case.shows(a_word(case, JobState.SUCCEEDED), **fields)))

    report = server.adapter.status(case.run)

    assert report.state is JobState.SUCCEEDED
    assert report.output
    assert tuple(link.url for link in report.links) == links


@every()
def test_failure_brings_its_reason(open_vendor: Open, case: Case) -> None:
    fields, (code, message) = case.failed
    server = open_vendor(case, Says(case.shows(a_word(case, JobState.FAILED), **fields)))

    report = server.adapter.status(case.run)

    assert report.state is JobState.FAILED
    assert report.error is not None
    assert (report.error.code, report.error.message) == (code, message)


@pytest.mark.parametrize(
    ("case", "word"), [(BFL, "Content Moderated"), (HIGGSFIELD, "nsfw")], ids=["bfl", "higgsfield"]
)
def test_a_failure_without_a_reason_tells_the_vendors_word(open_vendor: Open, case: Case, word: str) -> None:
    error = open_vendor(case, Says(case.shows(word))).adapter.status(case.run).error

    assert error is not None
    assert word in error.message


@every()
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
        Says([]),
        Says({"id": "other", "request_id": "other", "status": "completed", "state": "completed"}),
    )
    server = open_vendor(case, *blips, Says(case.shows(a_word(case, JobState.SUCCEEDED))))

    for _ in blips:
        with pytest.raises(Transient):
            server.adapter.status(case.run)

    assert server.adapter.status(case.run).state is JobState.SUCCEEDED


@every()
def test_a_busy_read_says_how_long(open_vendor: Open, case: Case) -> None:
    """F27"""
    with pytest.raises(Transient) as caught:
        open_vendor(case, Says({}, "429 Slow", "Retry-After: 30")).adapter.status(case.run)

    assert caught.value.retry_after == timedelta(seconds=30)


@every()
@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_a_run_the_vendor_does_not_know_is_gone(open_vendor: Open, case: Case, status: str) -> None:
    with pytest.raises(Gone):
        open_vendor(case, Says({"error": "no"}, status)).adapter.status(case.run)


def test_a_task_that_is_not_found_is_lost_and_not_failed(open_vendor: Open) -> None:
    with pytest.raises(Gone):
        open_vendor(BFL, Says({"id": "b-1", "status": "Task not found"})).adapter.status("b-1")


@every()
def test_an_id_cannot_leave_its_place(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says({}, "404 Not Found"))
    field = case.run.rpartition("/")[0]

    for run in ("..", ".", "x?y=1&z#f"):
        with pytest.raises(Gone):
            server.adapter.status(f"{field}/{run}" if field else run)

    lines = [asked.line for asked in server.asked]
    assert lines[-1] == f"GET {case.read}".replace(bare(case), "x%3Fy%3D1%26z%23f")
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
    assert (report.provider_job_id, report.state) == (bare(case), JobState.CANCELED)
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


@every()
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
    assert {report.provider_job_id for report in seen if report} == {bare(case)}
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
