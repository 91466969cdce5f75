"""The plan of faults: a matter of seed and input, never of time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.simulator import FaultPlan, read_job_lines
from homing.simulator.faults import BY_HAND, GROUPS, PROFILES, STATUS_FAULTS, Fault, Faults
from homing.simulator.plan import canonical_json, derive_share, slots_of

EXAMPLES = Path(__file__).parents[4] / "examples" / "jobs.jsonl"
SEEDS = (0, 1, 7, 42, 2**40)


def inputs_of(count: int) -> list[dict[str, Any]]:
    lines = [line.input for line in read_job_lines(EXAMPLES)]
    return [lines[index % len(lines)] for index in range(count)]


def deal(seed: int, inputs: list[dict[str, Any]], profile: str) -> dict[tuple[str, int], Faults]:
    plan = FaultPlan.for_inputs(seed, inputs, profile)
    return {slot: plan.faults_for(slot) for slot in slots_of(inputs)}


@pytest.mark.parametrize("profile", ["default", "brutal"])
@pytest.mark.parametrize("count", [40, 300])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_quarter_is_dropped_a_quarter_duplicated_and_every_other_kind_occurs(
    seed: int, count: int, profile: str
) -> None:
    counts = Counter(word for faults in deal(seed, inputs_of(count), profile).values() for word in faults.words)

    assert counts["dropped"] >= count / 4
    assert counts["duplicated"] >= count / 4
    assert set(counts) == {kind.value for kind in set(Fault) - set(BY_HAND)}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_read_trouble_meets_a_run_that_only_reads_bring_home(seed: int) -> None:
    dealt = deal(seed, inputs_of(40), "default").values()

    met = {faults.status for faults in dealt if faults.webhook is Fault.DROPPED}

    assert met >= set(STATUS_FAULTS)


@pytest.mark.parametrize("profile", ["default", "brutal"])
def test_the_order_of_the_inputs_changes_nothing(profile: str) -> None:
    inputs = inputs_of(300)
    shuffled = random.Random(3).sample(inputs, len(inputs))

    assert deal(7, inputs, profile) == deal(7, shuffled, profile)


def test_another_seed_deals_other_faults() -> None:
    assert deal(1, inputs_of(40), "default") != deal(2, inputs_of(40), "default")


def test_equal_inputs_are_told_apart_by_their_ordinal() -> None:
    assert slots_of([{"a": 1}, {"b": 1}, {"a": 1.0}]) == [('{"a":1}', 0), ('{"b":1}', 0), ('{"a":1}', 1)]


def test_an_unplanned_input_meets_the_same_faults_however_often_it_is_asked() -> None:
    first, second = FaultPlan(5, "brutal"), FaultPlan(5, "brutal")
    slots = [(canonical_json({"prompt": str(n)}), 0) for n in range(50)]

    forward = [first.faults_for(slot) for slot in slots]
    backward = [second.faults_for(slot) for slot in reversed(slots)]

    assert forward == backward[::-1]


def test_unplanned_inputs_draw_each_kind_about_as_often_as_its_share() -> None:
    plan = FaultPlan(11, "default")
    drawn = [plan.faults_for((canonical_json({"n": n, "model": "llm-stream"}), 0)) for n in range(4000)]

    counts = Counter(word for faults in drawn for word in faults.words)

    for kind, share in PROFILES["default"].shares.items():
        assert counts[kind.value] / 4000 == pytest.approx(share, abs=0.025), kind


def test_trouble_of_streams_befalls_only_what_can_be_listened_to() -> None:
    told = [{"n": n, "model": "llm-stream"} for n in range(40)]
    untold = [{"n": n, "model": "video", "prompt": '"model":"llm-stream"'} for n in range(40)]

    dealt = deal(7, [*told, *untold], "default")
    drawn = [FaultPlan(7, "default").faults_for(slot) for slot in slots_of(untold)]

    assert Counter(faults.stream for faults in dealt.values() if faults.stream) == {
        Fault.STREAM_CUT: 10, Fault.STREAM_SILENT: 4,
    }  # fmt: skip
    assert all(dealt[slot].stream is None for slot in slots_of(untold))
    assert all(faults.stream is None for faults in drawn)


def test_the_profile_none_has_no_faults() -> None:
    assert all(not faults.words for faults in deal(7, inputs_of(40), "none").values())


@pytest.mark.parametrize("profile", ["default", "brutal"])
def test_the_shares_of_a_group_leave_some_runs_in_peace(profile: str) -> None:
    for group in GROUPS:
        assert sum(PROFILES[profile].shares.get(kind, 0.0) for kind in group) < 1


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_few_inputs_are_dealt_drops_and_duplicates_first(count: int) -> None:
    dealt = deal(0, inputs_of(count), "default").values()

    kinds = [faults.webhook for faults in dealt]

    assert kinds.count(Fault.DROPPED) >= count / 4
    assert count == 1 or kinds.count(Fault.DUPLICATED) >= count / 4


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none()))
def test_the_canonical_form_forgets_the_order_of_keys(value: dict[str, Any]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


@given(st.integers(), st.text(), st.text())
def test_a_share_is_at_least_0_and_below_1(seed: int, text: str, kind: str) -> None:
    assert 0 <= derive_share(seed, (text, 0), kind) < 1


def test_a_share_is_the_same_on_every_machine() -> None:
    assert derive_share(7, ('{"a":1}', 0), "dropped") == pytest.approx(0x10DD1EE4 / 2**32, abs=1e-9)
