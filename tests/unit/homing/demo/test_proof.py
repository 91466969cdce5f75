"""The proof, from a made-up run: every claim that breaks is seen, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from homing.demo.evidence import Evidence, JobFacts, Step
from homing.demo.figures import count_figures
from homing.demo.options import DemoOptions
from homing.demo.page import document
from homing.demo.proof import prove
from homing.demo.submission import Submission
from jobs.core import instants

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
#: Two jobs: one brought home by its webhook, one whose webhooks were all dropped.
TOLD, DROPPED = "job_told", "job_dropped"


def at(seconds: float) -> str:
    return instants.to_text(BEGAN + timedelta(seconds=seconds))


def webhook(run: str, status: str, *, seconds: float, fault: str | None = None) -> dict[str, Any]:
    answer = None if fault == "dropped" else 200
    return {
        "id": "evt",
        "job": run,
        "status": status,
        "attempt": 1,
        "answer": answer,
        "fault": fault,
        "at": at(seconds),
    }


def submit(run: str | None, reference: str) -> dict[str, Any]:
    return {"key": reference, "reference": reference, "id": run, "answer": 201, "fault": None, "at": at(0)}


LEDGER: dict[str, Any] = {
    "submits": [submit("p-1", "r-1"), submit("p-2", "r-2")],
    "webhooks": [
        webhook("p-1", "processing", seconds=1),
        webhook("p-1", "succeeded", seconds=12),
        webhook("p-2", "failed", seconds=25, fault="dropped"),
    ],
    "runs_billed": 2,
    "totals": {"sent": 2, "refused": 0, "reads": 3, "events": 3, "submits": 2, "lost_answers": 1},
}
GOOD = Evidence(
    submissions=[Submission(TOLD, (TOLD,)), Submission(DROPPED)],
    jobs={
        TOLD: JobFacts(TOLD, "succeeded", "p-1", BEGAN + timedelta(seconds=12.5)),
        DROPPED: JobFacts(DROPPED, "failed", "p-2", BEGAN + timedelta(seconds=29)),
    },
    steps=[
        Step(TOLD, "pending", "running", "webhook"),
        Step(TOLD, "running", "succeeded", "webhook"),
        Step(DROPPED, "pending", "failed", "poll"),
    ],
    ledger=LEDGER,
    effects={TOLD: 1, DROPPED: 1},
    inbox={"applied": 2},
)


def broken(evidence: Evidence, *, faults: str = "none") -> set[str]:
    return {check.name for check in prove(evidence, faults=faults) if not check.held}


def changed_job(job_id: str, **changes: Any) -> Evidence:
    return replace(GOOD, jobs={**GOOD.jobs, job_id: replace(GOOD.jobs[job_id], **changes)})


def test_a_good_run_holds() -> None:
    assert broken(GOOD) == set()


@pytest.mark.parametrize(
    ("evidence", "claims"),
    [
        (replace(GOOD, jobs={TOLD: GOOD.jobs[TOLD]}), {"jobs", "home", "truth", "effects"}),
        (
            replace(GOOD, jobs={**GOOD.jobs, "job_x": JobFacts("job_x", "pending", None, None)}),
            {"no_extra_jobs"},
        ),
        (replace(GOOD, submissions=[Submission(TOLD, (DROPPED,)), Submission(DROPPED)]), {"idempotent"}),
        (replace(GOOD, ledger={**LEDGER, "runs_billed": 3}), {"billed"}),
        (
            replace(
                GOOD,
                ledger={**LEDGER, "submits": [*LEDGER["submits"], submit("p-3", "r-2")], "runs_billed": 3},
            ),
            {"billed", "billed_once"},
        ),
        (
            replace(changed_job(DROPPED, state="running", finished_at=None), steps=GOOD.steps[:2]),
            {"home", "truth", "history"},
        ),
        (changed_job(DROPPED, state="succeeded"), {"truth", "history"}),
        (changed_job(DROPPED, waits_for_person=True), {"unattended"}),
        (replace(GOOD, effects={TOLD: 2, DROPPED: 1}), {"effects", "effect_calls"}),
        (replace(GOOD, effects={TOLD: 1}), {"effects", "effect_calls"}),
        (replace(GOOD, effects={TOLD: 1, DROPPED: 1, "job_x": 1}), {"effect_calls"}),
        (replace(GOOD, dead_letters=1), {"dead_letters"}),
        (replace(GOOD, files={"stored": 3, "rejected": 1}), {"files"}),
        (
            replace(GOOD, steps=[*GOOD.steps, Step(DROPPED, "failed", "succeeded", "webhook")]),
            {"illegal_transitions", "ended_twice", "history"},
        ),
        (replace(GOOD, steps=GOOD.steps[1:]), {"history"}),
    ],
)
def test_each_broken_claim_is_seen(evidence: Evidence, claims: set[str]) -> None:
    assert broken(evidence) == claims


#: The same run, during which processes were killed: one effect was made again, under its event's id.
UNDER_FIRE = replace(
    GOOD, effects={TOLD: 2, DROPPED: 1}, effect_events={"evt_1": 2, "evt_2": 1}, killed={"web main": 1, "beat": 2}
)


def test_under_fire_an_effect_may_be_made_again() -> None:
    figures = count_figures(UNDER_FIRE)

    assert broken(UNDER_FIRE) == set()
    assert figures.killed == {"web main": 1, "beat": 2}
    assert figures.effects_repeated == 1


@pytest.mark.parametrize(
    ("evidence", "claims"),
    [
        (replace(UNDER_FIRE, killed={}), {"killed"}),
        (replace(UNDER_FIRE, effects={TOLD: 3}), {"effects"}),
        (replace(UNDER_FIRE, effect_events={"evt_1": 2, "evt_2": 1, "evt_3": 1}), {"effect_events"}),
    ],
)
def test_under_fire_none_may_be_lost_or_told_under_two_ids(evidence: Evidence, claims: set[str]) -> None:
    assert broken(evidence) == claims


def test_a_broken_claim_breaks_the_whole() -> None:
    evidence = replace(GOOD, dead_letters=1)
    options = DemoOptions(jobs=2)

    def held(proven: Evidence) -> bool:
        checks = prove(proven, faults="none")
        outcome: bool = document(options, checks, count_figures(proven), elapsed_s=1.0)["held"]
        return outcome

    assert (held(GOOD), held(evidence)) == (True, False)


def forty(*, dropped: int, duplicated: int) -> Evidence:
    """Forty jobs, so many of them with troubled webhooks."""
    ids = [f"job_{number}" for number in range(40)]
    kinds = ["dropped"] * dropped + ["duplicated"] * duplicated + [None] * (40 - dropped - duplicated)
    hooks = [webhook(f"p-{n}", "succeeded", seconds=5, fault=kind) for n, kind in enumerate(kinds)]
    seen = {"reordered": 1, "early": 1, "badly_signed": 1, "stale": 1, "lost_answers": 1}
    return Evidence(
        submissions=[Submission(job_id) for job_id in ids],
        jobs={
            job_id: JobFacts(job_id, "succeeded", f"p-{n}", BEGAN + timedelta(seconds=6))
            for n, job_id in enumerate(ids)
        },
        steps=[Step(job_id, "pending", "succeeded", "poll") for job_id in ids],
        ledger={
            "submits": [submit(f"p-{n}", f"r-{n}") for n in range(40)],
            "webhooks": hooks,
            "runs_billed": 40,
            "totals": seen,
        },
        effects=dict.fromkeys(ids, 1),
    )


@pytest.mark.parametrize(
    ("dropped", "duplicated", "claims"),
    [(10, 10, set()), (9, 10, {"dropped_share"}), (10, 9, {"duplicated_share"})],
)
def test_the_promised_share_of_faults_is_a_claim_too(dropped: int, duplicated: int, claims: set[str]) -> None:
    assert broken(forty(dropped=dropped, duplicated=duplicated), faults="default") == claims


def test_every_promised_kind_must_have_struck() -> None:
    evidence = forty(dropped=10, duplicated=10)
    del evidence.ledger["totals"]["early"]

    assert broken(evidence, faults="default") == {"all_kinds"}
    assert broken(evidence, faults="none") == set()


def test_healing_is_measured_from_the_lost_webhook() -> None:
    figures = count_figures(GOOD)

    assert (figures.lost, figures.heal_median_s, figures.heal_worst_s) == (1, 4.0, 4.0)
    assert figures.news_median_s == pytest.approx(2.25)


def test_fixed_polling_is_counted_by_how_long_each_run_took() -> None:
    figures = count_figures(GOOD)

    assert figures.polls == 3
    assert figures.fixed_polls == 2 + 3  # 12 s and 25 s, every 10 s


def test_webhooks_and_other_faults_are_shown_apart() -> None:
    figures = count_figures(GOOD)

    assert figures.webhooks == {"sent": 2, "dropped": 1, "refused": 0}
    assert figures.other_faults == {"lost_answers": 1}
    assert figures.home_by == {"webhook": 1, "poll": 1}


def test_a_run_of_which_nothing_came_home_has_no_times() -> None:
    nothing = {"submits": [], "webhooks": [], "runs_billed": 0, "totals": {}}
    figures = count_figures(replace(GOOD, jobs={}, steps=[], ledger=nothing))

    assert figures.heal_median_s is None
    assert figures.news_worst_s is None
