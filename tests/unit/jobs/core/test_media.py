"""What a file is, by its bytes."""

from __future__ import annotations

import io
import wave

import pytest
from PIL import Image

from jobs.core.media import end_fault, judge_type, sniff


def picture(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 40), "red").save(out, kind)
    return out.getvalue()


def sound() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0" * 1600)
    return out.getvalue()


def box(name: bytes, content: bytes = b"") -> bytes:
    return (len(content) + 8).to_bytes(4, "big") + name + content


MP4 = box(b"ftyp", b"isom\0\0\2\0isomiso2") + box(b"mdat", b"x" * 100) + box(b"moov", b"y" * 50)
FILES = {
    "image/png": picture("PNG"),
    "image/jpeg": picture("JPEG"),
    "image/gif": picture("GIF"),
    "image/webp": picture("WEBP"),
    "audio/wav": sound(),
    "video/mp4": MP4,
}


def ends_well(content: bytes, content_type: str) -> bool:
    return end_fault(io.BytesIO(content), size=len(content), content_type=content_type) is None


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_known_by_its_first_bytes_and_its_end(name: str) -> None:
    assert sniff(FILES[name][:512]) == name
    assert ends_well(FILES[name], name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_file_that_was_cut_has_no_end(name: str, share: float) -> None:
    """F38: a body without a length, cut, raises nothing by itself."""
    content = FILES[name]

    assert not ends_well(content[: int(len(content) * share)], name)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b'{"error":"model deprecated"}', "application/json"),
        (b"  <!DOCTYPE html><p>", "text/html"),
        (b"Not Found", "text/plain"),
        ("ä".encode()[:1], "text/plain"),
        (b"<svg xmlns=''>", "image/svg+xml"),
        (b"PK\x03\x04\x14\0", "application/zip"),
        (b"\x01\x00\xff\xfe", None),
    ],
)
def test_text_and_unknown_bytes_are_told_apart(head: bytes, name: str | None) -> None:
    assert sniff(head) == name


@pytest.mark.parametrize(
    "head", [b'{"error":"model deprecated"}', b"<!doctype html><p>sorry", b"Not Found", b"\x01\x02\x00"]
)
@pytest.mark.parametrize("claim", ["image/png", "video/mp4", "audio/mpeg"])
def test_a_200_is_not_a_picture(head: bytes, claim: str) -> None:
    """F37."""
    assert judge_type(head, wanted=(), said=(claim,))[1] is not None
    assert judge_type(head, wanted=(), said=(None, "application/octet-stream", claim))[1] is not None


@pytest.mark.parametrize(
    ("content", "said", "stored"),
    [
        (FILES["image/png"], ("application/octet-stream",), "image/png"),
        (FILES["image/jpeg"], (None, None, "image/png"), "image/jpeg"),
        (MP4, ("video/mp4",), "video/mp4"),
        (b"a,b\n1,2\n", ("text/csv",), "text/csv"),
        (b'{"a":1}\n{"a":2}\n', ("application/jsonl",), "application/jsonl"),
        (b"PK\x03\x04", ("application/vnd.ms-excel",), "application/vnd.ms-excel"),
        (b"\x01\x02\x00weights", ("application/x-safetensors",), "application/x-safetensors"),
        (b"\x01\x02\x00weights", (None,), "application/octet-stream"),
    ],
)
def test_a_file_is_stored_under_its_true_type(content: bytes, said: tuple[str | None, ...], stored: str) -> None:
    """F37: a real PNG sent as octet-stream, a JPEG named .png."""
    assert judge_type(content[:512], wanted=(), said=said) == (stored, None)


def test_an_operator_may_want_only_some_types() -> None:
    assert judge_type(FILES["image/jpeg"], wanted=("image/*",), said=())[1] is None
    assert judge_type(FILES["image/jpeg"], wanted=("image/png", "video/*"), said=("image/png",))[1] is not None
