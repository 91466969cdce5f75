"""Runs as a description reads them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.observations import JobError, Json, Progress
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers.declarative import DeclarativeProvider
from jobs.providers.port import Report
from tests.fakes.descriptions import entry_of

BASE = """
[providers.acme]
adapter = "declarative"
base_url = "https://api.acme.example"
[providers.acme.submit]
call = "POST /jobs"
id = "id"
[providers.acme.status]
call = "GET /jobs/${job.provider_job_id}"
state = "status"
"""
STATES = (
    'states = { running = ["busy", "1"], succeeded = ["done", "true"], failed = ["error"], canceled = ["ended"] }\n'
)
WEBHOOK = '[providers.acme.webhook]\nscheme = "hmac-body"\n'


def adapter(status: str = "", sections: str = "") -> DeclarativeProvider:
    return DeclarativeProvider(entry_of(f"{BASE}{STATES}{status}\n{sections}"), HttpClient(), FakeClock())


def read(document: dict[str, object], status: str = "", sections: str = "") -> Report:
    """An event whose body is the run reads exactly as a status answer."""
    hook = f'{WEBHOOK}run = "@"\njob_id = "id"\n{sections}'
    report = adapter(status, hook).read_webhook({"id": "p-1", **document}, {}).report  # type: ignore[dict-item]
    assert report is not None
    return report


@pytest.mark.parametrize(
    ("word", "state"),
    [
        (" DONE ", JobState.SUCCEEDED),
        (True, JobState.SUCCEEDED),
        (1, JobState.RUNNING),
        ("paused", None),
        (False, None),
        ({"a": 1}, None),
    ],
)
def test_words_are_compared_without_case_and_blanks(word: object, state: JobState | None) -> None:
    """F24"""
    report = read({"status": word})

    assert report.state is state
    assert bool(report.unknown_status) is (state is None)


@pytest.mark.parametrize(
    ("document", "state"),
    [
        ({"status": "done", "error": None}, JobState.SUCCEEDED),
        ({"status": "done", "error": {"code": "x"}}, JobState.FAILED),
        ({"status": "busy", "error": "x"}, JobState.FAILED),
        ({"status": "ended", "error": "x"}, JobState.CANCELED),
        ({"status": "paused", "error": "x"}, None),
    ],
)
def test_failed_if_outweighs_a_word_we_know_and_never_guesses_at_one_we_do_not(
    document: dict[str, object], state: JobState | None
) -> None:
    assert read(document, 'failed_if = "error != null"').state is state


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        ("bad", JobError("provider_error", "bad")),
        ({"code": "nsfw", "message": "no"}, JobError("nsfw", "no")),
        ([{"code": "a", "message": "b"}, "c"], JobError("a", "b; c")),
        ([], JobError("provider_error", "the provider said 'error'")),
        (None, JobError("provider_error", "the provider said 'error'")),
    ],
)
def test_a_reason_is_text_object_or_list(error: object, seen: JobError) -> None:
    assert read({"status": "error", "error": error}, 'error = "error"').error == seen


def test_a_code_of_its_own_wins() -> None:
    status = 'error = "why"\nerror_code = "code"'

    assert read({"status": "error", "why": "no", "code": 17}, status).error == JobError("17", "no")
    assert read({"status": "done", "why": "no", "code": 17}, status).error is None


@pytest.mark.parametrize(
    ("value", "progress"),
    [(40, Progress(0.4)), (100.0, Progress(1.0)), (101, None), (-1, None), ("40", None), (None, None), (True, None)],
)
def test_progress_counts_up_to_its_maximum(value: object, progress: Progress | None) -> None:
    assert read({"status": "busy", "p": value}, 'progress = "p"\nprogress_max = 100').progress == progress


def test_progress_may_have_words() -> None:
    status = 'progress = "p"\nprogress_message = "stage"'

    assert read({"status": "busy", "p": 0.5, "stage": "upscaling"}, status).progress == Progress(0.5, "upscaling")
    assert read({"status": "busy", "stage": "upscaling"}, status).progress == Progress(None, "upscaling")


def test_links_are_texts_or_objects_and_end_when_the_provider_says_so_first() -> None:
    files = ["https://a.example/1", None, 7, {"url": "https://a.example/2", "expires_at": "2030-01-01T00:00:00Z"}, {}]
    artifacts = '[providers.acme.artifacts]\nurls = "files"\nexpires = "1h"\n'

    links = read({"status": "done", "files": files}, sections=artifacts).links

    default = (FakeClock().now() + timedelta(hours=1)).isoformat()
    assert [(link.url, link.expires_at) for link in links] == [
        ("https://a.example/1", default),
        ("https://a.example/2", "2030-01-01T00:00:00Z"),
    ]


def test_a_run_may_stand_inside_an_event() -> None:
    sections = f'{WEBHOOK}run = "data.job"\ndelivery_id = "event"\ntoken = "data.ref"\nonly_if = "type == \'job\'"\n'
    reader = adapter('output = "result"', sections)
    run: Json = {"id": 7, "status": "done", "result": {"a": 1}}

    told = reader.read_webhook({"type": "job", "event": "e-1", "data": {"job": run, "ref": "tok"}}, {})
    other = reader.read_webhook({"type": "billing", "event": "e-2", "data": {"job": run}}, {})

    assert told.report is not None
    assert (told.delivery_id, told.token, told.report.provider_job_id, told.report.output) == (
        "e-1",
        "tok",
        "7",
        {"a": 1},
    )
    assert (other.report, other.delivery_id) == (None, "e-2")
    assert not reader.capabilities.webhook_is_hint


@pytest.mark.parametrize(
    ("webhook", "is_hint"),
    [
        ('job_id = "id"\nstate = "s"', True),  # it brings no result, and a status read would
        ('job_id = "id"\nstate = "s"\noutput = "out"', False),
        ('job_id = "id"\nstate = "s"\ntrust = "state"', False),
        ('run = "@"', False),
        ('run = "@"\ntrust = "hint"', True),
    ],
)
def test_an_event_is_believed_where_it_brings_what_a_read_would(webhook: str, is_hint: bool) -> None:
    assert adapter('output = "result"', WEBHOOK + webhook).capabilities.webhook_is_hint is is_hint


@pytest.mark.parametrize(
    ("event", "trust", "is_hint"),
    [
        ({"status": "done", "result": {"a": 1}}, "", False),
        ({"status": "done"}, "", True),
        ({"status": "done", "result": None}, "", True),
        ({"status": "done"}, 'trust = "state"', False),
        ({"status": "error"}, "", False),
    ],
)
def test_a_success_without_its_result_is_a_reason_to_look(event: dict[str, Json], trust: str, is_hint: bool) -> None:
    reader = adapter('output = "result"', f'{WEBHOOK}run = "@"\n{trust}')

    assert reader.read_webhook({"id": "p-1", **event}, {}).is_hint is is_hint


def test_a_run_that_names_what_we_called_it_proves_that_it_is_ours() -> None:
    assert read({"status": "done", "labels": {"ref": "tok"}}, 'reference = "labels.ref"').reference == "tok"


def test_an_unsigned_event_is_only_a_reason_to_look() -> None:
    text = f'{BASE}{STATES}[providers.acme.webhook]\nscheme = "none"\nrun = "@"\n'

    assert DeclarativeProvider(entry_of(text), HttpClient(), FakeClock()).capabilities.webhook_is_hint


def test_what_is_not_described_is_not_assumed() -> None:
    capabilities = adapter().capabilities

    assert (capabilities.keys, capabilities.search, capabilities.cancel) == ("none", False, False)
    assert not capabilities.callback_per_request
    assert not capabilities.lists_artifacts
