"""The suite's own services are real, and do what the tests believe of them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.services.postgresql import PostgresService
from tests.services.redis import RedisService


def test_redis_keeps_what_it_acknowledged_over_a_kill(tmp_path: Path) -> None:
    service = RedisService.start_in(tmp_path)
    with service.client() as client:
        client.set("kept", "yes")

    service.kill()
    service.start()

    with service.client() as client:
        assert client.get("kept") == b"yes"
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    service.kill()


def test_redis_is_closed_to_those_without_its_password(redis_service: RedisService) -> None:
    import redis

    stranger = redis.Redis(host="127.0.0.1", port=redis_service.place.port)
    with stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()


def test_each_postgresql_database_is_a_clone_of_its_template(postgres_service: PostgresService) -> None:
    postgres_service.create("cloned_from")
    address = postgres_service.url("cloned_from").replace("+psycopg", "")
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE marker (id int)")

    postgres_service.create("clone", template="cloned_from")

    with psycopg.connect(address.replace("cloned_from", "clone")) as connection:
        assert connection.execute("SELECT count(*) FROM marker").fetchone() == (0,)
    postgres_service.drop("clone")
    postgres_service.drop("cloned_from")
