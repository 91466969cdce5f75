"""The worker's application with a visibility time-out of seconds: messages come again while they are worked on."""

from __future__ import annotations

from homing.worker import app

app.conf.broker_transport_options = {**app.conf.broker_transport_options, "visibility_timeout": 5}

__all__ = ["app"]
