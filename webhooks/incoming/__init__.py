"""Webhooks coming in: verified, stored before they are acknowledged, applied in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhooks.incoming.applying.drain import sweep_inbox

if TYPE_CHECKING:
    from flask import Flask

    from jobs.services.runtime import Runtime

__all__ = ["install", "sweep_inbox"]


def install(app: Flask, runtime: Runtime, *, prefetch: bool = False) -> None:
    """Adds the receiver and the inbox to a web process; see :mod:`webhooks.incoming.installation`."""
    from webhooks.incoming import installation  # noqa: PLC0415 - workers use this package and have no use for Flask

    installation.install(app, runtime, prefetch=prefetch)
