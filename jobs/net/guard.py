"""The address guard: the one place that says whether a URL somebody else gave may be called.

Endpoints, callback URLs, result files, redirects and links in a provider's answers pass here. The name is resolved
once; *every* address it has must be public; and what is returned holds those addresses, so that the connection is
made to what was checked and not to what a second look-up says (``jobs.net.guarded``).

Libraries looked at before this was written: ``requests-hardened`` 1.3 judges only the first address of a name and
knows neither compatible, translated, ISATAP nor fec0:: addresses nor Azure's 168.63.129.16; ``advocate`` is no longer
kept; ``microsoft-antissrf`` 1.0 is sound on addresses, but its look-up has no bound, only the first address is
dialled, the URL is read as leniently as requests reads it, and requests rewrites signed targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TypeAlias
from urllib.parse import urljoin

from jobs.core.addresses import Address, AddressRefused, Network, SafeUrl, address_fault, read_url
from jobs.net.exchange import look_up
from jobs.net.http import NotSent

#: The addresses of a host and port, looked up within seconds; raises ``OSError``.
Resolve: TypeAlias = Callable[[str, int, float], Sequence[str]]

RESOLVE_WITHIN_S = 3.0


class Unresolved(NotSent):
    """The name has no address, or none in time: perhaps later."""

    slug = "unresolved"


@dataclass(frozen=True, slots=True)
class CheckedTarget:
    """A URL that may be called, and the addresses it may be called at."""

    url: SafeUrl
    addresses: tuple[str, ...]


def resolve(host: str, port: int, within_s: float) -> Sequence[str]:
    """The system's resolver, bounded.

    Raises:
        OSError: The name has no address, or none in time.
    """
    return [str(found[4][0]).partition("%")[0] for found in look_up(host, port, within_s)]


@dataclass(frozen=True, slots=True)
class Guard:
    """Judges URLs. Stateless; one serves all threads.

    Attributes:
        lifted: Private addresses are allowed (development only); a URL must still be of one reading.
        https_only: http is refused.
        resolve: How names become addresses.
        within_s: Longest look-up.
    """

    lifted: bool = False
    https_only: bool = False
    resolve: Resolve = field(default=resolve)
    within_s: float = RESOLVE_WITHIN_S

    def read(self, url: str) -> SafeUrl:
        """The rules that need no look-up.

        Raises:
            AddressRefused: It breaks one; ``rule`` names it.
        """
        parsed = read_url(url, https_only=self.https_only)
        if parsed.address is not None:
            self._judge(parsed, [parsed.address], allowed=())
        return parsed

    def check(self, url: str, *, allowed: Iterable[Network] = ()) -> CheckedTarget:
        """Reads, resolves once and judges.

        Args:
            url: As somebody gave it.
            allowed: Networks that may be used besides public addresses.

        Raises:
            AddressRefused: Not allowed (422); ``rule`` names why.
            Unresolved: The name has no address now.
        """
        parsed = read_url(url, https_only=self.https_only)
        addresses = self._addresses(parsed)
        self._judge(parsed, addresses, allowed=tuple(allowed))
        return CheckedTarget(parsed, tuple(str(address) for address in addresses))

    def follow(self, source: SafeUrl, location: str, *, allowed: Iterable[Network] = ()) -> CheckedTarget:
        """Judges where a redirect leads, as strictly as the first URL.

        Raises:
            AddressRefused: Not allowed, or from https to http.
            Unresolved: The name has no address now.
        """
        target = self.check(_absolute(source, location), allowed=allowed)
        if source.scheme == "https" and target.url.scheme == "http":
            raise AddressRefused("a redirect leads from https to http", rule="downgrade")
        return target

    def _addresses(self, url: SafeUrl) -> list[Address]:
        if url.address is not None:
            return [url.address]
        try:
            found = self.resolve(url.host, url.port, self.within_s)
        except OSError as error:
            raise Unresolved(f"the name {url.host} was not resolved: {error}") from error
        if not found:
            raise Unresolved(f"the name {url.host} has no address")
        return [ip_address(text) for text in dict.fromkeys(found)]

    def _judge(self, url: SafeUrl, addresses: Iterable[Address], *, allowed: Iterable[Network]) -> None:
        if self.lifted:
            return
        for address in addresses:
            fault = address_fault(address, allowed=allowed)
            if fault is not None:
                raise AddressRefused(f"{url.host} is not a public address", rule=fault)


def _absolute(source: SafeUrl, location: str) -> str:
    """Where a Location header points. Absolute and rooted ones keep every byte; only a relative one is joined."""
    if location.startswith("//"):
        return f"{source.scheme}:{location}"
    if location.startswith("/"):
        return f"{source.origin}{location}"
    return location if ":" in location.partition("/")[0] else urljoin(source.url, location)


__all__ = ["AddressRefused", "CheckedTarget", "Guard", "Resolve", "Unresolved", "resolve"]
