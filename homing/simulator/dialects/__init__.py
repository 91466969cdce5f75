"""The simulator in the words of real providers: the same runs, faults and ledger, other routes, bodies and signatures.

Each dialect stands under a path of its own, so that one simulator speaks them all; a client is aimed at
`<simulator>/<dialect>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from flask import Flask

from homing.simulator.dialects.dialect import Dialect
from homing.simulator.dialects.fal import create as create_fal
from homing.simulator.dialects.higgsfield import create as create_higgsfield
from homing.simulator.dialects.luma import create as create_luma
from homing.simulator.dialects.openai import create as create_openai
from homing.simulator.dialects.replicate import create as create_replicate
from homing.simulator.provider import Provider

Build: TypeAlias = Callable[[Provider], Dialect]

#: Every dialect by its name, which is also its path.
DIALECTS: Mapping[str, Build] = {
    "replicate": create_replicate,
    "fal": create_fal,
    "openai": create_openai,
    "luma": create_luma,
    "higgsfield": create_higgsfield,
}


def mount_dialects(app: Flask, provider: Provider) -> None:
    """Let the app speak every dialect."""
    for name, build in DIALECTS.items():
        dialect = build(provider)
        app.register_blueprint(dialect.pages, url_prefix=f"/{name}")
        provider.callbacks.voices[name] = dialect.voice
