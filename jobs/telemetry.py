"""Logs and measurements: one line per decision, one span per service, a few histograms.

What can be counted in the database is counted there when somebody asks (``homing.metrics``), so that it is true over
processes and restarts. Only what no row remembers is measured here, in the process: with
``PROMETHEUS_MULTIPROC_DIR`` set, all processes of a machine add up in that folder; without it each speaks for itself.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from jobs.clock import Clock

registry = CollectorRegistry()

_FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_SLOW_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


def _histogram(name: str, words: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, words, labels, buckets=buckets, registry=registry)


WEBHOOKS_RECEIVED = Counter(
    "homing_webhooks_received", "Webhooks by how they were answered", ("provider", "outcome"), registry=registry
)
POLLS = Counter("homing_polls", "Status reads by what came of them", ("provider", "result"), registry=registry)
DELIVERIES = Counter("homing_deliveries", "Tries at endpoints by what came of them", ("outcome",), registry=registry)
OUTPUT_READS = Counter(
    "homing_output_reads", "Readings of a run's output by what came of them", ("provider", "result"), registry=registry
)
SSE_STREAMS = Gauge("homing_sse_streams", "Open streams", registry=registry, multiprocess_mode="livesum")
WEBHOOK_ACK_S = _histogram("homing_webhook_ack_seconds", "From a webhook's arrival to its answer", (), _FAST_S)
EVENT_APPLY_LAG_S = _histogram("homing_event_apply_lag_seconds", "From a webhook's commit to its effect", (), _SLOW_S)
HEAL_S = _histogram(
    "homing_heal_seconds", "How long an end went unnoticed until a poll found it", ("provider",), _SLOW_S
)
DELIVERY_LAG_S = _histogram("homing_delivery_lag_seconds", "From an event to an endpoint's 2xx", (), _SLOW_S)
SWEEP_S = _histogram("homing_sweep_seconds", "How long a sweep took", ("sweep",), _FAST_S)
SPAN_S = _histogram("homing_span_seconds", "How long a service took", ("span", "outcome"), _FAST_S)

_SECRET_WORDS = ("authorization", "secret", "password", "api_key", "signature", "cookie")
_REDACTED = "[redacted]"


@contextmanager
def span(name: str, *, clock: Clock, **about: Any) -> Iterator[None]:
    """Measures a service, and names its job, provider or event in every line logged inside it.

    Args:
        name: The service, such as ``submit_job``.
        clock: For the measurement.
        about: What the lines are about: ``job``, ``provider``, ``event``.
    """
    began = clock.monotonic()
    outcome = "ok"
    try:
        with structlog.contextvars.bound_contextvars(**about):
            yield
    except Exception as error:
        outcome = type(error).__name__
        raise
    finally:
        SPAN_S.labels(name, outcome).observe(clock.monotonic() - began)


def configure_logging(*, production: bool, level: int = logging.INFO) -> None:
    """Sets up logging for a process: JSON lines in production, readable ones elsewhere; both to standard error.

    Tracebacks are plain: a fancy one prints the values of variables, and with them secrets.
    """
    # Typed as structlog types them, for mypy: a renderer is the last processor.
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if production
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
    last: list[structlog.typing.Processor] = [structlog.processors.format_exc_info] if production else []
    structlog.configure(
        processors=[*shared, *last, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _format_foreign(renderer, [*shared, *last], level)


def _format_foreign(
    renderer: structlog.typing.Processor, processors: list[structlog.typing.Processor], level: int
) -> None:
    """Gives the lines of libraries, which use the standard library's logging, the same form."""
    meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    formatter = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=processors, processors=[meta, renderer])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))


def redact(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Takes secrets out of a line: values under telling names, and query strings, which may carry signatures."""
    for name, value in line.items():
        if any(word in name.lower() for word in _SECRET_WORDS):
            line[name] = _REDACTED
        elif isinstance(value, str) and value.startswith(("http://", "https://")) and "?" in value:
            line[name] = f"{value.split('?', 1)[0]}?{_REDACTED}"
    return line
