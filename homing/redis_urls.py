"""One Redis address, as an operator writes it, for the two that read it: Celery's transport and our own client.

``redis://``, ``rediss://`` and ``unix:///path?db=0`` as redis-py reads them; and
``sentinel://[:password@]host:26379/0?master_name=mymaster&sentinels=host2:26379,host3:26379``.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

_CLIENT_TIMEOUT_S = 1.0
_SENTINEL_PORT = 26379
_DEFAULT_MASTER = "mymaster"


@dataclass(frozen=True, slots=True)
class CeleryAddress:
    """An address in Celery's terms.

    Attributes:
        broker_url: For ``broker_url``; holds the password.
        transport_options: To be added to the transport's.
        use_ssl: For ``broker_use_ssl``.
    """

    broker_url: str = field(repr=False)
    transport_options: dict[str, Any] = field(default_factory=dict)
    use_ssl: dict[str, Any] | None = None


def celery_address(url: str) -> CeleryAddress:
    """Translates an address for Celery."""
    parts = urlsplit(url)
    match parts.scheme:
        case "unix":
            return CeleryAddress(_socket_url(parts))
        case "sentinel":
            return _sentinel_address(parts)
        case "rediss" if "ssl_cert_reqs" not in parts.query:
            # Left to itself, kombu would encrypt without asking who is at the other end.
            return CeleryAddress(url, use_ssl={"ssl_cert_reqs": ssl.CERT_REQUIRED})
        case _:
            return CeleryAddress(url)


def connect(url: str, *, timeout_s: float = _CLIENT_TIMEOUT_S) -> redis.Redis:
    """A client that gives up after one short try. Its defaults would keep a sweep waiting for four seconds."""
    options: dict[str, Any] = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
    }
    parts = urlsplit(url)
    if parts.scheme != "sentinel":
        return redis.Redis.from_url(url, **options)
    sentinels: Any = Sentinel(_sentinels(parts), sentinel_kwargs=options)  # type: ignore[no-untyped-call] # redis-py ships no types here
    master = sentinels.master_for(_master(parts), password=_password(parts), db=_database(parts), **options)
    assert isinstance(master, redis.Redis)
    return master


def _socket_url(parts: SplitResult) -> str:
    database = parse_qs(parts.query).get("db", ["0"])[0]
    credentials = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"redis+socket://{credentials}{parts.path}?virtual_host={database}"


def _sentinel_address(parts: SplitResult) -> CeleryAddress:
    password = f":{quote(found, safe='')}@" if (found := _password(parts)) else ""
    urls = (f"sentinel://{password}{host}:{port}/{_database(parts)}" for host, port in _sentinels(parts))
    return CeleryAddress(";".join(urls), {"master_name": _master(parts)})


def _sentinels(parts: SplitResult) -> list[tuple[str, int]]:
    more = parse_qs(parts.query).get("sentinels", [""])[0].split(",")
    named = [(parts.hostname or "127.0.0.1", parts.port or _SENTINEL_PORT)]
    for address in filter(None, more):
        host, _, port = address.partition(":")
        named.append((host, int(port or _SENTINEL_PORT)))
    return named


def _master(parts: SplitResult) -> str:
    return parse_qs(parts.query).get("master_name", [_DEFAULT_MASTER])[0]


def _database(parts: SplitResult) -> int:
    return int(parts.path.strip("/") or 0)


def _password(parts: SplitResult) -> str | None:
    return unquote(parts.password) if parts.password else None
