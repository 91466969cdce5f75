"""A plugin that has a worker try again within seconds, for the tests that wait for it."""

from __future__ import annotations

from datetime import timedelta

from webhooks.outgoing import retrying

retrying.WAITS = (timedelta(seconds=0.5),) * len(retrying.WAITS)  # type: ignore[assignment]  # as many as there are
