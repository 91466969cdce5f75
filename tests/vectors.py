"""Signed bodies with known signatures, for every test that needs an authentic request.

Made once, with the standard library alone, and kept as literals: a test that computed them with our own code
would only prove that the code agrees with itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

#: The frozen clock of the vectors, 2026-01-01T00:00:00Z.
T = 1767225600
NOW = datetime.fromtimestamp(T, UTC)

#: One key in its two spellings: as text, and as a Standard Webhooks secret.
TEXT_SECRET = "field-log-test-secret-01"
WHSEC_SECRET = "whsec_ZmllbGQtbG9nLXRlc3Qtc2VjcmV0LTAx"

#: An Ed25519 pair of the Standard Webhooks examples, in its two spellings there and as a JSON Web Key writes them.
WHPK_SECRET = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
WHSK_SECRET = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
FAL_PUBLIC = "1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4"
FAL_PRIVATE = "6Xb_dCcHpPea21PS1N9VY_NZW723CEc77N4rJCubMbc"


@dataclass(frozen=True, slots=True)
class Vector:
    """A body and its signatures.

    Attributes:
        h: hex HMAC-SHA256 over the body.
        s: hex HMAC-SHA256 over `T.body`; empty where none is recorded.
        w: base64 HMAC-SHA256 over `msg_<name>.T.body`; empty where none is recorded.
    """

    name: str
    body: bytes
    h: str
    s: str = ""
    w: str = ""

    @property
    def message_id(self) -> str:
        return f"msg_{self.name}"

    @property
    def standard_webhooks(self) -> dict[str, str]:
        return {
            "webhook-id": self.message_id,
            "webhook-timestamp": str(T),
            "webhook-signature": f"v1,{self.w}",
        }

    @property
    def stripe(self) -> dict[str, str]:
        return {"stripe-signature": f"t={T},v1={self.s}"}

    @property
    def hmac_body(self) -> dict[str, str]:
        return {"x-signature": f"sha256={self.h}"}


B1 = Vector(
    "B1",
    b'{"id":"evt_1","job":"p-123","status":"succeeded"}',
    h="4bbe595f7d9fb1967da9ea4d45c89fd127c48867c7ad44404de5e97d318ffa1c",
    s="bfe357c124dd559b7d3ce57477c59283c1b6486a5942fc759a7d11702827ac96",
    w="z5acq3fgakuCpgbapcHfWjg8vF02ThX4U35t/frPHzo=",
)
#: Odd blanks, 1.0, an escape and raw UTF-8: any second encoding of it differs.
B2 = Vector(
    "B2",
    b'{ "status":"succeeded",  "id":"evt_1",\n "score":1.0, "name":"caf\\u00e9", "raw":"\xc3\xa9\xf0\x9f\x98\xb1" }\n',
    h="d86c49694f216cbb87deca8b1347e0ee5131c5c0c65d7ef5c3c277d8beaf6551",
    s="6a3353fb32708cc071fd0589e70b78cc0501c0cfb8f2aa533d3b6791bca03555",
    w="BWnZxOYTHb63CCtlDWrHjOMpsDojFJj5WEFZ4IBPiUw=",
)
#: Nothing at all: authentic, and unusable.
B3 = Vector(
    "B3",
    b"",
    h="672733924a098507fcec908bb258cc52b672969e4e6b61e076e44e48b88d5a9a",
    s="5063eeb551cca48ab1cf1034b84132d79263415dd57a6633338448a0d51a8628",
    w="bqwpHKOtakFhi3iJrcxSvnGkVemRQ5RYZFltRc4NtEg=",
)
#: A form, which a web framework would like to parse away.
B4 = Vector(
    "B4",
    b"payload=%7B%22id%22%3A%22evt_1%22%7D&a=1+2",
    h="0b87b3a3002b41e0727d5636d0803e9fd1d3ea7bb694b7cf9acedb9eee043374",
)
#: An escaped U+0000, which JSON allows and databases refuse.
B5 = Vector(
    "B5",
    b'{"id":"evt_5","job":"p-123","status":"failed","error":"bad\\u0000byte"}',
    h="1512ca381c001b7b0ae1d96e8a99f59ce60638aca53ad28f76d4989f6d67f280",
    s="79fc6824fef0c16029f4f6547463bfad3ee34504573ed1cb98c66ce5190d2933",
    w="QZPzPwNXF0KRRnT9Q2sg/z42qulLQOUasulExTqaa9I=",
)
ALL = (B1, B2, B3, B4, B5)
