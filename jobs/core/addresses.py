"""Which addresses and URLs Homing may be sent to by somebody else: pure rules, each with a name.

An address passes only if it is public unicast, judged by a table of our own: `ipaddress.is_global` answers True for
NAT64, 6to4, fec0:: and multicast, and `is_private` False for carrier-grade NAT, and both change between Python's
releases. An address that carries another one inside (mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP) is
judged by the inner one too, because that is where a packet may end.

A URL passes only if every reader would understand it alike. What browsers, curl and Python read differently
(`127.1`, `0x7f000001`, full-width digits, backslashes, userinfo) is refused instead of being interpreted.

Source: the IANA IPv4 and IPv6 Special-Purpose Address Registries; RFC 4291, 6052, 3056, 4380, 5214, 3879; WHATWG
URL, "ends in a number checker"; Microsoft's documentation of 168.63.129.16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from jobs.core.errors import Unprocessable

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_CHARS = 8192

_RULES_V4: Sequence[tuple[str, Sequence[str]]] = (
    ("unspecified", ("0.0.0.0/8",)),
    ("loopback", ("127.0.0.0/8",)),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    ("link_local", ("169.254.0.0/16",)),
    ("shared", ("100.64.0.0/10",)),  # carrier-grade NAT; some clouds put their metadata there
    ("platform", ("168.63.129.16/32",)),  # Azure's own services answer on this public-looking address
    ("multicast", ("224.0.0.0/4",)),
    ("documentation", ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")),
    ("benchmarking", ("198.18.0.0/15",)),
    ("reserved", ("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4")),
)
_RULES_V6: Sequence[tuple[str, Sequence[str]]] = (
    ("unspecified", ("::/128",)),
    ("loopback", ("::1/128",)),
    ("unique_local", ("fc00::/7",)),
    ("link_local", ("fe80::/10",)),
    ("site_local", ("fec0::/10",)),
    ("multicast", ("ff00::/8",)),
    ("documentation", ("2001:db8::/32", "3fff::/20")),
    ("reserved", ("2001::/23",)),  # protocol assignments: Teredo, ORCHID, benchmarking
)
_UNICAST_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_MAPPED = IPv6Network("::ffff:0:0/96")
#: Prefixes whose last 32 bits are an IPv4 address.
_TAILS = (_MAPPED, IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"), _NAT64)
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)
_32_BITS = 0xFFFFFFFF


def _networks(rules: Iterable[tuple[str, Sequence[str]]]) -> tuple[tuple[str, Network], ...]:
    return tuple((rule, ip_network(text)) for rule, texts in rules for text in texts)


_TABLES = {4: _networks(_RULES_V4), 6: _networks(_RULES_V6)}

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.ASCII)


class AddressRefused(Unprocessable):
    """A URL, or where it leads, is not what Homing may be sent to.

    Attributes:
        rule: Which rule; a short name that stays the same.
    """

    slug = "address-refused"
    title = "The address is not allowed"

    def __init__(self, detail: str = "", *, rule: str = "refused") -> None:
        """Take words for a person; they must not hold the URL's query, which may be a signature."""
        super().__init__(f"{detail} (rule: {rule})")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class SafeUrl:
    """A URL of one reading.

    Attributes:
        scheme: http or https.
        host: In lower case; an address without brackets.
        port: The one to connect to.
        target: Path and query as they were given, byte for byte: a signed URL must not be "normalised".
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a credential belongs to."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def netloc(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole, without a fragment."""
        return f"{self.origin}{self.target}"

    @property
    def address(self) -> Address | None:
        """The host, where it is an address and not a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def address_fault(address: Address, *, allowed: Iterable[Network] = ()) -> str | None:
    """The rule an address breaks, or None where it is public unicast.

    Args:
        address: As a resolver or a URL gave it.
        allowed: Networks an operator opened.
    """
    outward = _outward(address)
    if any(one in network for network in allowed for one in {address, outward} if one.version == network.version):
        return None
    for inner in _inside(address):
        fault = _table_fault(inner)
        if fault is not None:
            return fault
    return _table_fault(outward) or _shape_fault(outward)


def _outward(address: Address) -> Address:
    """The address a packet goes to: a mapped one is IPv4 for the kernel, and NAT64 is for the gateway."""
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & _32_BITS)
    return address


def _inside(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address carries."""
    if not isinstance(address, IPv6Address) or int(address) in (0, 1):
        return
    value = int(address)
    if any(address in network for network in _TAILS) or (value >> 32) & _32_BITS in _ISATAP:
        yield IPv4Address(value & _32_BITS)
    if address in _SIX_TO_FOUR:
        yield IPv4Address((value >> 80) & _32_BITS)
    if address in _TEREDO:
        yield IPv4Address((value & _32_BITS) ^ _32_BITS)
        yield IPv4Address((value >> 64) & _32_BITS)


def _table_fault(address: Address) -> str | None:
    return next((rule for rule, network in _TABLES[address.version] if address in network), None)


def _shape_fault(address: Address) -> str | None:
    return "reserved" if isinstance(address, IPv6Address) and address not in _UNICAST_V6 else None


def read_url(url: str, *, https_only: bool = False) -> SafeUrl:
    """Reads a URL somebody else wrote.

    Args:
        url: The text, as it came.
        https_only: http is refused too.

    Raises:
        AddressRefused: It is not http(s), or readers could disagree about it.
    """
    _refuse_characters(url)
    match = _URL.fullmatch(_ascii(url))
    if match is None:
        raise AddressRefused("the URL must begin with https:// or http://", rule="scheme")
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise AddressRefused("only http and https are spoken", rule="scheme")
    if https_only and scheme != "https":
        raise AddressRefused("https is required", rule="https_required")
    host, port = _authority(match["authority"])
    rest = match["rest"]
    target = rest if rest.startswith("/") else f"/{rest}"
    return SafeUrl(scheme, _host(host), _port(port, scheme), target)


def _refuse_characters(url: str) -> None:
    if len(url) > MAX_URL_CHARS:
        raise AddressRefused(f"the URL is longer than {MAX_URL_CHARS} characters", rule="too_long")
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in url):
        raise AddressRefused("the URL has a control character", rule="control_character")
    if any(char.isspace() for char in url):
        raise AddressRefused("the URL has a blank; write %20", rule="blank")
    if "\\" in url:
        raise AddressRefused("the URL has a backslash; write %5C", rule="backslash")


def _ascii(url: str) -> str:
    """Non-ASCII letters of path and query as browsers send them; in a host's name they stay, and are refused."""
    head, separator, tail = url.partition("://")
    cut = min((tail.find(mark) for mark in "/?#" if mark in tail), default=len(tail))
    rest = "".join(
        char if char.isascii() else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
        for char in tail[cut:]
    )
    return f"{head}{separator}{tail[:cut]}{rest}"


def _authority(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        raise AddressRefused("the URL carries a user or a password", rule="userinfo")
    if not authority.isascii():
        raise AddressRefused("the host has letters or digits outside ASCII; write it as xn--…", rule="non_ascii_host")
    if authority.startswith("["):
        host, bracket, port = authority.partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise AddressRefused("the host's brackets do not match", rule="bad_host")
        return f"{host}]", port[1:] if port else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _port(text: str | None, scheme: str) -> int:
    if text is None:
        return DEFAULT_PORTS[scheme]
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise AddressRefused("the port must be a number from 1 to 65535", rule="bad_port")
    return int(text)


def _host(text: str) -> str:
    host = text.lower()
    if host.startswith("["):
        return _ipv6_host(host[1:-1])
    if not host:
        raise AddressRefused("the URL names no host", rule="bad_host")
    if host.endswith("."):
        raise AddressRefused("the host ends in a dot", rule="trailing_dot")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4_host(host)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("the host is no name", rule="bad_host")
    return host


def _ipv4_host(host: str) -> str:
    """Four decimal numbers and nothing else: `127.1`, `0177.0.0.1` and `2130706433` are the same place in disguise."""
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise AddressRefused("an address is written as four decimal numbers", rule="disguised_address") from None


def _ipv6_host(host: str) -> str:
    try:
        if "%" in host:
            raise ValueError
        return str(IPv6Address(host))
    except ValueError:
        raise AddressRefused("the host in brackets is no IPv6 address", rule="bad_host") from None
