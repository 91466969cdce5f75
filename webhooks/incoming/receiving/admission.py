"""Who is let in: the signature is judged over the bytes on the wire, and what is authentic becomes a row.

The door uses it for a request that has just come; a recheck, for one that was refused before, as of when it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.core.errors import Mismatch, Missing, Unavailable
from jobs.core.signatures import SCHEMES, Binding, Secret, Verified, verify
from jobs.ids import new_id
from jobs.services.runtime import ProviderEntry
from webhooks.incoming.credentials import as_kept
from webhooks.incoming.events import NewEvent, Origin, new_event
from webhooks.incoming.reading import read_event
from webhooks.incoming.receiving.key_sets import KeySets

_NO_SECRET_RETRY = timedelta(seconds=60)  # a person has to configure it


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, read whole.

    Attributes:
        token: Of the URL it was sent to.
        target: Path and query, as called.
        headers: By lower-case name; values as latin-1 text, any byte possible.
        raw: The body's bytes on the wire.
    """

    token: str | None
    target: str
    headers: Mapping[str, str]
    raw: bytes


class Admission:
    """Proves requests. Thread-safe."""

    def __init__(
        self,
        key_sets: KeySets,
        *,
        public_url: str,
        max_bytes: int,
        is_known_token: Callable[[str, str], bool],
    ) -> None:
        """Joins its parts.

        Args:
            key_sets: Of senders that publish their keys.
            public_url: What senders call us by.
            max_bytes: Of a decoded body.
            is_known_token: Whether a provider was given this callback token; may raise ``Unavailable``.
        """
        self._key_sets = key_sets
        self._public_url = public_url
        self._max_bytes = max_bytes
        self._is_known_token = is_known_token

    def secrets_of(self, entry: ProviderEntry) -> tuple[Secret, ...]:
        """What an entry's requests are held against.

        Raises:
            Unavailable: There is nothing to hold them against, or not yet.
        """
        config = entry.config
        if config.key_set_url is not None:
            return self._key_sets.keys(config.key_set_url)
        if not config.webhook_secrets and SCHEMES[config.webhook_scheme].takes_secrets:
            raise Unavailable("the provider has no webhook secret configured", retry_after=_NO_SECRET_RETRY)
        return config.webhook_secrets

    def admit(self, entry: ProviderEntry, sent: Sent, *, at: datetime, kept: bool = False) -> NewEvent:
        """Makes a row of an authentic request.

        Args:
            entry: The provider it claims to be from.
            sent: The request.
            at: When it came.
            kept: Whether it comes out of the quarantine, where a shared secret is kept as its digest.

        Raises:
            SignatureError: It is not authentic.
            TooLarge: Decoded, its body is.
            Unavailable: It cannot be judged now.
        """
        origin = self._prove(entry, sent, at=at, kept=kept)
        reading = read_event(entry.adapter, sent.raw, sent.headers, limit_bytes=self._max_bytes)
        return new_event(new_id("evt", at=at), origin, raw=sent.raw, headers=sent.headers, reading=reading)

    def _prove(self, entry: ProviderEntry, sent: Sent, *, at: datetime, kept: bool) -> Origin:
        config = entry.config
        scheme = SCHEMES[config.webhook_scheme]
        if scheme.binds is Binding.NOTHING:
            self._check_token(entry.name, sent.token)
        verified = self._verify(entry, sent, at=at, kept=kept)
        credential = scheme.credential_header(config.scheme_options)
        return Origin(entry.name, config.tenant, sent.token, scheme.name, verified, credential)

    def _verify(self, entry: ProviderEntry, sent: Sent, *, at: datetime, kept: bool) -> Verified:
        secrets, options = self.secrets_of(entry), entry.config.scheme_options
        if kept:
            secrets, options = as_kept(entry.config.webhook_scheme, secrets, options)
        try:
            return verify(
                entry.config.webhook_scheme,
                headers=sent.headers,
                body=sent.raw,
                secrets=secrets,
                now=at,
                options=options,
                url=self._public_url + sent.target,
            )
        except Mismatch:
            if entry.config.key_set_url is not None:
                self._key_sets.note_unknown_key(entry.config.key_set_url)
            raise

    def _check_token(self, provider: str, token: str | None) -> None:
        """Where nothing is signed, the URL is all there is: who does not know one we gave out is a stranger."""
        if token is None:
            raise Missing
        if not self._is_known_token(provider, token):
            raise Mismatch
