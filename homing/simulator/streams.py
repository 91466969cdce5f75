"""A run's output while it is made: piece by piece, over the time that the run takes.

The pieces joined are the text of the run's output. Whoever comes late is told at once what was said before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homing.simulator.faults import Fault
from homing.simulator.models import BadInputError
from homing.simulator.models.llm_stream import pieces_of
from homing.simulator.provider import Provider
from homing.simulator.run import Run, Status

#: The one model whose runs can be listened to.
STREAMING_MODEL = "llm-stream"

#: Longest time without a word to a listener, in seconds: no proxy on the way closes a connection so young.
KEEP_ALIVE_S = 5.0
#: How long a silent stream says nothing, in seconds.
SILENCE_S = 6.0
# How long a look at a run that waits or is about to end takes effect.
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Piece:
    """What was added to the output.

    Attributes:
        number: from 1.
    """

    number: int
    text: str


class BrokenStreamError(Exception):
    """The connection is to break here."""


def pieces(run: Run) -> tuple[str, ...]:
    """All that a run will say, or would have said; nothing where its input is bad."""
    try:
        return pieces_of(run.order.input)
    except BadInputError:
        return ()


def follow(provider: Provider, run: Run, *, after: int, fault: Fault | None) -> Iterator[Piece | None]:
    """Tell the pieces after a number as they are made, until the run has ended.

    Args:
        provider: where it runs.
        run: of the streaming model.
        after: the number of the last piece that is known.
        fault: the trouble this listener has.

    Yields:
        Pieces; None where there was nothing to tell for a while.

    Raises:
        BrokenStreamError: by a fault, or because the provider closes.
    """
    all_pieces = pieces(run)
    breaks_at = _break_of(run, after=after, count=len(all_pieces)) if fault else None
    told, quiet_since_s = after, provider.clock.monotonic()
    while True:
        has_ended = run.status.is_terminal  # read before the pieces: what is due at the end is told before the end
        for number in range(told + 1, 1 + _due(provider, run, count=len(all_pieces))):
            if number == breaks_at:
                _break(provider, fault)
            yield Piece(number, all_pieces[number - 1])
            told, quiet_since_s = number, provider.clock.monotonic()
        if has_ended:
            return
        _wait(provider, _next_due_s(provider, run, told=told, count=len(all_pieces)))
        if provider.clock.monotonic() - quiet_since_s >= KEEP_ALIVE_S * provider.config.time_scale:
            quiet_since_s = provider.clock.monotonic()
            yield None


def trouble_of(run: Run, *, earlier: int, after: int) -> Fault | None:
    """What befalls a listener.

    Args:
        run: of the streaming model.
        earlier: how many listened before.
        after: the number of the last piece that is known; where fewer than two are to come, nothing breaks.
    """
    return run.faults.stream if earlier < run.faults.times and len(pieces(run)) - after >= 2 else None


def _break_of(run: Run, *, after: int, count: int) -> int:
    """The piece before which the connection breaks: somewhere among those to be told, but never the first of them."""
    return after + 2 + int(run.faults.jitter * max(0, count - after - 2))


def _break(provider: Provider, fault: Fault | None) -> None:
    if fault is Fault.STREAM_SILENT:
        _wait(provider, SILENCE_S * provider.config.time_scale)
    raise BrokenStreamError


def _wait(provider: Provider, delay_s: float) -> None:
    if provider.closing.wait(delay_s):
        raise BrokenStreamError


def _due(provider: Provider, run: Run, *, count: int) -> int:
    """How many pieces have been made by now."""
    if run.status is Status.SUCCEEDED:
        return count
    if run.status is not Status.PROCESSING:
        return 0
    done = (provider.clock.monotonic() - run.started_s) / run.duration_s if run.duration_s else 1.0
    return min(count, int(count * done))


def _next_due_s(provider: Provider, run: Run, *, told: int, count: int) -> float:
    """How long until there may be something to tell."""
    if run.status is not Status.PROCESSING or told >= count:
        return _LOOK_S
    due_s = run.started_s + run.duration_s * (told + 1) / count
    return max(0.001, min(KEEP_ALIVE_S * provider.config.time_scale, due_s - provider.clock.monotonic()))
