"""The guard turns one crash into the error that celery survives, and touches nothing else."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import pytest
from kombu.transport.redis import Channel
from redis.exceptions import ConnectionError as RedisConnectionError

from homing import celery_guard


@pytest.fixture(autouse=True)
def _unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(Channel._connparams, "__wrapped__", Channel._connparams)
    monkeypatch.setattr(Channel, "_connparams", original)


def _detached(connection: object) -> Channel:
    channel = Channel.__new__(Channel)
    channel.connection = connection
    return channel


@pytest.mark.parametrize("connection", [None, SimpleNamespace(client=None)])
def test_a_detached_channel_answers_with_a_connection_error(connection: object) -> None:
    assert celery_guard.install()

    with pytest.raises(RedisConnectionError):
        _detached(connection)._connparams()


def test_without_the_guard_kombu_stumbles_over_none() -> None:
    """The day this fails, kombu has mended it, and the guard can go."""
    with pytest.raises(AttributeError):
        _detached(SimpleNamespace(client=None))._connparams()


def test_installing_twice_wraps_once() -> None:
    celery_guard.install()
    once = Channel._connparams

    celery_guard.install()

    assert Channel._connparams is once


def test_another_kombu_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = Channel._connparams
    monkeypatch.setattr(celery_guard, "version", lambda _name: "5.7.1")

    assert not celery_guard.install()
    assert Channel._connparams is untouched


def test_the_installed_kombu_is_the_guarded_one() -> None:
    """An upgrade must look at the guard again."""
    assert version("kombu") == celery_guard.GUARDED_VERSION
