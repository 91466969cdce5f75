"""A secret in a header, sent as it is: proves its sender, and nothing about the body.

Whoever sees one request can send any other, so what the body says is only a hint: the provider is asked. The header's
value is the secret itself and is never stored or shown.

Source: AssemblyAI (header and value of our choice), Hugging Face (`X-Webhook-Secret`), Deepgram (`dg-token`).
"""

from __future__ import annotations

from jobs.core.signatures.matching import find_secret, without_prefix
from jobs.core.signatures.scheme import Binding, Incoming, Outgoing, Scheme, SchemeOptions, Verified
from jobs.core.signatures.secrets import read_text_secret

_HEADER = "X-Webhook-Secret"


def _verify(request: Incoming) -> Verified:
    sent = without_prefix(request.header(_header_name(request.options)), request.options.prefix or "")
    index = find_secret(request.secrets, candidates=[sent], expected=lambda secret: secret.key)
    return Verified(index, None, None)


def _sign(message: Outgoing) -> dict[str, str]:
    value = (message.options.prefix or "").encode() + message.secret.key
    return {_header_name(message.options): value.decode("latin-1")}  # the bytes of UTF-8, as a header carries them


def _header_name(options: SchemeOptions) -> str:
    return options.header or _HEADER


SHARED_SECRET = Scheme(
    "shared-secret",
    parse_secret=read_text_secret,
    verify=_verify,
    sign=_sign,
    binds=Binding.SENDER,
    reads=frozenset({"header", "prefix", "delivery_id_header"}),
    credential_header=lambda options: _header_name(options).lower(),
)
