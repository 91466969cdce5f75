"""A runtime over a real database and nothing else that is real."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.broker import Broker
from jobs.config.settings import Settings
from jobs.handlers import Handler, HandlerRegistry
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.storage.database import Database
from tests.factories import an_observer
from tests.fakes.broker import RecordingBroker


def a_runtime(
    database: Database,
    *,
    broker: Broker | None = None,
    handlers: tuple[Handler, ...] = (),
    providers: Mapping[str, ProviderEntry] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Runtime:
    """A runtime with the database's clock; the broker keeps messages unless another is given."""
    registry = HandlerRegistry()
    for handler in handlers:
        registry.add(handler)
    return Runtime(
        settings=Settings.read(environ or {}),
        database=database,
        clock=database.clock,
        rng=random.Random(7),
        broker=broker or RecordingBroker(),
        providers=providers or {},
        observer=an_observer(),
        handlers=registry,
    )


@dataclass
class Sink:
    """A handler's function that counts its calls."""

    calls: list[Any] = field(default_factory=list)
    fails: bool = False

    def __call__(self, event: Any, *_connection: Any) -> None:
        self.calls.append(event)
        if self.fails:
            raise RuntimeError("the sink refuses")

    def handler(self, name: str = "sink", *types: str, transactional: bool = False) -> Handler:
        """This sink, subscribed."""
        return Handler(name, types or ("job.*",), self, None, transactional)
