"""One job, waited for in every way there is, at the real application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from homing.client import Homing, Job, NoStream, Problem
from tests.events import faults_of
from tests.fakes.stage import Stage
from tests.integration.client.conftest import Wsgi, serving


def open_road(app: Wsgi) -> Wsgi:
    return app


def no_streams(app: Wsgi) -> Wsgi:
    """Something in between that knows no streams."""

    def proxy(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"].endswith("/events") and environ["PATH_INFO"] != "/v1/events":
            start("501 Not Implemented", [("Content-Length", "0")])
            return [b""]
        return app(environ, start)

    return proxy


def nothing_waits(app: Wsgi) -> Wsgi:
    """Something in between that also cuts off every long poll."""
    inner = no_streams(app)

    def proxy(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if "wait=" in environ["QUERY_STRING"]:
            start("504 Gateway Timeout", [("Content-Length", "0")])
            return [b""]
        return inner(environ, start)

    return proxy


@pytest.mark.parametrize("road", [open_road, no_streams, nothing_waits])
def test_whichever_way_is_open_the_job_comes_home_the_same(stage: Stage, road: Callable[[Wsgi], Wsgi]) -> None:
    with serving(stage, road) as fleet, Homing(fleet.url, fleet.key) as client:
        sent = client.submit("renders", {"prompt": "fog"}, key="k1")
        seen: list[Job] = []

        def on_change(job: Job) -> None:
            seen.append(job)
            fleet.move(job.id)

        job = client.wait(sent.id, timeout=30, on_change=on_change)

        assert job.is_success
        assert job.output == {"frames": 24}
        assert job == client.get(job.id)
        assert [each.version for each in seen] == sorted({each.version for each in seen})
        assert any(each.progress is not None and each.progress.fraction == 0.5 for each in seen)


def test_the_same_key_is_the_same_job_and_its_stream_can_be_told_again(stage: Stage) -> None:
    with serving(stage, open_road) as fleet, Homing(fleet.url, fleet.key) as client, fleet.moving():
        first, second = (client.submit("renders", {"prompt": "fog"}, key="k1") for _ in range(2))
        client.wait(first.id, timeout=30)

        told = list(client.stream(first.id))

        assert first.id == second.id
        assert list(faults_of(told[-1].data)) == []
        assert [event.type for event in told] == ["snapshot", "job.succeeded"]
        assert told[0].job is not None
        assert told[0].job.is_success
        assert list(client.stream(first.id, last_event_id=told[-1].id)) == []


def test_jobs_are_listed_and_refusals_are_told(stage: Stage) -> None:
    with serving(stage, no_streams) as fleet, Homing(fleet.url, fleet.key) as client:
        sent = client.submit("renders", {"prompt": "fog"}, metadata={"team": "a"})

        assert [job.id for job in client.list(metadata={"team": "a"})] == [sent.id]
        assert list(client.list(state="failed", review=False)) == []
        with pytest.raises(Problem) as refused:
            client.submit("renders", {}, deadline="-1s")
        assert [fault.field for fault in refused.value.fields] == ["deadline"]
        with pytest.raises(Problem) as missing:
            client.wait("job_none")
        assert missing.value.http_status == 404
        with pytest.raises(NoStream):
            list(client.stream(sent.id))
        assert client.cancel(sent.id).state == "canceled"
