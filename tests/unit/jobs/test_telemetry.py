from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog
from prometheus_client import CollectorRegistry

from jobs import telemetry
from jobs.clock import FakeClock
from jobs.core.errors import Stale


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What a production process writes to standard error."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    telemetry.configure_logging(production=True)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


def parsed(lines: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def measured(name: str, registry: CollectorRegistry = telemetry.registry, **labels: str) -> float:
    return registry.get_sample_value(name, labels) or 0.0


def test_a_production_line_is_json_with_what_it_is_about(lines: io.StringIO, clock: FakeClock) -> None:
    with telemetry.span("submit_job", clock=clock, job="job_1"):
        structlog.get_logger().info("submitted", provider="renders")

    (line,) = parsed(lines)
    assert (line["event"], line["level"], line["job"], line["provider"]) == ("submitted", "info", "job_1", "renders")


def test_a_span_leaves_nothing_behind_on_later_lines(lines: io.StringIO, clock: FakeClock) -> None:
    with telemetry.span("submit_job", clock=clock, job="job_1"):
        pass
    structlog.get_logger().info("later")

    assert "job" not in parsed(lines)[0]


def test_no_secret_and_no_signed_query_reaches_a_line(lines: io.StringIO) -> None:
    structlog.get_logger().info(
        "asked",
        webhook_secret="whsec_abc",
        Authorization="Bearer hk_abc",
        url="https://files.example/a.mp4?X-Amz-Signature=abc",
    )

    assert "abc" not in lines.getvalue()
    assert parsed(lines)[0]["url"] == "https://files.example/a.mp4?[redacted]"


def test_a_traceback_shows_no_values(lines: io.StringIO) -> None:
    secret = "-".join(["hunter", "2"])

    def fails(password: str) -> None:
        assert password
        raise RuntimeError("broken")

    try:
        fails(secret)
    except RuntimeError as error:
        structlog.get_logger().error("unforeseen", exc_info=error)

    (line,) = parsed(lines)
    assert "RuntimeError: broken" in str(line["exception"])
    assert secret not in lines.getvalue()


def test_lines_of_libraries_have_the_same_form(lines: io.StringIO) -> None:
    logging.getLogger("celery").warning("consumer lost")

    (line,) = parsed(lines)
    assert (line["event"], line["level"]) == ("consumer lost", "warning")


def test_a_span_measures_by_outcome(clock: FakeClock) -> None:
    def sums() -> tuple[float, float]:
        labels = {"span": "unit_test"}
        return (
            measured("homing_span_seconds_sum", **labels, outcome="ok"),
            measured("homing_span_seconds_sum", **labels, outcome="Stale"),
        )

    @telemetry.span("unit_test", clock=clock)
    def work(seconds: float, error: Exception | None = None) -> None:
        clock.advance(seconds)
        if error:
            raise error

    ok, stale = sums()
    work(2)
    with pytest.raises(Stale):
        work(3, Stale())

    assert sums() == (ok + 2, stale + 3)
