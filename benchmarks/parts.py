"""The product's own parts in this process, over a database of the benchmark."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from benchmarks.stage import Stage
from homing.collecting import collect_seldom
from homing.composition import build_runtime
from jobs.config.loading import load
from jobs.services.runtime import Runtime


@contextmanager
def product(stage: Stage, database_url: str) -> Iterator[Runtime]:
    """A runtime as a worker has it, with a real broker."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    runtime = build_runtime(load(stage.environ(database_url)))
    collect_seldom()
    try:
        yield runtime
    finally:
        runtime.database.close()
