"""Keeps some points armed, and tells who died where. Points are chosen by how seldom anybody died there."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.crashing.control import Arming, Control, Struck

_AT_ONCE = 5
#: A point that nobody passes for so long is left alone for now.
_PATIENCE_S = 8.0
_FAMILIES = 0.12
_LATE_NTH = 0.3


@dataclass(slots=True)
class Sniper:
    """Arms points of one fleet.

    Attributes:
        deaths: So far, by point; also those of earlier fleets.
    """

    control: Control
    rng: Random
    deaths: Counter[str]
    _waits: Counter[str] = field(default_factory=Counter)
    _armed: dict[str, tuple[Arming, float]] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def refill(self) -> None:
        """Arms as many points as may be armed at once."""
        for arming, since_s in list(self._armed.values()):
            if time.monotonic() - since_s > _PATIENCE_S and self.control.disarm(arming):
                self._waits[arming.point] += 1
                del self._armed[arming.id]
        while len(self._armed) < _AT_ONCE and (chosen := self._next()) is not None:
            self._armed[chosen.id] = chosen, time.monotonic()
            self.control.arm(chosen)

    def look(self) -> list[tuple[Arming, Struck]]:
        """Who died since the last look."""
        found = []
        for arming, _ in list(self._armed.values()):
            struck = self.control.struck(arming)
            if struck is not None:
                del self._armed[arming.id]
                self.deaths[arming.point] += 1
                found.append((arming, struck))
        return found

    def hold_fire(self) -> list[tuple[Arming, Struck]]:
        """Takes back what is armed; who died in the last moment is told as well."""
        for arming, _ in list(self._armed.values()):
            if self.control.disarm(arming):
                del self._armed[arming.id]
        give_up_at = time.monotonic() + 2
        found = self.look()
        while self._armed and time.monotonic() < give_up_at:
            time.sleep(0.02)
            found += self.look()
        return found

    def _next(self) -> Arming | None:
        taken = {arming.point for arming, _ in self._armed.values()}
        free = sorted(set(self.control.census()) - taken)
        if not free:
            return None
        point = min(free, key=lambda name: (self.deaths[name] + self._waits[name], self.rng.random()))
        return Arming(
            f"{next(self._ids):05d}",
            point,
            nth=self.rng.randint(2, 4) if self.rng.random() < _LATE_NTH else 1,
            with_parent=self.rng.random() < _FAMILIES,
        )
