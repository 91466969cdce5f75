"""Python handlers of events: ``@on("job.succeeded")``.

Handlers register at import; ``[plugins] modules`` in ``homing.toml`` says what to import. A plain handler runs at
least once, with a stable ``event.id``; a transactional one receives a database connection whose work commits
together with its mark, and so takes effect exactly once. Handlers are independent: each has its own tries, and one
that fails delays no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from jobs.core.events import EventType, is_wanted
from jobs.core.suggestions import did_you_mean

HandlerFunction = TypeVar("HandlerFunction", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Handler:
    """A subscription of a Python function.

    Attributes:
        name: Stable over restarts: the function's module and qualified name, or the one given.
        patterns: Event types it wants, ``job.*`` allowed.
        provider: Only events of this provider entry; None = all.
        transactional: ``function(event, connection)`` inside the transaction of its mark.
    """

    name: str
    patterns: tuple[str, ...]
    function: Callable[..., Any]
    provider: str | None = None
    transactional: bool = False

    def wants(self, event_type: str, provider: str | None) -> bool:
        """Whether this handler subscribes to such an event."""
        return is_wanted(event_type, self.patterns) and self.provider in (None, provider)


class HandlerRegistry:
    """The handlers of a process, by name."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, handler: Handler) -> None:
        """Registers a handler.

        Raises:
            ValueError: Another function has that name, or a pattern fits no event type.
        """
        known = self._handlers.get(handler.name)
        if known is not None and known.function is not handler.function:
            raise ValueError(f"two handlers are named {handler.name!r}; give one of them name=…")
        for pattern in handler.patterns:
            _check_pattern(pattern)
        self._handlers[handler.name] = handler

    def find(self, name: str) -> Handler | None:
        """The handler of that name, or None where its module is no longer loaded."""
        return self._handlers.get(name)

    def wanting(self, event_type: str, provider: str | None) -> Iterator[Handler]:
        """The handlers that subscribe to such an event."""
        return (handler for handler in self._handlers.values() if handler.wants(event_type, provider))


def _check_pattern(pattern: str) -> None:
    if any(is_wanted(event_type, (pattern,)) for event_type in EventType):
        return
    hint = did_you_mean(pattern, [str(event_type) for event_type in EventType])
    raise ValueError(f"no event type fits {pattern!r}" + (f"; did you mean {hint!r}?" if hint else ""))


registry = HandlerRegistry()


def on(
    *types: str, provider: str | None = None, transactional: bool = False, name: str | None = None
) -> Callable[[HandlerFunction], HandlerFunction]:
    """Subscribes a function to events.

    Args:
        types: Event types, such as ``"job.succeeded"`` or ``"job.*"``.
        provider: Only events of jobs at this provider entry.
        transactional: Call ``function(event, connection)`` in the transaction that marks it done.
        name: A stable name, where the function's own may change.

    Raises:
        ValueError: No type was given, none fits, or the name is taken.
    """
    if not types:
        raise ValueError("say which events the handler wants, such as @on('job.succeeded')")

    def register(function: HandlerFunction) -> HandlerFunction:
        own_name = name or f"{function.__module__}.{function.__qualname__}"
        registry.add(Handler(own_name, types, function, provider, transactional))
        return function

    return register
