"""What a file is, by its bytes: its type from the beginning, its completeness from the end. Pure.

A table of our own, because the libraries guess: ``puremagic`` 1.30 calls any zip a Word document, ``filetype`` 1.2 is
no longer kept, and neither looks at the end, which is where a download that was cut short gives itself away.

Source: PNG (W3C), JPEG (ITU T.81), GIF89a, RIFF, ISO 14496-12 boxes, Matroska/EBML, PDF 32000, APPNOTE (zip), glTF 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import BinaryIO

HEAD_BYTES = 512
BINARY = "application/octet-stream"
_MEDIA = ("image", "video", "audio")

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"BM", "image/bmp"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"glTF", "model/gltf-binary"),
)
#: Names people use for the same type, and containers that hold sound or pictures alike.
_ALIASES = {
    "image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/mp3": "audio/mpeg",
    "application/x-gzip": "application/gzip", "audio/webm": "video/webm", "video/x-matroska": "video/webm",
    "video/ogg": "audio/ogg", "audio/x-m4a": "audio/mp4", "application/x-zip-compressed": "application/zip",
}  # fmt: skip
_BOXES = {"video/mp4": "video", "audio/mp4": "audio", "video/quicktime": "video", "image/avif": "image"}


def plain_type(text: str | None) -> str | None:
    """A Content-Type without its parameters, under its usual name; None where it says nothing."""
    word = (text or "").partition(";")[0].strip().lower()
    known = _ALIASES.get(word, word)
    return None if known in ("", BINARY, "binary/octet-stream") else known


def sniff(head: bytes) -> str | None:
    """The type a file's first bytes show; text is told apart as HTML, JSON or plain. None: nothing known."""
    for offset, magic, name in _MAGIC:
        if head[offset : offset + len(magic)] == magic and (offset != 8 or head[:4] == b"RIFF"):
            return name
    return _text_type(head)


def _text_type(head: bytes) -> str | None:
    if b"\0" in head:
        return None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # not merely a letter cut in two
            return None
        text = head[: error.start].decode("utf-8")
    begins = text.lstrip("\ufeff \t\r\n").lower()
    if begins.startswith(("<!doctype html", "<html", "<head", "<body")):
        return "text/html"
    if begins.startswith("<svg") or (begins.startswith("<?xml") and "<svg" in begins):
        return "image/svg+xml"
    return "application/json" if begins.startswith(("{", "[")) else "text/plain"


def judge_type(head: bytes, *, wanted: Iterable[str], said: Iterable[str | None]) -> tuple[str, str | None]:
    """The type to store a file under, and the fault where its bytes are not what they should be.

    Args:
        head: Its first bytes.
        wanted: Patterns an operator allows (`image/*`); empty: whatever was said.
        said: What the provider, the answer's header and the URL's ending call it, the most trusted first.
    """
    found = sniff(head)
    claim = next((word for word in map(plain_type, said) if word), None)
    true = _stored_type(found, claim)
    patterns = tuple(wanted)
    if patterns and not any(fnmatchcase(true, pattern) for pattern in patterns):
        return true, f"it is {true}, and only {', '.join(patterns)} may be stored"
    if claim is not None and not _may_be(found, claim):
        return true, f"it was said to be {claim} and is {found or 'nothing known'}"
    return true, None


def _stored_type(found: str | None, claim: str | None) -> str:
    """Text has no signature of its own, so a claim such as CSV stands; bytes that have one say themselves."""
    if found is None:
        return BINARY if claim is None or claim.partition("/")[0] in _MEDIA else claim
    if found in ("text/plain", "application/json") and claim is not None and _is_texty(claim):
        return claim
    if found == "application/zip" and claim is not None and claim.startswith("application/"):
        return claim
    return found


def _may_be(found: str | None, claim: str) -> bool:
    kind = claim.partition("/")[0]
    if kind in _MEDIA:
        return found is not None and kind in (found.partition("/")[0], _alike(found))
    if found == "text/html":
        return claim in ("text/html", "application/xhtml+xml", "text/plain")
    if _is_texty(claim):
        return found in ("text/plain", "application/json", "image/svg+xml")
    if claim in _MAGIC_TYPES:
        return found == claim
    return found is None or not _is_texty(found)


def _alike(found: str) -> str | None:
    """Matroska, Ogg and MP4 hold sound or pictures alike."""
    return {"video/webm": "audio", "audio/ogg": "video", "video/mp4": "audio", "audio/mp4": "video"}.get(found)


def _is_texty(name: str) -> bool:
    return name.startswith("text/") or name.endswith(("json", "xml", "jsonl", "ndjson", "yaml", "csv", "x-subrip"))


_MAGIC_TYPES = frozenset(name for _, _, name in _MAGIC)


def end_fault(file: BinaryIO, *, size: int, content_type: str) -> str | None:
    """Why a file cannot be whole, or None where its format has no end to look at or the end is there."""
    if content_type in _BOXES:
        return _box_fault(file, size)
    if content_type in ("image/webp", "audio/wav"):
        return _riff_fault(file, size)
    tail_size, marks = _ENDS.get(content_type, (0, ()))
    if not marks:
        return None
    file.seek(max(0, size - tail_size))
    tail = file.read(tail_size)
    return None if any(mark in tail for mark in marks) else f"it has not the end of {content_type}"


_ENDS: dict[str, tuple[int, tuple[bytes, ...]]] = {
    "image/png": (12, (b"IEND\xaeB`\x82",)),
    "image/jpeg": (4096, (b"\xff\xd9",)),
    "image/gif": (2, (b";",)),
    "application/pdf": (2048, (b"%%EOF",)),
    "application/zip": (66_000, (b"PK\x05\x06",)),
    "image/svg+xml": (256, (b"</svg>",)),
}


def _riff_fault(file: BinaryIO, size: int) -> str | None:
    file.seek(4)
    said = int.from_bytes(file.read(4), "little") + 8
    # A stream of unknown length says 2^32 - 1.
    return f"it says {said} bytes and has {size}" if size < said < 0xFFFFFFFF else None


def _box_fault(file: BinaryIO, size: int) -> str | None:
    """Boxes follow one another to the very end, and one of them says what the others hold."""
    at, names = 0, set()
    while at < size:
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            return "its last box is cut"
        length, name = struct.unpack(">I4s", head[:8])
        if length == 1 and len(head) == 16:
            length = int.from_bytes(head[8:], "big")
        length = size - at if length == 0 else length
        names.add(name)
        at += max(length, 8)
    if at > size:
        return "its last box is cut"
    return None if names & {b"moov", b"moof", b"meta"} else "it has no box that describes it"
