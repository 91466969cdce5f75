"""Finding result files in answers whose shape depends on the model that made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.core.observations import Json, Link

# A result is somebody else's JSON: bounded in depth and in files.
_MAX_DEPTH = 12
_MAX_LINKS = 1000
_MAX_URL_CHARS = 8000


def urls_in(value: Json, *, expires_at: str | None = None) -> tuple[Link, ...]:
    """Every text that is a web address, wherever it stands; each once, in order.

    Args:
        value: An output of any shape.
        expires_at: When the provider deletes them, where it says so.
    """
    found = dict.fromkeys(text for text in _texts(value, 0) if _is_web_address(text))
    return tuple(Link(url, expires_at=expires_at) for url in list(found)[:_MAX_LINKS])


def files_in(value: Json) -> tuple[Link, ...]:
    """Every object with a ``url``, wherever it stands, with what it says of its ``content_type`` and ``file_size``."""
    found = {str(item["url"]): _link(item) for item in _objects(value, 0) if _is_web_address(item.get("url"))}
    return tuple(found.values())[:_MAX_LINKS]


def _link(item: Mapping[str, Json]) -> Link:
    size, kind = item.get("file_size"), item.get("content_type")
    return Link(
        url=str(item["url"]),
        content_type=kind[:255] if isinstance(kind, str) else None,
        size_bytes=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def _texts(value: Json, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH:
        for item in _items(value):
            yield from _texts(item, depth + 1)


def _objects(value: Json, depth: int) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, Mapping):
        yield value
    if depth < _MAX_DEPTH:
        for item in _items(value):
            yield from _objects(item, depth + 1)


def _items(value: Json) -> Sequence[Json]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _is_web_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://")) and len(value) <= _MAX_URL_CHARS
