"""Addresses in a configuration: each check says what to write instead, and quotes no password."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

_REDIS_SCHEMES = ("redis", "rediss", "unix", "sentinel")


def check_web_url(url: str) -> str:
    """Return an http(s) address without a slash at its end.

    Raises:
        ValueError: what to write instead.
    """
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is not an http(s) address; write one like https://api.example.com/v1")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user or password; credentials have settings of their own")
    if parts.query or parts.fragment:
        raise ValueError("holds a query or fragment; write it without")
    return url.rstrip("/")


def check_database_url(url: str) -> str:
    """Return the address of a database we speak to.

    Raises:
        ValueError: what to write instead.
    """
    scheme = url.partition(":")[0]
    if scheme in ("postgres", "postgresql"):
        raise ValueError("begins with another driver's name; begin it with postgresql+psycopg://")
    if scheme == "sqlite" and not url.startswith("sqlite:///"):
        raise ValueError("has too few slashes; write sqlite:///relative.db or sqlite:////absolute/path.db")
    if scheme not in ("sqlite", "postgresql+psycopg"):
        raise ValueError("is no database we know; write sqlite:///… or postgresql+psycopg://…")
    return url


def check_redis_url(url: str) -> str:
    """Return the address of a Redis.

    Raises:
        ValueError: what to write instead.
    """
    if _split(url).scheme not in _REDIS_SCHEMES:
        raise ValueError("is no Redis address; begin it with redis://, rediss://, unix:// or sentinel://")
    return url


def check_store_url(url: str) -> str:
    """Return the address of a store that an installed package speaks to.

    Raises:
        ValueError: what to write, or to install.
    """
    import fsspec  # noqa: PLC0415 - a tenth of a second, which commands and clients need not wait for

    protocol = url.partition("://")[0]
    if "://" not in url or protocol not in fsspec.available_protocols():
        raise ValueError("is no store we know; write file:///absolute/path or s3://bucket/prefix")
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise ValueError(f"needs a package that is not installed: {error}") from None
    return url.rstrip("/")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read only to have it checked
    except ValueError:
        raise ValueError("is not an address (a bracket, a port or a character is wrong)") from None
    if any(char.isspace() or not char.isprintable() for char in url):
        raise ValueError("holds a blank or a control character")
    return parts
