"""The simulator in the words of real providers: the same runs, faults and ledger, other routes, bodies and signatures.

Each dialect stands under a path of its own, so that one simulator speaks them all; a client is aimed at
`<simulator>/<dialect>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from flask import Flask

from homing.simulator.dialects import fal, higgsfield, luma, openai, replicate
from homing.simulator.dialects.dialect import Dialect
from homing.simulator.provider import Provider

Build: TypeAlias = Callable[[Provider], Dialect]

#: Every dialect by its name, which is also its path.
DIALECTS: Mapping[str, Build] = {
    replicate.NAME: replicate.create,
    fal.NAME: fal.create,
    openai.NAME: openai.create,
    luma.NAME: luma.create,
    higgsfield.NAME: higgsfield.create,
}


def mount_dialects(app: Flask, provider: Provider) -> None:
    """Let the app speak every dialect."""
    for name, build in DIALECTS.items():
        dialect = build(provider)
        app.register_blueprint(dialect.pages, url_prefix=f"/{name}")
        provider.callbacks.voices[name] = dialect.voice
