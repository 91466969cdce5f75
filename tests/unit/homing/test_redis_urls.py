"""One address, read alike by Celery's transport and by our own client."""

from __future__ import annotations

import ssl

import pytest

from homing.redis_urls import celery_address, connect


@pytest.mark.parametrize(
    ("url", "broker_url"),
    [
        ("redis://:pass@cache:6380/2", "redis://:pass@cache:6380/2"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=3", "redis+socket:///run/redis.sock?virtual_host=3"),
        ("unix://:pass@/run/redis.sock", "redis+socket://:pass@/run/redis.sock?virtual_host=0"),
        ("sentinel://s1:26380/1", "sentinel://s1:26380/1"),
        (
            "sentinel://:p%40ss@s1/0?master_name=main&sentinels=s2:26380,s3",
            "sentinel://:p%40ss@s1:26379/0;sentinel://:p%40ss@s2:26380/0;sentinel://:p%40ss@s3:26379/0",
        ),
    ],
)
def test_an_address_is_translated_for_celery(url: str, broker_url: str) -> None:
    assert celery_address(url).broker_url == broker_url


def test_the_sentinels_master_is_named() -> None:
    assert celery_address("sentinel://s1/0?master_name=main").transport_options == {"master_name": "main"}
    assert celery_address("sentinel://s1").transport_options == {"master_name": "mymaster"}


def test_an_encrypted_connection_asks_who_is_at_the_other_end() -> None:
    assert celery_address("rediss://cache:6379/0").use_ssl == {"ssl_cert_reqs": ssl.CERT_REQUIRED}
    assert celery_address("rediss://cache:6379/0?ssl_cert_reqs=none").use_ssl is None


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(celery_address("redis://:secret@cache/0"))


@pytest.mark.parametrize(
    "url", ["redis://cache/0", "rediss://cache/0", "unix:///run/redis.sock", "sentinel://s1,s2/0?master_name=main"]
)
def test_our_own_client_gives_up_after_one_short_try(url: str) -> None:
    options = connect(url).connection_pool.connection_kwargs

    assert options["socket_timeout"] == 1.0
    assert options["retry"]._retries == 0
