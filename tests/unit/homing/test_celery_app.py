"""Celery's settings: those whose loss would lose work, repeat it without end, or make somebody wait."""

from __future__ import annotations

from celery.beat import PersistentScheduler

from homing.celery_app import create_app, task_modules
from homing.ticker import Ticker
from jobs.broker import ALL_QUEUES, QUEUES, SWEEP


def test_messages_survive_their_worker_a_bounded_number_of_times() -> None:
    app = create_app("redis://127.0.0.1:6379/0")

    assert app.conf.task_acks_late
    assert app.conf.task_retry_on_worker_lost
    assert not app.conf.task_reject_on_worker_lost
    assert app.Task.max_retries == 3
    assert app.Task.default_retry_delay == 3


def test_a_message_comes_back_only_after_its_task_must_have_ended() -> None:
    app = create_app("redis://127.0.0.1:6379/0")

    retried = app.Task.default_retry_delay
    assert app.conf.broker_transport_options["visibility_timeout"] > app.conf.task_time_limit + retried
    assert app.conf.task_soft_time_limit < app.conf.task_time_limit


def test_only_json_is_read_and_no_result_is_kept() -> None:
    app = create_app("redis://127.0.0.1:6379/0")

    assert app.conf.accept_content == ["json"]
    assert app.conf.task_ignore_result
    assert app.conf.result_backend is None


def test_nothing_waits_for_redis_without_an_end() -> None:
    transport = create_app("redis://127.0.0.1:6379/0", socket_timeout_s=0.5).conf.broker_transport_options

    assert transport["socket_timeout"] == 0.5
    assert transport["socket_connect_timeout"] == 1
    assert transport["max_retries"] == 1
    assert create_app("redis://127.0.0.1:6379/0").conf.broker_pool_acquire_timeout == 1.0


def test_every_task_goes_to_a_queue_that_a_worker_reads() -> None:
    app = create_app("redis://127.0.0.1:6379/0")

    read = set(ALL_QUEUES)
    assert set(QUEUES.values()) <= read
    assert {task: app.amqp.router.route({}, task)["queue"].name for task in QUEUES} == dict(QUEUES)
    assert {entry["options"]["queue"] for entry in app.conf.beat_schedule.values()} <= read


def test_a_child_that_starts_slowly_on_a_busy_machine_is_not_killed_for_it() -> None:
    app = create_app("redis://127.0.0.1:6379/0")

    assert app.conf.worker_proc_alive_timeout >= 30  # seconds; Celery's own 4 were a loop of deaths under load


def test_beat_keeps_no_file() -> None:
    app = create_app("redis://127.0.0.1:6379/0")

    assert app.conf.beat_scheduler == "homing.ticker:Ticker"
    assert not issubclass(Ticker, PersistentScheduler)
    assert app.conf.beat_schedule["sweep.due"]["task"] == SWEEP


def test_an_application_made_for_ringing_does_not_become_the_process_own() -> None:
    from celery import _state

    before = _state._tls.current_app
    create_app("redis://127.0.0.1:6379/0")

    assert _state._tls.current_app is before


def test_every_module_of_tasks_is_found() -> None:
    assert {"jobs.tasks.relay", "jobs.tasks.handlers", "reconciler.tasks"} <= set(task_modules())
