"""Who may be called: the rules by name, held to the corpus ``tests/fixtures/ssrf.json``."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.addresses import AddressRefused, address_fault, read_url


@pytest.mark.parametrize(
    "target",
    ["/a%2Fb%7Ec?sig=A%2BB%2F%3D&x=%7E", "/k/a+b.mp4?s=1", "/k/a%20b.mp4?s=1", "/a/../b?s=1", "/", "/?", "/a//b;c='d'"],
)
def test_a_signed_target_keeps_every_byte(target: str) -> None:
    """F43."""
    assert read_url(f"https://files.example{target}").target == target


@pytest.mark.parametrize(
    ("url", "again"),
    [
        ("HTTP://Files.Example:80", "http://files.example/"),
        ("https://files.example:8443?x=1#y", "https://files.example:8443/?x=1"),
        ("http://[2606:4700:0:0:0:0:0:1111]:8080/x", "http://[2606:4700::1111]:8080/x"),
        ("https://files.example/ü", "https://files.example/%C3%BC"),
    ],
)
def test_a_url_is_written_again_with_its_host_and_port_in_one_form(url: str, again: str) -> None:
    assert read_url(url).url == again


def test_a_refusal_does_not_repeat_the_url() -> None:
    with pytest.raises(AddressRefused) as refusal:
        read_url("http://user:hunter2@files.example/?sig=secret")

    assert "hunter2" not in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert refusal.value.status == 422


@given(address=st.ip_addresses(v=4))
def test_an_address_carried_inside_another_is_judged_like_itself(address: object) -> None:
    inner = ip_address(str(address))
    fault = address_fault(inner)

    for outer in (f"::ffff:{inner}", f"64:ff9b::{inner}"):
        assert address_fault(ip_address(outer)) == fault
    for outer in (f"2002:{int(inner) >> 16:x}:{int(inner) & 0xFFFF:x}::1", f"2a00::5efe:{inner}"):
        assert address_fault(ip_address(outer)) == fault


@given(address=st.ip_addresses(v=4))
def test_what_python_calls_private_is_never_allowed(address: object) -> None:
    judged = ip_address(str(address))

    assert not (judged.is_private and address_fault(judged) is None)


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://files.example/{text}"):
        with suppress(AddressRefused):
            parsed = read_url(url)
            assert read_url(parsed.url) == parsed
