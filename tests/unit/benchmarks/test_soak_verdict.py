"""A soak's verdict: what is called growth, and what is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.soak.verdict import judge, slope

_EVERY_S = 30.0


def a_sample(number: int, **changes: Any) -> dict[str, Any]:
    """The fleet after so many looks: its tables have grown with its jobs, nothing else has."""
    jobs = 60 * number
    process = {"count": 1.0, "PSS MiB": 80.0, "threads": 5.0, "files": 40.0, "sockets": 10.0}
    return {
        "at_s": number * _EVERY_S,
        "processes": {"web": {**process, **changes.pop("web", {})}, "simulator": {**process, "PSS MiB": 10.0 * number}},
        "rows": {"jobs": jobs, "outbox": 7 * jobs, "heartbeats": 18, **changes.pop("rows", {})},
        "output": 250 * jobs,
        "waiting": {"open jobs": 12, "deliveries": 9, "dead letters": number, "reviews": 0},
        "oldest_s": {"due polls": 0.3},
        "disk": {"database MiB": 10 + jobs / 40, "WAL MiB": 4.0},
        "redis": {"used MiB": 2.0, "keys": 24.0, "clients": 75.0, **changes.pop("redis", {})},
        "queues": {"events": 1},
        **changes,
    }


def grown(change: Callable[[int], dict[str, Any]]) -> set[str]:
    """What is said to grow over an hour in which this changes."""
    samples = [a_sample(number, **change(number)) for number in range(1, 121)]
    return {line.name for line in judge(samples) if not line.is_flat}


def test_tables_that_grow_with_their_jobs_are_no_leak() -> None:
    assert grown(lambda _number: {}) == set()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda number: {"web": {"PSS MiB": 80 + number}}, "web: PSS MiB"),
        (lambda number: {"web": {"threads": 5 + number // 5}}, "web: threads"),
        (lambda number: {"web": {"sockets": 10 + number // 2}}, "web: sockets"),
        (lambda number: {"redis": {"keys": 24 + number}}, "Redis: keys"),
        (lambda number: {"waiting": {"open jobs": 12, "deliveries": 9 + number}}, "waiting: deliveries"),
        (lambda number: {"queues": {"events": number}}, "messages in all queues"),
        (lambda number: {"oldest_s": {"due polls": float(number)}}, "longest due work, s"),
    ],
)
def test_what_grows_by_itself_is_found(change: Callable[[int], dict[str, Any]], name: str) -> None:
    assert grown(change) == {name}


def test_a_text_kept_in_more_and_smaller_batches_is_no_growth_and_a_longer_text_is() -> None:
    assert grown(lambda number: {"rows": {"jobs": 60 * number, "job_output": 60 * number**2}}) == set()
    assert grown(lambda number: {"output": 60 * number**2}) == {"characters of output per job"}


def test_a_job_that_costs_more_rows_than_the_one_before_is_found() -> None:
    assert "rows of outbox per job" in grown(lambda number: {"rows": {"jobs": 60 * number, "outbox": 7 * number**2}})


def test_noise_and_a_child_that_was_replaced_are_not_growth() -> None:
    rng = random.Random(1)

    def change(number: int) -> dict[str, Any]:
        replaced = 60.0 if 80 <= number <= 90 else 0.0
        return {"web": {"PSS MiB": 80 + rng.uniform(-5, 5) - replaced, "threads": 5 + rng.randrange(4)}}

    assert grown(change) == set()


def test_what_grew_at_the_start_alone_is_no_leak() -> None:
    assert grown(lambda number: {"web": {"PSS MiB": min(80.0 + 3 * number, 200.0)}}) == set()


def test_a_few_samples_show_nothing() -> None:
    with pytest.raises(ValueError, match="show no slope"):
        judge([a_sample(number) for number in range(1, 8)])


def test_one_wild_point_does_not_move_a_slope() -> None:
    assert slope([(at, 1e6 if at == 3 else 2.0 * at) for at in map(float, range(20))]) == pytest.approx(2.0)
