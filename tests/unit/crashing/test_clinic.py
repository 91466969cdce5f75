"""The provider of the work that ails speaks the simulator's words, and its books tell the truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.crashing.ailments import AILMENTS, Ward
from tests.crashing.clinic import Clinic


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    return Ward(tmp_path / "ward")


@pytest.fixture
def clinic(ward: Ward) -> Iterator[Clinic]:
    made = Clinic(ward)
    yield made
    made.close()


def _submit(clinic: Clinic, entry: str, key: str = "k1") -> requests.Response:
    body = {"model": None, "input": {}, "callback_url": "http://127.0.0.1:9/", "reference": f"token-{key}"}
    url = f"{clinic.url}/{entry}/jobs"
    return requests.post(url, json=body, headers={"Idempotency-Key": key}, timeout=5)


def test_what_ails_is_declined_until_it_is_healed(clinic: Clinic, ward: Ward) -> None:
    ward.fall_ill()
    ill = _submit(clinic, "ail_submit")
    ward.heal()
    healed = _submit(clinic, "ail_submit")

    assert (ill.status_code, healed.status_code) == (402, 201)
    assert clinic.submits == 2


def test_a_key_makes_one_run(clinic: Clinic) -> None:
    first, again = _submit(clinic, "ail_poll"), _submit(clinic, "ail_poll")

    assert first.json()["id"] == again.json()["id"]
    runs, _ = clinic.books()
    assert [(run["id"], run["reference"]) for run in runs] == [("ail_poll-0000", "token-k1")]


def test_a_run_is_found_by_its_reference(clinic: Clinic) -> None:
    run = _submit(clinic, "ail_poll").json()["id"]

    found = requests.get(f"{clinic.url}/ail_poll/jobs", params={"reference": "token-k1"}, timeout=5).json()

    assert [each["id"] for each in found["jobs"]] == [run]


def test_a_cancel_that_is_declined_leaves_the_run_at_work(clinic: Clinic, ward: Ward) -> None:
    run = _submit(clinic, "ail_cancel").json()["id"]
    url = f"{clinic.url}/ail_cancel/jobs/{run}"
    ward.fall_ill()

    declined = requests.post(f"{url}/cancel", timeout=5)
    before = requests.get(url, timeout=5).json()["status"]
    ward.heal()
    taken = requests.post(f"{url}/cancel", timeout=5)

    assert (declined.status_code, before) == (402, "processing")
    assert taken.json()["status"] == "canceled"


def test_a_file_is_away_while_it_ails(clinic: Clinic, ward: Ward) -> None:
    url = f"{clinic.url}/ail_artifact/files/x.txt"
    ward.fall_ill()
    ill = requests.get(url, timeout=5).status_code
    ward.heal()

    assert (ill, requests.get(url, timeout=5).status_code) == (404, 200)


def test_all_fall_ill_and_are_healed_together(ward: Ward) -> None:
    ward.fall_ill()
    ill = [ward.is_ill(name) for name in AILMENTS]
    ward.heal()

    assert all(ill)
    assert not any(ward.is_ill(name) for name in AILMENTS)
