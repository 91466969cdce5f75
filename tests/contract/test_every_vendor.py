"""Every vendor, by adapter or by description: one suite, one row of the table after another."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.states import JobState
from jobs.providers.port import Gone
from jobs.services.submitting.plan import Sent, SubmitStep, next_step
from tests.contract.asking import Open, a_request, a_word, every, name_of
from tests.contract.described_cases import BFL, HF_JOBS, HIGGSFIELD, LUMA, PRESETS, TOGETHER
from tests.contract.queue_cases import QUEUES
from tests.contract.vendor_cases import ASSEMBLYAI, CASES, HEYGEN, MUX, RUNWAY, SPEECH, WORDY, Case
from tests.contract.vendor_server import Lost, Reply, Says

ALL, ALL_WORDY = CASES + QUEUES + PRESETS, WORDY + QUEUES + PRESETS

# Submit --------------------------------------------------------------------------------------------------


@every(ALL)
def test_a_submit_is_worded_as_the_vendor_has_it(open_vendor: Open, case: Case) -> None:
    server = open_vendor(case, Says(case.accepted, "201 Created"))

    report = server.adapter.submit(a_request(case))

    path, body, headers = case.submitted
    (asked,) = server.asked
    assert report.provider_job_id == name_of(case)
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
        pytest.param(Says({"data": {}, "id": None, "dubbing_id": ""}), id="an id that is none"),
        pytest.param(Says([{"id": "x"}]), id="a list"),
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


@pytest.mark.parametrize(
    ("case", "step"),
    [
        pytest.param(RUNWAY, SubmitStep.WAIT, id="runway: no key, no list, no webhook"),
        pytest.param(HEYGEN, SubmitStep.RESEND, id="heygen: the same key again"),
        pytest.param(ASSEMBLYAI, SubmitStep.WAIT, id="assemblyai: its webhook or a person"),
        pytest.param(MUX, SubmitStep.ASK, id="mux: its list"),
        pytest.param(SPEECH, SubmitStep.WAIT, id="elevenlabs: its webhook or a person"),
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


# Read ----------------------------------------------------------------------------------------------------


@every(ALL)
def test_every_status_word_has_its_state_in_any_case(open_vendor: Open, case: Case) -> None:
    """F24"""
    words = [*case.words, *(f" {word.swapcase()} " for word in case.words)]
    server = open_vendor(case, *(Says(case.shows(word)) for word in words))

    seen = [server.adapter.status(case.run).state for _ in words]

    assert seen == [*case.words.values()] * 2
    assert {asked.line for asked in server.asked} == {f"GET {case.read}"}


@every(ALL_WORDY)
@pytest.mark.parametrize("word", ["aborted", "ELAPSED", "upscaling", None, {"code": 3}, ""])
def test_a_word_the_vendor_does_not_have_is_no_state(open_vendor: Open, case: Case, word: object) -> None:
    """F24"""
    report = open_vendor(case, Says(case.shows(word))).adapter.status(case.run)

    words = {known.lower(): state for known, state in case.words.items()}
    own = words.get(word.lower()) if isinstance(word, str) else None
    assert report.provider_job_id == name_of(case)
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
        Says({"id": "other", "request_id": "other", "status": "completed", "state": "completed"}),
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
