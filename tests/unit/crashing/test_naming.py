"""Points are named by the service behind a door, whatever layers lie between."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest

from tests.crashing.naming import caller, route_of


def _function(module: str, source: str, **names: object) -> Callable[[], object]:
    """A function that lives in a module of that name."""
    space = types.ModuleType(module).__dict__ | names
    exec(source, space)
    function: Callable[[], object] = space["work"]
    return function


def test_the_nearest_function_that_is_no_door_gives_the_name() -> None:
    door = _function("jobs.storage.database", "def work(): return caller(1)", caller=caller)
    service = _function("jobs.services.submitting.submission", "def work(): return door()", door=door)
    edge = _function("jobs.tasks.submission", "def work(): return service()", service=service)

    assert edge() == "jobs.services.submitting.submission:work"


def test_what_celery_does_for_itself_has_no_name() -> None:
    strange = _function("kombu.transport.redis", "def work(): return caller(1)", caller=caller)
    ours = _function("jobs.services.work", "def work(): return strange()", strange=strange)

    assert ours() is None


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/jobs", "POST /v1/jobs"),
        ("/v1/jobs/job_01m8mk/cancel", "POST /v1/jobs/*/cancel"),
        ("/webhooks/simulator/s3cret", "POST /webhooks/*/*"),
        ("/v1/dead-letters/dl_1/redrive", "POST /v1/dead-letters/*/redrive"),
    ],
)
def test_routes_leave_ids_out(path: str, route: str) -> None:
    assert route_of("POST", path) == route
