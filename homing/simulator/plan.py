"""Which run suffers which faults: decided by a hash of what was asked for, never by when it was asked.

Two runs of the fleet with one seed meet the same faults on the same inputs, however their requests
interleave. A hash alone keeps no quota among a few dozen inputs, so whoever knows the inputs beforehand (the
demo does) plans them: each kind goes to the inputs whose hashes rank lowest.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from homing.simulator.faults import (
    ARTIFACT_FAULTS,
    CANCEL_FAULTS,
    GROUPS,
    PROFILES,
    STATUS_FAULTS,
    STREAM_FAULTS,
    SUBMIT_FAULTS,
    WEBHOOK_FAULTS,
    Fault,
    Faults,
    Profile,
)

#: An input in canonical form, and how many equal ones came before it.
Slot = tuple[str, int]

# As the canonical form of an input writes it; inside a text the quotes would be escaped.
_STREAMS = '"model":"llm-stream"'

# A product such as 0.1 * 30 may come out a hair above the whole number it means.
_ROUNDING = 1e-9


def canonical_json(value: object) -> str:
    """One text for one meaning: sorted keys, no blanks, 2.0 written as 2.

    A body is stored and read back on its way here, and databases do not agree on how to write 2.0.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def derive_share(seed: int, slot: Slot, kind: str) -> float:
    """A number in [0, 1) that depends on these arguments and on nothing else."""
    text = "\0".join((str(seed), slot[0], kind, str(slot[1])))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]) / 2**64


def slots_of(inputs: Iterable[Mapping[str, object]]) -> list[Slot]:
    """The slot of each input, in order; equal inputs are told apart by their ordinal, from 0."""
    seen: Counter[str] = Counter()
    slots = []
    for item in inputs:
        text = canonical_json(item)
        slots.append((text, seen[text]))
        seen[text] += 1
    return slots


class FaultPlan:
    """The faults of every run, fixed by seed and profile.

    Args:
        seed: any integer.
        profile: `none`, `default` or `brutal`.
        planned: faults of the inputs known beforehand; every other input draws by hash alone.
    """

    def __init__(self, seed: int, profile: str, planned: Mapping[Slot, Faults] | None = None) -> None:
        """See the class."""
        self._seed = seed
        self._profile = PROFILES[profile]
        self._planned = dict(planned or {})

    @classmethod
    def for_inputs(cls, seed: int, inputs: Sequence[Mapping[str, object]], profile: str) -> FaultPlan:
        """Deal each kind of fault to its full quota, rounded up, of these inputs.

        The order of the inputs does not matter.

        Args:
            seed: any integer.
            inputs: as users give them, with `model` inside.
            profile: `none`, `default` or `brutal`.
        """
        slots = slots_of(inputs)
        dealt = _deal(seed, slots, profile=PROFILES[profile])
        planned = {slot: _assemble(seed, slot, kinds=kinds, profile=PROFILES[profile]) for slot, kinds in dealt.items()}
        return cls(seed, profile, planned)

    def faults_for(self, slot: Slot) -> Faults:
        """What befalls the run of this input."""
        planned = self._planned.get(slot)
        if planned is not None:
            return planned
        kinds = _draw(self._seed, slot, profile=self._profile)
        return _assemble(self._seed, slot, kinds=kinds, profile=self._profile)


def _deal(seed: int, slots: Sequence[Slot], *, profile: Profile) -> dict[Slot, list[Fault]]:
    dealt: dict[Slot, list[Fault]] = {slot: [] for slot in slots}
    for group in GROUPS:
        exposed = [slot for slot in slots if _is_exposed(slot, group)]
        free = list(exposed)
        for kind in group:
            count = math.ceil(profile.shares.get(kind, 0.0) * len(exposed) - _ROUNDING)
            for slot in _lowest(seed, kind, count=count, free=free, dealt=dealt):
                dealt[slot].append(kind)
                free.remove(slot)
    return dealt


def _is_exposed(slot: Slot, group: Sequence[Fault]) -> bool:
    """Whether trouble of this group can befall a run of this input."""
    return group is not STREAM_FAULTS or _STREAMS in slot[0]


def _lowest(
    seed: int, kind: Fault, *, count: int, free: Sequence[Slot], dealt: Mapping[Slot, list[Fault]]
) -> list[Slot]:
    ranked = sorted(free, key=lambda slot: (derive_share(seed, slot, kind), slot))
    if kind in STATUS_FAULTS:
        # Trouble of reads is seen only where somebody reads: one of each kind meets a run without webhooks.
        sure = next((slot for slot in ranked if Fault.DROPPED in dealt[slot]), None)
        ranked.sort(key=lambda slot: slot != sure)
    return ranked[:count]


def _draw(seed: int, slot: Slot, *, profile: Profile) -> list[Fault]:
    """One draw per kind, with the chance that is left in its group, so that the shares come out as planned."""
    drawn = []
    for group in (group for group in GROUPS if _is_exposed(slot, group)):
        left = 1.0
        for kind in group:
            share = profile.shares.get(kind, 0.0)
            if share and derive_share(seed, slot, kind) < share / left:
                drawn.append(kind)
                break
            left -= share
    return drawn


def _assemble(seed: int, slot: Slot, *, kinds: Sequence[Fault], profile: Profile) -> Faults:
    status = _one_of(kinds, STATUS_FAULTS)
    most = max(profile.most_times, 2 if status is Fault.STATUS_UNKNOWN else 1)
    return Faults(
        webhook=_one_of(kinds, WEBHOOK_FAULTS),
        submit=_one_of(kinds, SUBMIT_FAULTS),
        status=status,
        stream=_one_of(kinds, STREAM_FAULTS),
        cancel=_one_of(kinds, CANCEL_FAULTS),
        artifact=_one_of(kinds, ARTIFACT_FAULTS),
        times=1 + int(derive_share(seed, slot, "times") * most),
        jitter=derive_share(seed, slot, "jitter"),
    )


def _one_of(kinds: Sequence[Fault], group: tuple[Fault, ...]) -> Fault | None:
    return next((kind for kind in kinds if kind in group), None)
