"""Keeps some points armed, and tells who died where. Points are chosen by how seldom anybody died there.

Some of them are always at what becomes of dead letters: those moments are rare, and chance would seldom hit them.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from tests.crashing.control import Arming, Control, Struck
from tests.crashing.doors import LETTER_DOORS

_AT_ONCE = 7
#: Of those, so many at doors that are passed seldom.
_AT_RARE_DOORS = 3
_MOMENTS = tuple(f"{door}.{side}" for door in LETTER_DOORS.values() for side in ("before", "after"))
#: A point that nobody passes for so long is left alone for now.
_PATIENCE_S = 6.0
_FAMILIES = 0.12
_LATE_NTH = 0.3
#: How often a known place is preferred to whatever comes.
_FRESH = 0.5


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

    def refill(self, *, only_rare: bool = False) -> None:
        """Arms as many points as may be armed at once; or only those that are passed seldom, and takes others back."""
        for arming, since_s in list(self._armed.values()):
            is_over = time.monotonic() - since_s > _PATIENCE_S or (only_rare and not is_rare(arming.point))
            if is_over and self.control.disarm(arming):
                self._waits[arming.point] += 1
                del self._armed[arming.id]
        most = _AT_RARE_DOORS if only_rare else _AT_ONCE
        while len(self._armed) < most and (chosen := self._next()) is not None:
            self._armed[chosen.id] = chosen, time.monotonic()
            self.control.arm(chosen)

    def look(self) -> list[tuple[Arming, Struck]]:
        """Who died since the last look."""
        found = []
        for arming, _ in list(self._armed.values()):
            struck = self.control.struck(arming)
            if struck is not None:
                del self._armed[arming.id]
                self.deaths[struck.point] += 1
                found.append((arming, struck))
        return found

    def lower(self) -> None:
        """Takes back what is armed, for now."""
        for arming, _ in list(self._armed.values()):
            if self.control.disarm(arming):
                del self._armed[arming.id]

    def hold_fire(self) -> list[tuple[Arming, Struck]]:
        """Takes back what is armed; who died in the last moment is told as well."""
        self.lower()
        give_up_at = time.monotonic() + 2
        found = self.look()
        while self._armed and time.monotonic() < give_up_at:
            time.sleep(0.02)
            found += self.look()
        return found

    def deaths_at(self, moments: Iterable[str] = _MOMENTS) -> int:
        """How many have died at these moments, so far."""
        return sum(count for point, count in self.deaths.items() if point.startswith(tuple(moments)))

    def _next(self) -> Arming | None:
        taken = {arming.point for arming, _ in self._armed.values()}
        rare = [point for point in taken if is_rare(point)]
        point = self._rare(taken) if len(rare) < _AT_RARE_DOORS else self._usual(taken)
        if point is None:
            return None
        late = self.rng.randint(2, 4) if self.rng.random() < _LATE_NTH else 1
        return Arming(
            f"{next(self._ids):05d}",
            point,
            nth=1 if is_rare(point) else late,
            with_parent=self.rng.random() < _FAMILIES,
        )

    def _rare(self, taken: set[str]) -> str:
        """A place at such a door where nobody has died; while none is known, whatever is passed there first."""
        known = [name for name in sorted(self.control.census()) if is_rare(name)]
        fresh = [name for name in known if self._grudge(name) == 0 and name not in taken]
        if fresh and self.rng.random() < _FRESH:
            return self.rng.choice(fresh)
        free = [f"{moment} *" for moment in _MOMENTS if f"{moment} *" not in taken]
        return min(free, key=lambda point: (self.deaths_at([point[:-2]]) + self._waits[point], self.rng.random()))

    def _usual(self, taken: set[str]) -> str | None:
        free = sorted(name for name in self.control.census() if name not in taken and not is_rare(name))
        return min(free, key=lambda name: (self._grudge(name), self.rng.random())) if free else None

    def _grudge(self, name: str) -> int:
        """How little an arming of this point would teach."""
        return self.deaths[name] + self._waits[name]


def is_rare(point: str) -> bool:
    """Whether it is of what becomes of dead letters."""
    return point.startswith(_MOMENTS)
