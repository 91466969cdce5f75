"""``/healthz``, ``/readyz``, ``/fleetz`` and ``/metrics``: for load balancers, orchestrators and monitors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiflask import APIBlueprint
from flask import Response

from homing.health.fleet import FleetHealth
from homing.health.readiness import Readiness
from jobs.api.answers import answer
from jobs.api.problems import DEFAULT_RETRY, problem

_UNWELL = {503: "Not well; the answer says why"}


@dataclass(frozen=True, slots=True)
class Instruments:
    """What the routes read.

    Attributes:
        readiness: Whether this process can commit.
        examine: Looks at the fleet.
        exposition: The metrics, and their media type.
    """

    readiness: Readiness
    examine: Callable[[], FleetHealth]
    exposition: Callable[[], tuple[bytes, str]]


def health_blueprint(instruments: Instruments) -> APIBlueprint:
    """The routes, over their instruments. None asks for a key: keep them off the public side of a proxy."""
    blueprint = APIBlueprint("health", __name__, tag="Health")

    @blueprint.get("/healthz")
    @blueprint.doc(responses={200: "The process lives"})
    def healthz() -> Response:
        """Does this process live?"""
        return answer({"status": "ok"})

    @blueprint.get("/readyz")
    @blueprint.doc(responses={200: "It can", **_UNWELL})
    def readyz() -> Response:
        """Can this process commit a webhook? Redis, workers and beat have no say in it."""
        fault = instruments.readiness.fault()
        return answer({"status": "ok"}) if fault is None else _not_ready(fault)

    @blueprint.get("/fleetz")
    @blueprint.doc(responses={200: "All is well", **_UNWELL})
    def fleetz() -> Response:
        """Is the whole fleet well? Redis, workers by queue, sweeps, the oldest rows."""
        health = instruments.examine()
        return answer(health.document, 503 if health.reasons else 200)

    @blueprint.get("/metrics")
    @blueprint.doc(responses={200: "Prometheus text"})
    def metrics() -> Response:
        """Metrics for Prometheus."""
        body, media_type = instruments.exposition()
        return Response(body, content_type=media_type)

    return blueprint


def _not_ready(fault: str) -> Response:
    return problem(
        status=503,
        slug="not-ready",
        title="This process cannot commit a webhook now",
        detail=fault,
        headers={"Retry-After": str(DEFAULT_RETRY.seconds)},
    )
