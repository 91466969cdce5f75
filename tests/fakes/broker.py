"""A broker that keeps what it was given."""

from __future__ import annotations

import threading


class RecordingBroker:
    """Every message arrives here and goes no further."""

    def __init__(self, *, reachable: bool = True) -> None:
        self.messages: list[tuple[str, ...]] = []
        self.reachable = reachable
        self._lock = threading.Lock()

    def publish(self, name: str, *args: str) -> bool:
        with self._lock:
            if self.reachable:
                self.messages.append((name, *args))
        return self.reachable

    def take(self, name: str) -> list[tuple[str, ...]]:
        """The arguments of all messages for a task, which are then gone."""
        with self._lock:
            taken = [message[1:] for message in self.messages if message[0] == name]
            self.messages = [message for message in self.messages if message[0] != name]
        return taken
