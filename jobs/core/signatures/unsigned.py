"""`none`: the sender signs nothing, so nothing is verified.

All there is to go by is the token of the callback URL, which the receiver has to know; and the event is never more
than a hint to ask the provider.

Source: Luma, Kling, and HeyGen's per-request callbacks document no signature.
"""

from __future__ import annotations

from jobs.core.signatures.scheme import Binding, Incoming, Outgoing, Scheme, Secret, Verified

#: There is no secret that could have matched.
NO_SECRET = -1


def _parse(text: str) -> Secret:
    raise ValueError(f"cannot be used: scheme 'none' signs nothing ({len(text)} characters given)")


def _verify(_request: Incoming) -> Verified:
    return Verified(NO_SECRET, None, None)


def _sign(_message: Outgoing) -> dict[str, str]:
    return {}


NONE = Scheme(
    "none",
    parse_secret=_parse,
    verify=_verify,
    sign=_sign,
    binds=Binding.NOTHING,
    reads=frozenset({"delivery_id_header"}),
    takes_secrets=False,
)
