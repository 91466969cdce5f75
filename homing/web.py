"""The web process: ``granian --interface wsgi --factory homing.web:create_app``, or any WSGI server.

The factory runs in each worker process, after its fork: connections, threads and lock files are its own.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import structlog
from apiflask import APIFlask
from flask import Response, g, request

from homing import metrics, openapi, reference
from homing.collecting import collect_seldom
from homing.composition import build_runtime, exiting_on_bad_configuration
from homing.dead_peers import give_up_once_listening
from homing.gate import gated
from homing.health.fleet import examine
from homing.health.readiness import Readiness
from homing.health.routes import Instruments, health_blueprint
from homing.redis_probe import RedisProbe
from homing.stopped.siblings import watch_siblings
from homing.up.processes import STREAM_THREADS, WEB_THREADS
from jobs import ids, telemetry
from jobs.api import artifacts, dead_letters, events, jobs, providers, streams
from jobs.api.context import EXTENSION
from jobs.api.openapi import SECURITY_SCHEMES
from jobs.api.problems import register_problems
from jobs.api.requests import StrictRequest
from jobs.services.runtime import Runtime
from jobs.services.stream_bell import RedisBell
from jobs.services.streams.followers import Streams
from jobs.services.waiting import WaitingRoom
from reconciler.watchdog import Watchdog
from webhooks import incoming, outgoing

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

#: A waiter of a long poll holds a thread; the others are for requests that are answered at once.
_WAITERS = WEB_THREADS // 4
#: Of a worker's streams; one tenant alone leaves some to the others.
_STREAMS_PER_TENANT = STREAM_THREADS * 4 // 5

#: No client waits for longer than seconds; a request that would is better answered 503 than held.
_ANSWER_TIMEOUT_S = 3.0

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_DESCRIPTION = "Brings every long-running third-party job home: once, in the right state."


def create_app(runtime: Runtime | None = None) -> APIFlask:
    """Builds the application.

    Args:
        runtime: The process's parts. Without them they are built from the environment, and the threads that a
            serving process needs are started; a bad configuration prints all its faults and ends the process with
            status 2.
    """
    parts = runtime or _build_serving()
    app = APIFlask(__name__, title="Homing", version=version("homing"), docs_path=None, json_errors=False)
    app.request_class = StrictRequest
    app.description = _DESCRIPTION
    app.config.update(SECURITY_SCHEMES=SECURITY_SCHEMES, AUTO_SERVERS=False, **_SILENT)
    app.json.sort_keys = False  # type: ignore[attr-defined] # of Flask's own provider
    app.extensions[EXTENSION] = parts
    app.extensions[jobs.WAITING_ROOM] = WaitingRoom.over(parts.database, seats=_WAITERS)
    app.extensions[streams.STREAMS] = _build_streams(parts)
    app.spec_processor(openapi.describe)  # type: ignore[arg-type] # a dict, as the format is JSON
    register_problems(app)
    _name_requests(app)
    _add_routes(app, parts, is_serving=runtime is None)
    if runtime is None:
        collect_seldom()
    return app


def _build_streams(parts: Runtime) -> Streams:
    bell = RedisBell(parts.redis, monotonic=parts.clock.monotonic)
    return Streams(parts.database, bell, seats=STREAM_THREADS, seats_per_tenant=_STREAMS_PER_TENANT)


#: What APIFlask would add to the document about errors; ours are problems (``jobs.api.openapi``).
_SILENT = {
    "AUTO_VALIDATION_ERROR_RESPONSE": False,
    "AUTO_AUTH_ERROR_RESPONSE": False,
    "AUTO_404_RESPONSE": False,
}


def _build_serving() -> Runtime:
    with exiting_on_bad_configuration():
        runtime = build_runtime(answer_timeout_s=_ANSWER_TIMEOUT_S)
    telemetry.configure_logging(production=runtime.settings.is_production)
    Watchdog(runtime.database, broker=runtime.broker).start()
    give_up_once_listening()
    watch_siblings()
    return runtime


def _add_routes(app: APIFlask, parts: Runtime, *, is_serving: bool) -> None:
    for module in (jobs, artifacts, streams, dead_letters, events, providers):
        app.register_blueprint(module.blueprint)
    probe = RedisProbe(parts.settings.redis_url)
    instruments = Instruments(
        readiness=Readiness(parts.database),
        examine=lambda: examine(parts.database, redis_fault=probe.fault),
        exposition=lambda: metrics.exposition(parts.database, probe),
    )
    app.register_blueprint(health_blueprint(instruments))
    app.register_blueprint(reference.blueprint)
    incoming.install(app, parts, prefetch=is_serving)
    outgoing.install(app)
    app.wsgi_app = gated(app.wsgi_app, seats=WEB_THREADS)  # type: ignore[assignment,method-assign] # as Flask says


def _name_requests(app: APIFlask) -> None:
    """Each request has a name, which its answer and every line logged for it carry."""

    @app.before_request
    def begin() -> None:
        sent = request.headers.get("X-Request-Id", "")
        clock = app.extensions[EXTENSION].clock
        g.request_id = sent if _REQUEST_ID.fullmatch(sent) else ids.new_id("req", at=clock.now())
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=g.request_id)

    @app.after_request
    def end(response: Response) -> Response:
        response.headers["X-Request-Id"] = g.get("request_id", "")
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        if request.path.startswith("/v1/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


def __getattr__(name: str) -> Any:
    """``homing.web:app``, for servers that know no factories; built when it is asked for."""
    if name == "app":
        application: WSGIApplication = create_app()
        globals()["app"] = application
        return application
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
