"""The simulator as a Flask app."""

from __future__ import annotations

import atexit

from flask import Flask, Response, jsonify

from homing.simulator.config import SimulatorConfig
from homing.simulator.dialects import mount_dialects
from homing.simulator.file_pages import create_file_pages
from homing.simulator.instants import write_instant
from homing.simulator.job_pages import create_job_pages
from homing.simulator.provider import Provider
from homing.simulator.run import Run
from homing.simulator.sink import Sink, create_sink_pages

#: Where the app keeps its provider, in `app.extensions`.
EXTENSION = "simulator"


def create_simulator(config: SimulatorConfig, *, provider: Provider | None = None) -> Flask:
    """Build the simulator's app.

    Args:
        config: what it is told.
        provider: one that somebody else starts and closes; default: a new one, started here and closed at the
            end of the process.
    """
    if provider is None:
        provider = Provider(config)
        provider.start()
        atexit.register(provider.close)
    app = Flask(__name__)
    app.extensions[EXTENSION] = provider
    app.register_blueprint(create_job_pages(provider))
    app.register_blueprint(create_file_pages(provider))
    app.register_blueprint(create_sink_pages(Sink()))
    mount_dialects(app, provider)
    _add_books(app, provider)
    return app


def _add_books(app: Flask, provider: Provider) -> None:
    @app.get("/ledger")
    def show_ledger() -> Response:
        runs = [_show_run(run) for run in provider.runs.list_runs()]
        return jsonify({**provider.ledger.snapshot(), "runs": runs})

    @app.get("/healthz")
    def show_health() -> Response:
        return jsonify(status="ok")


def _show_run(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "model": run.order.model,
        "reference": run.order.reference,
        "key": run.order.key,
        "status": run.status.value,
        "faults": run.faults.words,
        "submitted_at": write_instant(run.submitted_at),
        "finished_at": None if run.finished_at is None else write_instant(run.finished_at),
    }
