"""What happened, as the provider saw it: the evidence the demo's proof is made of.

Details are kept for the newest entries only, so that a simulator left running does not grow for ever; the
totals count everything.
"""

from __future__ import annotations

import threading
from collections import Counter, deque

from homing.simulator.faults import WEBHOOK_FAULTS, Fault
from homing.simulator.instants import write_instant
from jobs.clock import Clock

_KEPT = 100_000

#: Totals that are always shown, also at 0.
_COUNTED = ("submits", "reads", "searches", "streams", "cancels", "events", "sent", "refused", "lost_answers")

Entry = dict[str, object]


class Ledger:
    """Append-only books of submits, reads, cancels and webhooks, with totals."""

    def __init__(self, clock: Clock) -> None:
        """Build it empty."""
        self._clock = clock
        self._lock = threading.Lock()
        self._submits: deque[Entry] = deque(maxlen=_KEPT)
        self._reads: deque[Entry] = deque(maxlen=_KEPT)
        self._cancels: deque[Entry] = deque(maxlen=_KEPT)
        self._webhooks: deque[Entry] = deque(maxlen=_KEPT)
        self._totals: Counter[str] = Counter()
        self._billed = 0

    def record_run(self) -> None:
        """A run was begun, and is billed."""
        with self._lock:
            self._billed += 1

    def record_submit(
        self, *, key: str | None, reference: str | None, run_id: str | None, answer: int | None, fault: Fault | None
    ) -> None:
        """A submit was answered with this status; none: its answer was lost."""
        entry: Entry = {"key": key, "reference": reference, "id": run_id, "answer": answer}
        counted = ["submits"]
        if fault is Fault.LOST_ANSWER:
            counted.append("lost_answers")
        elif fault is not None:
            counted.append(fault.value)
        self._append(self._submits, entry, fault=fault, counted=counted)

    def record_read(self, *, run_id: str | None, answer: int | None, fault: Fault | None = None) -> None:
        """A status was read; none: the read was left hanging."""
        entry: Entry = {"id": run_id, "kind": "status", "answer": answer}
        self._append(self._reads, entry, fault=fault, counted=["reads", *([fault.value] if fault else [])])

    def record_stream(self, *, run_id: str, answer: int, after: int = 0, fault: Fault | None = None) -> None:
        """A run's output was listened to, from after the piece of this number."""
        entry: Entry = {"id": run_id, "kind": "stream", "after": after, "answer": answer}
        self._append(self._reads, entry, fault=fault, counted=["streams", *([fault.value] if fault else [])])

    def record_search(self, *, reference: str | None, key: str | None, found: int) -> None:
        """Somebody looked for runs by reference or key."""
        entry: Entry = {"id": None, "kind": "search", "reference": reference, "key": key, "found": found}
        self._append(self._reads, entry, fault=None, counted=["searches"])

    def record_cancel(self, *, run_id: str, answer: int) -> None:
        """A cancel was asked for."""
        self._append(self._cancels, {"id": run_id, "answer": answer}, fault=None, counted=["cancels"])

    def record_event(self, fault: Fault | None) -> None:
        """An event came due, whatever becomes of its deliveries; counted under the fault it suffers."""
        with self._lock:
            self._totals["events"] += 1
            if fault is not None:
                self._totals[fault.value] += 1

    def record_webhook(
        self, *, event_id: str, run_id: str, status: str, attempt: int, fault: Fault | None, answer: int | str | None
    ) -> None:
        """A delivery was tried (answer: status or what broke), or dropped (none)."""
        entry: Entry = {"id": event_id, "job": run_id, "status": status, "attempt": attempt, "answer": answer}
        counted = [] if fault is Fault.DROPPED else ["sent"]
        if isinstance(answer, int) and 400 <= answer < 500:
            counted.append("refused")
        self._append(self._webhooks, entry, fault=fault, counted=counted)

    def record_artifact(self, fault: Fault) -> None:
        """A result was served badly."""
        with self._lock:
            self._totals[fault.value] += 1

    def snapshot(self) -> dict[str, object]:
        """The whole ledger, as `GET /ledger` shows it."""
        with self._lock:
            shown = dict.fromkeys((*_COUNTED, *(kind.value for kind in WEBHOOK_FAULTS)), 0)
            return {
                "submits": list(self._submits),
                "reads": list(self._reads),
                "cancels": list(self._cancels),
                "webhooks": list(self._webhooks),
                "runs_billed": self._billed,
                "totals": shown | self._totals,
            }

    def _append(self, book: deque[Entry], entry: Entry, *, fault: Fault | None, counted: list[str]) -> None:
        entry["fault"] = None if fault is None else fault.value
        entry["at"] = write_instant(self._clock.now())
        with self._lock:
            book.append(entry)
            self._totals.update(counted)
