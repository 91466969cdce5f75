"""Webhooks coming in: verified, stored before they are acknowledged, applied in batches.

``install(app, runtime)`` hangs it on a Flask application; ``drain``, ``sweep_inbox`` and ``wake_parked`` apply what
was stored.
"""
