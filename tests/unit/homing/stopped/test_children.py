"""Children of a worker that are looked at in its main process's loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from homing.stopped.children import ChildWatch


def test_a_worker_that_is_ready_again_is_looked_at_once() -> None:
    entries: list[Any] = []

    def call_repeatedly(_every_s: float, _look: Any) -> Any:
        entries.append(SimpleNamespace(live=True, cancel=lambda: setattr(entries[0], "live", False)))
        return entries[-1]

    consumer = SimpleNamespace(pool=SimpleNamespace(info={}), timer=SimpleNamespace(call_repeatedly=call_repeatedly))
    watch = ChildWatch()

    watch.begin(consumer)
    watch.begin(consumer)

    assert [entry.live for entry in entries] == [False, True]
