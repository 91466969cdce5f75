"""HMAC over the body: known vectors, the spellings senders use, and every way to get it wrong."""

from __future__ import annotations

import base64

import pytest

from jobs.core.errors import Malformed, Mismatch, Missing, SignatureError
from jobs.core.signatures import SchemeOptions, Verified, parse_secrets, sign, verify
from tests.vectors import ALL, B1, B4, NOW, TEXT_SECRET, Vector

B1_BASE64 = base64.b64encode(bytes.fromhex(B1.h)).decode()
SHOPIFY = SchemeOptions(header="X-Shopify-Hmac-SHA256", prefix="", encoding="base64")
DEFAULTS = SchemeOptions()


def check(
    header: str | None,
    body: bytes = B1.body,
    *,
    secrets: tuple[str, ...] = (TEXT_SECRET,),
    options: SchemeOptions = DEFAULTS,
    **more: str,
) -> Verified:
    headers = {} if header is None else {(options.header or "X-Signature").lower(): header}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    parsed = parse_secrets("hmac-body", secrets)
    return verify("hmac-body", headers=headers, body=body, secrets=parsed, now=NOW, options=options)


@pytest.mark.parametrize("vector", ALL, ids=lambda vector: vector.name)
def test_an_authentic_body_is_proven_byte_for_byte(vector: Vector) -> None:
    """F01 (c), F03: the form body too, of which a form parser would leave nothing."""
    assert check(vector.hmac_body["x-signature"], vector.body) == Verified(0, None, None)


def test_the_published_vector_is_signed_alike() -> None:
    options = SchemeOptions(header="X-Hub-Signature-256", delivery_id_header="X-GitHub-Delivery")

    headers = sign(
        "hmac-body",
        secret="It's a Secret to Everybody",
        body=b"Hello, World!",
        delivery_id="d-1",
        at=NOW,
        options=options,
    )

    assert headers == {
        "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        "X-GitHub-Delivery": "d-1",
    }


@pytest.mark.parametrize(
    "header",
    [
        f"sha256={B1.h}",
        f"sha256= {B1.h}",
        f"SHA256={B1.h.upper()}",
        f" sha256={B1.h} ",
        f"sha256=\t{B1.h}",
    ],
)
def test_blanks_and_case_do_not_matter(header: str) -> None:
    """F06."""
    assert check(header).secret_index == 0


@pytest.mark.parametrize(
    "header",
    [
        f"sha256={B1_BASE64}",
        f"sha256={B1_BASE64.rstrip('=')}",
        f"sha256={B1.h[:-1]}",
        f"sha256={B1.h}0",
        f"sha256={B1.h[:10]} {B1.h[10:]}",
        f"sha256=0x{B1.h}",
    ],
)
def test_another_encoding_or_length_is_refused(header: str) -> None:
    """F06: each sender declares one encoding."""
    with pytest.raises(Mismatch):
        check(header)


def test_base64_can_be_declared_and_is_then_the_only_one() -> None:
    """F06."""
    assert check(B1_BASE64, options=SHOPIFY).secret_index == 0
    for wrong in (B1.h, B1_BASE64.rstrip("="), B1_BASE64.swapcase(), B1_BASE64 + "="):
        with pytest.raises(Mismatch):
            check(wrong, options=SHOPIFY)


@pytest.mark.parametrize("header", [None, "", " "])
def test_a_missing_or_empty_header_is_refused(header: str | None) -> None:
    """F03."""
    with pytest.raises(Missing):
        check(header)


@pytest.mark.parametrize("header", ["sha256=", "sha256= ", f"sha1={'a' * 40}", B1.h, "x" * 8192, "sha25"])
def test_a_malformed_header_is_refused(header: str) -> None:
    """F03."""
    with pytest.raises(Malformed):
        check(header)


@pytest.mark.parametrize("header", ["sha256=\xe9\xff", "\xe9", f"sha256={B1.h}\xff", "sha256=\u212a", "\udc80"])
def test_a_byte_beyond_ascii_is_refused_and_breaks_nothing(header: str) -> None:
    """F02: the bad byte may follow a good prefix."""
    with pytest.raises(SignatureError):
        check(header)


def test_another_body_under_the_same_signature_is_refused() -> None:
    with pytest.raises(Mismatch):
        check(B1.hmac_body["x-signature"], B4.body)


def test_the_secret_that_matched_is_named() -> None:
    assert check(f"sha256={B1.h}", secrets=("another-secret-text", TEXT_SECRET)).secret_index == 1


def test_a_delivery_id_is_read_where_the_sender_puts_it() -> None:
    options = SchemeOptions(delivery_id_header="X-Delivery")

    assert check(f"sha256={B1.h}", options=options, x_delivery="d-1").delivery_id == "d-1"
    assert check(f"sha256={B1.h}", options=options).delivery_id is None
    assert check(f"sha256={B1.h}", options=options, x_delivery="\xe9").delivery_id is None
