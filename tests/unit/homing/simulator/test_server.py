"""The simulator over real sockets: what only a connection can show."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import requests

from homing.simulator import Running, SimulatorConfig, running, serve
from homing.simulator.faults import Fault, Faults
from jobs.core.errors import ConfigError
from tests.unit.homing.simulator.stage import QUICK, Receiver, planned

BODY: dict[str, Any] = {"model": QUICK["model"], "input": {k: v for k, v in QUICK.items() if k != "model"}}


def fast(**settings: Any) -> SimulatorConfig:
    return SimulatorConfig(time_scale=0.02, **settings)


def test_a_job_comes_home_over_http(receiver: Receiver) -> None:
    with running(fast()) as simulator, requests.Session() as session:
        submitted = session.post(f"{simulator.url}/jobs", json={**BODY, "callback_url": receiver.url}).json()
        receiver.wait_for(2)
        facts = session.get(f"{simulator.url}/jobs/{submitted['id']}").json()
        content = session.get(facts["artifacts"][0]["url"])

    assert simulator.port > 0
    assert facts["status"] == "succeeded"
    assert sorted(receiver.statuses) == ["processing", "succeeded"]
    assert len(content.content) == facts["artifacts"][0]["size"]


def test_a_lost_answer_is_a_closed_connection_and_a_billed_run() -> None:
    """F30: the provider has the job, the client has nothing."""
    headers = {"Idempotency-Key": "k-1"}
    with (
        running(fast(), plan=planned(Faults(submit=Fault.LOST_ANSWER))) as simulator,
        requests.Session() as session,
    ):
        with pytest.raises(requests.ConnectionError):
            session.post(f"{simulator.url}/jobs", json=BODY, headers=headers)
        again = session.post(f"{simulator.url}/jobs", json=BODY, headers=headers)
        ledger = session.get(f"{simulator.url}/ledger").json()

    assert again.status_code == 200
    assert ledger["runs_billed"] == 1
    assert [entry["answer"] for entry in ledger["submits"]] == [None, 200]


def test_a_hanging_read_is_held_and_then_cut() -> None:
    config = SimulatorConfig(time_scale=0.1)
    with (
        running(config, plan=planned(Faults(status=Fault.STATUS_HANG))) as simulator,
        requests.Session() as session,
    ):
        url = f"{simulator.url}/jobs/{session.post(f'{simulator.url}/jobs', json=BODY).json()['id']}"
        with pytest.raises(requests.ReadTimeout):
            session.get(url, timeout=0.05)
        assert session.get(url).status_code == 200
        reads = session.get(f"{simulator.url}/ledger").json()["reads"]

    assert [(read["fault"], read["answer"]) for read in reads] == [("status_hang", None), (None, 200)]


def test_a_patient_reader_of_a_hanging_answer_gets_none() -> None:
    with (
        running(fast(), plan=planned(Faults(status=Fault.STATUS_HANG))) as simulator,
        requests.Session() as session,
    ):
        run_id = session.post(f"{simulator.url}/jobs", json=BODY).json()["id"]
        with pytest.raises(requests.ConnectionError):
            session.get(f"{simulator.url}/jobs/{run_id}")


def test_a_hanging_read_does_not_hold_up_the_end() -> None:
    config = SimulatorConfig(time_scale=100)
    with (
        running(config, plan=planned(Faults(status=Fault.STATUS_HANG))) as simulator,
        requests.Session() as session,
    ):
        run_id = session.post(f"{simulator.url}/jobs", json=BODY).json()["id"]
        with pytest.raises(requests.ReadTimeout):
            session.get(f"{simulator.url}/jobs/{run_id}", timeout=0.05)


def test_a_busy_port_is_named() -> None:
    with running(fast()) as simulator, pytest.raises(ConfigError, match=str(simulator.port)):
        serve(fast(port=simulator.port))


def test_serve_tells_its_address_before_it_serves() -> None:
    told: list[Running] = []
    ready = threading.Event()

    class StopError(Exception):
        pass

    def stop_at_once(simulator: Running) -> None:
        told.append(simulator)
        ready.set()
        raise StopError

    with pytest.raises(StopError):
        serve(fast(), on_ready=stop_at_once)

    assert told[0].url == f"http://127.0.0.1:{told[0].port}"
    assert told[0].provider.base_url == told[0].url
