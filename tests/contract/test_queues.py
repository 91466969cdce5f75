"""What is peculiar to Replicate, fal and OpenAI, against a server that says exactly what a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Transient, UnknownOutcome, Unusable
from jobs.core.observations import Link
from jobs.core.states import JobState
from jobs.providers.links import files_in, urls_in
from jobs.providers.port import AlreadyFinished, Gone, Refused, SubmitRequest
from jobs.providers.replicate import callback_fields
from tests.contract.queue_cases import BATCH, REPLICATE, RESPONSE, TUNING
from tests.contract.vendor_cases import CALLBACK, KEY, TOKEN, Case
from tests.contract.vendor_server import Lost, Reply, Says, Vendor, vendor

Open = Callable[..., Vendor]

APP = "fal-ai/flux/dev"
FAL_RUN = "764cabcf-1"
FAL = f"{APP}/{FAL_RUN}"


@pytest.fixture
def open_vendor(clock: FakeClock) -> Iterator[Open]:
    with ExitStack() as opened:

        def start(adapter: str, *replies: Reply, **entry: object) -> Vendor:
            return opened.enter_context(vendor(adapter, clock, *replies, webhook_secrets=[], **entry))

        yield start


def a_request(inputs: object) -> SubmitRequest:
    return SubmitRequest(inputs, KEY, TOKEN, CALLBACK)  # type: ignore[arg-type]  # JSON by construction


# Replicate -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ({"version": "5c7d5dc6", "input": {}}, "POST /v1/predictions"),
        ({"model": "me/it", "input": {}}, "POST /v1/models/me/it/predictions"),
        ({"deployment": "me/it", "input": {}}, "POST /v1/deployments/me/it/predictions"),
        (
            {"kind": "training", "model": "me/it", "version": "v1", "destination": "me/new", "input": {}},
            "POST /v1/models/me/it/versions/v1/trainings",
        ),
    ],
)
def test_replicate_is_asked_where_the_input_belongs(open_vendor: Open, inputs: object, line: str) -> None:
    server = open_vendor("replicate", Says(REPLICATE.accepted, "201 Created"))

    server.adapter.submit(a_request(inputs))

    assert [asked.line for asked in server.asked] == [line]


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"prompt": "x"},
        {"model": "../../v1/account"},
        {"model": "me/it?x=1"},
        {"kind": "training", "model": "me/it"},
        {"kind": "dream", "version": "1"},
    ],
)
def test_replicate_is_not_asked_for_nothing(open_vendor: Open, inputs: object) -> None:
    server = open_vendor("replicate", Says(REPLICATE.accepted))

    with pytest.raises(Refused, match="input") as caught:
        server.adapter.submit(a_request(inputs))

    assert caught.value.code == "invalid_input"
    assert server.asked == []


@pytest.mark.parametrize(
    ("url", "callback", "is_told"),
    [
        ("https://api.replicate.com", "https://me.example/w", True),
        ("https://api.replicate.com", "http://127.0.0.1:8000/w", False),
        ("http://127.0.0.1:9000/replicate", "http://127.0.0.1:8000/w", True),
    ],
)
def test_replicate_is_told_no_callback_that_it_would_refuse(url: str, callback: str, is_told: bool) -> None:
    assert bool(callback_fields(callback, provider_url=url)) is is_told


def test_replicate_trainings_are_read_and_canceled_where_trainings_are(open_vendor: Open) -> None:
    server = open_vendor("replicate", Says(REPLICATE.shows("processing")))
    address = server.adapter.capabilities.address("p1", {"kind": "training"})

    assert server.adapter.status(address).provider_job_id == "p1"
    server.adapter.cancel(address)

    assert [asked.line for asked in server.asked] == ["GET /v1/trainings/p1", "POST /v1/trainings/p1/cancel"]


def test_replicate_files_are_known_to_last_an_hour(open_vendor: Open) -> None:
    output = ["https://cdn.example/1.png"]
    completed = REPLICATE.shows("succeeded", output=output, completed_at="2026-01-01T00:00:00.5Z")
    server = open_vendor(
        "replicate", Says(completed), Says(REPLICATE.shows("succeeded", output=output, completed_at=7))
    )

    timed, untimed = server.adapter.status("p1"), server.adapter.status("p1")

    assert timed.links == (Link(output[0], expires_at="2026-01-01T01:00:00.500000+00:00"),)
    assert untimed.links == (Link(output[0]),)
    assert server.adapter.capabilities.result_ttl == timedelta(hours=1)


def test_an_end_in_the_answer_to_a_submit_is_left_to_a_read(open_vendor: Open) -> None:
    server = open_vendor("replicate", Says(REPLICATE.shows("failed", error="x")))

    report = server.adapter.submit(a_request(REPLICATE.input))

    assert (report.provider_job_id, report.state, report.error) == ("p1", None, None)


# fal -----------------------------------------------------------------------------------------------------


def a_status(word: str, **more: object) -> Says:
    return Says({"status": word, "request_id": FAL_RUN, **more})


def test_fal_is_given_the_input_and_its_callback(open_vendor: Open) -> None:
    server = open_vendor("fal", Says({"request_id": FAL_RUN, "status_url": "https://evil.example/x"}))

    report = server.adapter.submit(a_request({"model": APP, "prompt": "a pigeon"}))

    (asked,) = server.asked
    url = urlsplit(asked.line.removeprefix("POST "))
    assert (url.path, parse_qs(url.query)) == (f"/{APP}", {"fal_webhook": [CALLBACK]})
    assert asked.json == {"prompt": "a pigeon"}
    assert asked.headers["authorization"] == "Key id:s3cret"
    assert (report.provider_job_id, report.state) == (FAL_RUN, JobState.PENDING)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Lost(), id="reset after the send"),
        pytest.param(Says(b"<html>502</html>"), id="a page under 200"),
        pytest.param(Says({"status": "IN_QUEUE"}), id="accepted without an id"),
        pytest.param(Says({"detail": "x"}, "500 Oops"), id="500"),
    ],
)
def test_a_submit_to_fal_without_a_usable_answer_is_sent_once_and_may_have_arrived(
    open_vendor: Open, reply: Reply
) -> None:
    """F30: where the vendor's own client sends ten."""
    server = open_vendor("fal", reply)

    with pytest.raises(UnknownOutcome):
        server.adapter.submit(a_request({"model": APP}))

    assert len(server.asked) == 1


def test_fal_says_in_detail_why_it_refuses(open_vendor: Open) -> None:
    server = open_vendor("fal", Says({"detail": [{"loc": ["body"], "msg": "prompt: field required"}]}, "422 No"))

    with pytest.raises(Refused, match="prompt: field required"):
        server.adapter.submit(a_request({"model": APP}))


@pytest.mark.parametrize(
    ("app", "path"),
    [
        ("fal-ai/flux", "/fal-ai/flux"),
        ("fal-ai/flux/dev/image-to-image", "/fal-ai/flux"),
        ("workflows/me/mine", "/workflows/me/mine"),
        ("comfy/me/mine/sub", "/comfy/me/mine"),
    ],
)
def test_fal_is_read_without_the_subpath(open_vendor: Open, app: str, path: str) -> None:
    server = open_vendor("fal", a_status("IN_PROGRESS"))

    report = server.adapter.status(server.adapter.capabilities.address(FAL_RUN, {"model": app}))

    assert (report.provider_job_id, report.state) == (FAL_RUN, JobState.RUNNING)
    assert [asked.line for asked in server.asked] == [f"GET {path}/requests/{FAL_RUN}/status"]


@pytest.mark.parametrize("address", [FAL_RUN, f"fal-ai/{FAL_RUN}", f"../x/{FAL_RUN}", f"{APP}/..", f"{APP}/"])
def test_a_request_at_fal_without_its_endpoint_cannot_be_found(open_vendor: Open, address: str) -> None:
    server = open_vendor("fal", a_status("IN_PROGRESS"))

    with pytest.raises(Gone):
        server.adapter.status(address)

    assert server.asked == []


@pytest.mark.parametrize(
    ("word", "state"),
    [("IN_QUEUE", JobState.PENDING), (" in_queue ", JobState.PENDING), ("In_Progress", JobState.RUNNING)],
)
def test_fals_words_have_their_states_in_any_case(open_vendor: Open, word: str, state: JobState) -> None:
    """F24"""
    report = open_vendor("fal", a_status(word, queue_position=3)).adapter.status(FAL)

    assert report.state is state
    assert report.progress is not None
    assert report.progress.message == "position 3 in the queue"


@pytest.mark.parametrize("word", ["aborted", "EXPIRED", None, {"code": 3}, ""])
def test_a_word_fal_does_not_have_is_no_state(open_vendor: Open, word: object) -> None:
    """F24"""
    report = open_vendor("fal", Says({"request_id": FAL_RUN, "status": word})).adapter.status(FAL)

    assert (report.provider_job_id, report.state) == (FAL_RUN, None)
    assert report.unknown_status


def test_completed_without_error_is_a_success_once_its_result_is_there(open_vendor: Open) -> None:
    result = {"images": [{"url": "https://cdn.example/1.png", "content_type": "image/png", "file_size": 12}]}
    server = open_vendor("fal", a_status("COMPLETED"), Says(result))

    report = server.adapter.status(FAL)

    assert (report.state, report.output) == (JobState.SUCCEEDED, result)
    assert report.links == (Link("https://cdn.example/1.png", "image/png", 12),)
    assert [asked.line for asked in server.asked][1] == f"GET /fal-ai/flux/requests/{FAL_RUN}"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"error": "CUDA out of memory", "error_type": "runner_error"}, ("runner_error", "CUDA out of memory")),
        ({"error": "CUDA out of memory"}, ("provider_error", "CUDA out of memory")),
        ({"error_type": "request_timeout"}, ("request_timeout", "request_timeout")),
    ],
)
def test_completed_with_an_error_is_a_failure(
    open_vendor: Open, fields: dict[str, object], error: tuple[str, str]
) -> None:
    server = open_vendor("fal", a_status("COMPLETED", **fields))

    report = server.adapter.status(FAL)

    assert report.state is JobState.FAILED
    assert report.error is not None
    assert (report.error.code, report.error.message) == error
    assert len(server.asked) == 1


def test_a_result_that_the_model_refused_is_a_failure(open_vendor: Open) -> None:
    server = open_vendor("fal", a_status("COMPLETED"), Says({"detail": "image too large"}, "422 No"))

    report = server.adapter.status(FAL)

    assert report.state is JobState.FAILED
    assert report.error is not None
    assert report.error.message == "image too large"


def test_every_blip_on_the_way_to_fals_result_is_a_delay(open_vendor: Open) -> None:
    """F25, F26: of the status, and of the result behind it."""
    done = a_status("COMPLETED")
    blips: tuple[tuple[Reply, ...], ...] = (
        (Says(b"<html>502</html>", "502 Bad Gateway"),),
        (Says(b"<html><head><title>502 Bad Gateway</title>"),),
        (Says(b""),),
        (Says({"error": {"code": "rate_limited"}}),),
        (Says({"request_id": "other", "status": "COMPLETED"}),),
        (Says({"response_url": "https://queue.fal.run/a/b/requests/other", "status": "COMPLETED"}),),
        (Lost(),),
        (done, Lost()),
        (done, Says(b"<html>502</html>")),
        (done, Says(b"{}", "500 Oops")),
        (done, Says([1])),
    )
    server = open_vendor("fal", *(reply for blip in blips for reply in blip), done, Says({"seed": 1}))

    for _ in blips:
        with pytest.raises(Transient):
            server.adapter.status(FAL)

    assert server.adapter.status(FAL).output == {"seed": 1}


def test_a_result_that_is_no_longer_kept_is_gone(open_vendor: Open) -> None:
    server = open_vendor("fal", a_status("COMPLETED"), Says({"detail": "no"}, "404 Not Found"))

    with pytest.raises(Gone):
        server.adapter.status(FAL)


@pytest.mark.parametrize("place", ["{url}.evil.example/x/requests/{run}", "https://evil.example/x/requests/{run}"])
def test_our_credential_goes_to_fals_own_host_only(open_vendor: Open, place: str) -> None:
    server = open_vendor("fal", Says({}))
    elsewhere = place.format(url=server.config.base_url, run=FAL_RUN)
    server.replies.clear()
    server.will_say(a_status("COMPLETED", response_url=elsewhere), Says({"seed": 1}))

    assert server.adapter.status(FAL).output == {"seed": 1}

    assert server.asked[1].line == f"GET /fal-ai/flux/requests/{FAL_RUN}"


def test_a_result_elsewhere_on_fals_host_is_fetched_there(open_vendor: Open) -> None:
    server = open_vendor("fal", Says({}))
    server.replies.clear()
    url = f"{server.config.base_url}/v2/requests/{FAL_RUN}/result"
    server.will_say(a_status("COMPLETED", response_url=url), Says({"seed": 1}))

    server.adapter.status(FAL)

    assert server.asked[1].line == f"GET /v2/requests/{FAL_RUN}/result"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Says({"status": "ALREADY_COMPLETED"}, "400 Bad"), AlreadyFinished),
        (Says({"detail": "x"}, "404 Not Found"), Gone),
        (Says({"detail": "x"}, "500 Oops"), Transient),
        (Lost(), Transient),
    ],
)
def test_a_cancel_at_fal_is_a_wish(open_vendor: Open, reply: Reply, error: type[Exception]) -> None:
    server = open_vendor("fal", Says({"status": "CANCELLATION_REQUESTED"}, "202 Accepted"), reply)

    assert server.adapter.cancel(FAL) is None
    with pytest.raises(error):
        server.adapter.cancel(FAL)

    assert server.asked[0].line == f"PUT /fal-ai/flux/requests/{FAL_RUN}/cancel"


def test_fals_webhook_says_ok_or_error(open_vendor: Open) -> None:
    read = open_vendor("fal", Says({})).adapter.read_webhook
    base = {"request_id": FAL_RUN, "gateway_request_id": "g-1"}

    good = read({**base, "status": "OK", "payload": {"seed": 1}}, {})
    bare = read({**base, "status": "OK", "payload": None, "payload_error": "too large"}, {})
    bad = read({**base, "status": "ERROR", "payload": {"detail": "no prompt"}}, {})
    new = read({**base, "status": "MAYBE"}, {})

    assert good.report is not None
    assert (good.report.state, good.report.output, good.is_hint) == (JobState.SUCCEEDED, {"seed": 1}, False)
    assert bare.is_hint
    assert bad.report is not None
    assert bad.report.error is not None
    assert (bad.report.state, bad.report.error.message) == (JobState.FAILED, "no prompt")
    assert new.report is not None
    assert (new.report.state, new.report.unknown_status) == (None, "MAYBE")


# OpenAI --------------------------------------------------------------------------------------------------


def opened(open_vendor: Open, *replies: Reply, **entry: object) -> Vendor:
    return open_vendor("openai", *replies, **entry)


@pytest.mark.parametrize("case", [BATCH, RESPONSE, TUNING], ids=["batch", "response", "fine-tune"])
def test_openais_kind_is_read_from_the_input(open_vendor: Open, case: Case) -> None:
    server = opened(open_vendor, Says(case.accepted))
    named = {"batch": "batch", "resp": "response", "ftjob-1": "fine-tune"}[case.run.split("_")[0]]

    server.adapter.submit(a_request(case.input))
    server.adapter.submit(a_request({**case.input, "kind": named}))

    assert [asked.line for asked in server.asked] == [f"POST {case.submitted[0]}"] * 2
    assert "kind" not in server.asked[1].json


@pytest.mark.parametrize("inputs", [{"kind": "video"}, {"kind": 7}, {"metadata": "x"}])
def test_openai_is_not_asked_for_what_it_is_not(open_vendor: Open, inputs: object) -> None:
    server = opened(open_vendor, Says(RESPONSE.accepted))

    with pytest.raises(Refused):
        server.adapter.submit(a_request(inputs))

    assert server.asked == []


def test_an_account_kept_to_one_kind_takes_no_other(open_vendor: Open) -> None:
    server = opened(open_vendor, Says(RESPONSE.accepted), Says(RESPONSE.shows("queued")), kind="response")

    with pytest.raises(Refused, match="kept to kind response"):
        server.adapter.submit(a_request({**BATCH.input, "kind": "batch"}))
    server.adapter.submit(a_request({**RESPONSE.input, "kind": "response"}))
    server.adapter.status(server.adapter.capabilities.address("resp_1", {"kind": "batch"}))

    assert [asked.line for asked in server.asked] == ["POST /responses", "GET /responses/resp_1"]


def test_openai_takes_sixteen_pairs_of_metadata_and_ours_gives_way(open_vendor: Open) -> None:
    server = opened(open_vendor, Says(RESPONSE.accepted))
    metadata = {f"k{n}": "v" for n in range(16)}

    server.adapter.submit(a_request({**RESPONSE.input, "metadata": metadata}))

    assert server.asked[0].json["metadata"] == metadata


def test_a_batch_is_found_by_our_token_on_a_later_page(open_vendor: Open) -> None:
    """F30 d"""
    page = [{"id": f"batch_{n}", "status": "completed", "metadata": None} for n in range(2)]
    ours = {"id": "batch_9", "status": "validating", "metadata": {"homing_token": TOKEN}}
    server = opened(
        open_vendor, Says({"data": page, "has_more": True}), Says({"data": [ours], "has_more": False}), kind="batch"
    )

    (found,) = server.adapter.find(idempotency_key=KEY, token=TOKEN)

    assert (found.provider_job_id, found.state) == ("batch_9", JobState.PENDING)
    assert [asked.line for asked in server.asked] == ["GET /batches?limit=100", "GET /batches?limit=100&after=batch_1"]


def test_a_list_without_end_is_not_read_to_its_end(open_vendor: Open) -> None:
    page = {"data": [{"id": "batch_0", "metadata": {}}], "has_more": True}
    server = opened(open_vendor, Says(page), kind="batch")

    assert server.adapter.find(idempotency_key=KEY, token=TOKEN) == ()
    assert len(server.asked) == 3


def test_a_filter_that_is_ignored_finds_nobody_elses_job(open_vendor: Open) -> None:
    other = {"id": "ftjob-0", "status": "running", "metadata": {"homing_token": "nobody's"}}
    server = opened(open_vendor, Says({"data": [other], "has_more": False}), kind="fine-tune")

    assert server.adapter.find(idempotency_key=KEY, token=TOKEN) == ()
    assert server.asked[0].line == f"GET /fine_tuning/jobs?limit=100&metadata%5Bhoming_token%5D={TOKEN}"


@pytest.mark.parametrize("body", [{"data": None}, {"jobs": []}, {"data": ["batch_1"]}, []])
def test_a_list_of_another_shape_is_no_empty_list(open_vendor: Open, body: object) -> None:
    with pytest.raises(Transient):
        opened(open_vendor, Says(body)).adapter.find(idempotency_key=KEY, token=TOKEN)


def test_responses_are_never_searched(open_vendor: Open) -> None:
    server = opened(open_vendor, Says({}), kind="response")

    assert not server.adapter.capabilities.search
    assert server.adapter.find(idempotency_key=KEY, token=TOKEN) == ()
    assert server.asked == []


def test_a_batch_of_which_no_row_succeeded_has_failed(open_vendor: Open) -> None:
    counts = {"total": 2, "completed": 0, "failed": 2}
    shown = BATCH.shows("completed", request_counts=counts, error_file_id="file-3")

    report = opened(open_vendor, Says(shown)).adapter.status("batch_1")

    assert report.state is JobState.FAILED
    assert report.error is not None
    assert report.error.code == "no_row_succeeded"
    assert [link.url.rsplit("/", 2)[1] for link in report.links] == ["file-3"]


@pytest.mark.parametrize(
    ("word", "state"),
    [("expired", JobState.FAILED), ("cancelled", JobState.CANCELED), ("completed", JobState.SUCCEEDED)],
)
def test_a_batch_keeps_what_came_out(open_vendor: Open, word: str, state: JobState) -> None:
    counts = {"total": 4, "completed": 1, "failed": 1}
    shown = BATCH.shows(word, request_counts=counts, output_file_id="file-2")

    report = opened(open_vendor, Says(shown)).adapter.status("batch_1")

    assert (report.state, report.output) == (state, {"output_file_id": "file-2", "request_counts": counts})
    assert report.progress is not None
    assert (report.progress.fraction, report.progress.message) == (0.5, "1 of 4 done, 1 failed")
    assert (report.error is not None) is (state is JobState.FAILED)


def test_an_incomplete_response_has_failed_and_says_why(open_vendor: Open) -> None:
    shown = RESPONSE.shows("incomplete", incomplete_details={"reason": "max_output_tokens"}, output=[{"text": "a"}])

    report = opened(open_vendor, Says(shown)).adapter.status("resp_1")

    assert report.error is not None
    assert (report.error.code, report.output) == ("incomplete", {"output": [{"text": "a"}]})
    assert "max_output_tokens" in report.error.message


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("batch_1", "GET /batches/batch_1"),
        ("fine-tune/x", "GET /fine_tuning/jobs/x"),
        ("response/batch_1", "GET /responses/batch_1"),
    ],
)
def test_openais_runs_are_read_where_their_kind_is(open_vendor: Open, address: str, line: str) -> None:
    server = opened(open_vendor, Says({"id": address.rpartition("/")[2], "status": "queued"}))

    server.adapter.status(address)

    assert [asked.line for asked in server.asked] == [line]


def test_an_id_of_no_kind_is_nobodys(open_vendor: Open) -> None:
    server = opened(open_vendor, Says({}))

    for run in ("x", "..", "vid_1"):
        with pytest.raises(Gone):
            server.adapter.status(run)

    assert server.asked == []


@pytest.mark.parametrize("status", ["400 Bad", "409 Conflict"])
def test_a_cancel_at_openai_that_comes_too_late_says_so(open_vendor: Open, status: str) -> None:
    server = opened(open_vendor, Says({"error": {"message": "it has completed"}}, status))

    with pytest.raises(AlreadyFinished):
        server.adapter.cancel("batch_1")


@pytest.mark.parametrize(
    ("event_type", "run", "state"),
    [
        ("batch.completed", "batch_1", JobState.SUCCEEDED),
        ("batch.expired", "batch_1", JobState.FAILED),
        ("batch.cancelled", "batch_1", JobState.CANCELED),
        ("response.incomplete", "resp_1", JobState.FAILED),
        ("fine_tuning.job.succeeded", "ftjob-1", JobState.SUCCEEDED),
        ("batch.paused", "batch_1", None),
    ],
)
def test_openais_events_point_to_a_run(open_vendor: Open, event_type: str, run: str, state: JobState | None) -> None:
    adapter = opened(open_vendor, Says({})).adapter

    event = adapter.read_webhook({"id": "evt_1", "type": event_type, "data": {"id": run}}, {})

    assert adapter.capabilities.webhook_is_hint
    assert event.delivery_id == "evt_1"
    assert event.report is not None
    assert (event.report.provider_job_id, event.report.state, event.report.output) == (run, state, None)


# All three -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ["replicate", "fal", "openai"])
def test_an_event_of_no_interest_is_told_from_one_that_cannot_be_read(open_vendor: Open, adapter: str) -> None:
    """F20"""
    read = open_vendor(adapter, Says({})).adapter.read_webhook
    strangers: tuple[object, ...] = (
        {"id": "evt_1", "type": "billing.balance.updated", "data": {"id": "x"}},
        {"id": "evt_1", "type": "eval.run.canceled", "data": {"id": "evalrun_1"}},
        {"type": 7, "data": 7},
        {},
    )

    ignored = [read(body, {}) for body in strangers]  # type: ignore[arg-type]  # JSON by construction

    assert [event.report for event in ignored] == [None] * len(strangers)
    assert all(event.ignored_because for event in ignored)
    for body in (["x"], None, "x", 7):
        with pytest.raises(Unusable):
            read(body, {})


def test_links_are_found_at_any_depth_and_bounded() -> None:
    deep: object = "https://cdn.example/deep.png"
    for _ in range(50):
        deep = [deep]

    found = urls_in(
        json.loads(json.dumps({"a": ["https://a.example/1", "https://a.example/1"], "b": deep, "c": "ftp://x"}))
    )
    many = files_in([{"url": f"https://a.example/{n}", "file_size": -1} for n in range(2000)])

    assert found == (Link("https://a.example/1"),)
    assert len(many) == 1000
    assert many[0] == Link("https://a.example/0")
