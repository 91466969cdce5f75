"""Turns a change of a run into webhooks, with the run's fault worked in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault
from homing.simulator.instants import write_instant
from homing.simulator.ledger import Ledger
from homing.simulator.run import Run, Status
from homing.simulator.webhooks import Delivery, Sender, Signing
from jobs.clock import Clock
from jobs.ids import new_id

#: Shortest and longest delay of a late webhook, in seconds: late enough that a poll may win, short enough to watch.
DELAYS_S = (2.0, 6.0)

#: Longest time between an event and its copy, in seconds; a third of the copies come at once, for the race.
COPY_LAG_S = 1.5

#: A run as a client sees it.
Describe: TypeAlias = Callable[[Run], dict[str, object]]

#: What a dialect sends when a run reaches a status, before its faults; none: it says nothing of that.
Voice: TypeAlias = Callable[[Run, Status], Delivery | None]

_TERMINAL_ONLY = {
    Fault.DELAYED: Signing.GOOD,
    Fault.DELAYED_STALE: Signing.STALE,
    Fault.BADLY_SIGNED: Signing.WRONG,
    Fault.STALE: Signing.STALE,
    Fault.FUTURE: Signing.FUTURE,
}


class Callbacks:
    """Announces runs to whoever asked for it.

    Attributes:
        voices: how each dialect tells of its runs.
    """

    def __init__(
        self, config: SimulatorConfig, *, clock: Clock, ledger: Ledger, sender: Sender, describe: Describe
    ) -> None:
        """`describe` gives the body its facts at the moment of the change."""
        self._config = config
        self._clock = clock
        self._ledger = ledger
        self._sender = sender
        self._describe = describe
        self._lock = threading.Lock()
        self._held: dict[str, Delivery] = {}
        self.voices: dict[str, Voice] = {}

    def announce(self, run: Run, status: Status) -> None:
        """Tell the client that the run reached `status`; nobody listens where there is no URL."""
        voice = self._say if run.order.dialect is None else self.voices[run.order.dialect]
        delivery = voice(run, status)
        if delivery is None:
            return
        fault = fault_of_event(run.faults.webhook, status)
        self._ledger.record_event(fault)
        if fault is Fault.DROPPED:
            self._drop(delivery)
        else:
            self._dispatch(run, replace(delivery, fault=fault))

    def _say(self, run: Run, status: Status) -> Delivery | None:
        url = run.order.callback_url or self._config.webhook_url
        if url is None:
            return None
        event_id = new_id("evt", at=self._clock.now())
        return Delivery(event_id, run.id, status.value, url, self._body(event_id, run, status=status))

    def _drop(self, delivery: Delivery) -> None:
        self._ledger.record_webhook(
            event_id=delivery.event_id,
            run_id=delivery.run_id,
            status=delivery.status,
            attempt=1,
            fault=Fault.DROPPED,
            answer=None,
        )

    def _dispatch(self, run: Run, delivery: Delivery) -> None:
        match delivery.fault:
            case Fault.EARLY:
                self._sender.send_now(delivery)
            case Fault.REORDERED:
                self._hold(run, delivery)
            case Fault.DUPLICATED:
                self._sender.send(replace(delivery, fault=None))
                self._sender.send(delivery, delay_s=self._copy_lag_s(run))
            case Fault.DELAYED | Fault.DELAYED_STALE:
                signed = replace(delivery, signing=_TERMINAL_ONLY[delivery.fault])
                self._sender.send(signed, delay_s=self._delay_s(run))
            case Fault.BADLY_SIGNED | Fault.STALE | Fault.FUTURE:
                self._sender.send(replace(delivery, signing=_TERMINAL_ONLY[delivery.fault]))
            case Fault.TWO_SIGNATURES:
                self._sender.send(replace(delivery, signing=Signing.TWICE))
            case _:
                self._sender.send(replace(delivery, then=self._release(run)))

    def _hold(self, run: Run, delivery: Delivery) -> None:
        with self._lock:
            # The run ends before its terminal event asks for what is held, so one of the two always sends this.
            if not run.status.is_terminal:
                self._held[run.id] = delivery
                return
        self._sender.send(delivery)

    def _release(self, run: Run) -> Delivery | None:
        with self._lock:
            return self._held.pop(run.id, None)

    def _copy_lag_s(self, run: Run) -> float:
        return max(0.0, run.faults.jitter * 1.5 - 0.5) * COPY_LAG_S * self._config.time_scale

    def _delay_s(self, run: Run) -> float:
        shortest, longest = DELAYS_S
        return (shortest + run.faults.jitter * (longest - shortest)) * self._config.time_scale

    def _body(self, event_id: str, run: Run, *, status: Status) -> bytes:
        facts = self._describe(run)
        told = {name: facts[name] for name in ("progress", "output", "error", "artifacts")}
        occurred_at = write_instant(self._clock.now())
        event = {"id": event_id, "job": run.id, "status": status.value, **told, "occurred_at": occurred_at}
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def fault_of_event(fault: Fault | None, status: Status) -> Fault | None:
    """The trouble of one event of a run: some kinds touch only the terminal one, reordering only the other."""
    if fault in _TERMINAL_ONLY:
        return fault if status.is_terminal else None
    if fault is Fault.REORDERED:
        return None if status.is_terminal else fault
    return fault
