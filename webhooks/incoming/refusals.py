"""Answers of the receiver that the rest of Homing has no use for."""

from __future__ import annotations

from jobs.core.errors import Refusal


class MethodNotAllowed(Refusal):
    """Webhooks are posted."""

    status = 405
    slug = "method-not-allowed"
    title = "Webhooks are sent by POST"


class TooLarge(Refusal):
    """The body is longer than the limit, on the wire or decoded."""

    status = 413
    slug = "too-large"
    title = "The body is too large"


class UnsupportedCoding(Refusal):
    """The body is encoded in a way nobody can check cheaply."""

    status = 415
    slug = "unsupported-encoding"
    title = "Content-Encoding must be gzip or identity"
