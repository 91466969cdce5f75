"""A PostgreSQL that is stopped in the middle: whoever asks it is answered, and all goes on when it does."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest
import sqlalchemy as sa

from homing.web import create_app
from jobs.core.errors import NotFound, Unavailable
from jobs.services.keys import Role, create_key
from jobs.storage.database import Database
from jobs.storage.jobs import get_job
from tests.fakes.runtime import a_runtime
from tests.services.postgresql import PostgresService
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.timeout(120)]
_ANSWER_S = 1.0
# The wait for an answer, half a second in which the server should have spoken, and two to connect anew.
_BOUND_S = _ANSWER_S + 0.5 + 2.0 + 1.5


@pytest.fixture
def patient(server: PostgresService) -> Iterator[Database]:
    database = Database.connect(server.url("homing"), answer_timeout_s=_ANSWER_S)
    yield database
    database.close()


@contextmanager
def frozen(server: PostgresService) -> Iterator[None]:
    """Stops the server and its sessions, each by its number."""
    postmaster = psutil.Process(server.process.pid)
    family = [postmaster.pid, *(child.pid for child in postmaster.children(recursive=True))]
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in family:
            os.kill(pid, signal.SIGCONT)


def _ask(database: Database) -> int:
    with database.read() as tx:
        return int(tx.execute(sa.select(sa.literal(7))).scalar_one())


def _seconds_until_refused(database: Database) -> float:
    begun = time.monotonic()
    with pytest.raises(Unavailable):
        _ask(database)
    return time.monotonic() - begun


def test_an_open_connection_gives_up_on_a_server_that_fell_silent(server: PostgresService, patient: Database) -> None:
    assert _ask(patient) == 7

    with frozen(server):
        waited_s = _seconds_until_refused(patient)

    assert waited_s < _BOUND_S
    assert _ask(patient) == 7


def test_a_commit_that_is_not_answered_is_no_commit_to_its_caller(server: PostgresService, patient: Database) -> None:
    def write_while_it_stops() -> None:
        with patient.write() as tx:
            tx.execute(sa.select(sa.literal(1)))
            stack.enter_context(frozen(server))

    begun = time.monotonic()
    with ExitStack() as stack:
        with pytest.raises(Unavailable):
            write_while_it_stops()
        waited_s = time.monotonic() - begun

    assert waited_s < _BOUND_S


def test_while_one_caller_asks_the_others_are_refused_at_once(server: PostgresService, patient: Database) -> None:
    assert _ask(patient) == 7
    with frozen(server):
        _seconds_until_refused(patient)
        asking = threading.Thread(target=_seconds_until_refused, args=(patient,))
        asking.start()
        wait_until(patient._outage._asking.locked, within_s=2, what="somebody asking")

        waited_s = _seconds_until_refused(patient)
        asking.join()

    assert waited_s < 0.1
    wait_until(lambda: _answers(patient), within_s=5, what="everybody answered again")
    assert [_ask(patient) for _ in range(3)] == [7, 7, 7]


def test_a_caller_that_refuses_what_it_was_told_has_had_an_answer(server: PostgresService, patient: Database) -> None:
    """Else the others would be turned away for as long as all that is asked comes to "not found"."""
    assert _ask(patient) == 7
    with frozen(server):
        _seconds_until_refused(patient)

    with pytest.raises(NotFound), patient.read() as tx:
        get_job(tx, "job_nobody")

    assert not patient._outage._is_silent


def _answers(database: Database) -> bool:
    try:
        return _ask(database) == 7
    except Unavailable:
        return False


def test_a_slow_statement_is_no_outage(patient: Database) -> None:
    with pytest.raises(Unavailable), patient.read() as tx:
        tx.execute(sa.select(sa.func.pg_sleep(5)))

    assert not patient._outage._is_silent
    assert _ask(patient) == 7


def test_the_api_answers_that_it_cannot(server: PostgresService, patient: Database) -> None:
    client = create_app(a_runtime(patient, environ={"HOMING_REDIS_URL": "redis://127.0.0.1:1/0"})).test_client()
    headers = {"Authorization": f"Bearer {create_key(patient, role=Role.ADMIN).key}"}
    assert client.get("/v1/jobs", headers=headers).status_code == 200

    with frozen(server):
        begun = time.monotonic()
        answers = [client.get(path, headers=headers) for path in ("/v1/jobs", "/fleetz", "/metrics")]
        waited_s = time.monotonic() - begun

    assert [answer.status_code for answer in answers][:2] == [503, 503]
    assert answers[0].mimetype == "application/problem+json"
    assert int(answers[0].headers["Retry-After"]) >= 1
    assert waited_s < _BOUND_S + 2 * 2.5
    wait_until(
        lambda: client.get("/v1/jobs", headers=headers).status_code == 200, within_s=5, what="the API answering again"
    )
