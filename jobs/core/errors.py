"""The one error tree: what went wrong decides what happens next, never the text of a message.

A worker reads the *class*: `Transient` is tried again (after `retry_after` where the other side named
one), `Permanent` becomes a dead letter, `UnknownOutcome` is neither, because the request may have had its
effect: ask first. The HTTP edge reads `status`, `slug` and `title` and answers `application/problem+json`.

Every error survives pickling (Celery carries them between processes), so whatever an error keeps besides
its text is optional.

One file, and a long one, because a class is chosen by its neighbours: who adds one must see the others.

Source: RFC 9457 (problem details) for `status`, `slug` (the end of `type`), `title` and `detail`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

__all__ = [
    "BadRequest",
    "ConfigError",
    "Conflict",
    "Expired",
    "FieldFault",
    "Forbidden",
    "FromFuture",
    "InvalidTransition",
    "JobsError",
    "Malformed",
    "MethodNotAllowed",
    "Mismatch",
    "Missing",
    "NotFound",
    "Permanent",
    "Refusal",
    "SignatureError",
    "Stale",
    "TooLarge",
    "Transient",
    "Unauthorized",
    "Unavailable",
    "UnknownOutcome",
    "Unprocessable",
    "UnsupportedCoding",
    "Unusable",
]


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One thing wrong with one field of a request.

    Attributes:
        field: where, as a dotted path from the body (`input.prompt`) or a header's name.
        message: what is wrong, as a phrase a person can act on.
    """

    field: str
    message: str


class JobsError(Exception):
    """Root of the tree. Abstract: raise one of its children.

    Args:
        detail: what happened here, for a person; must hold nothing secret. Default: the class's title.
        retry_after: how long to wait before trying again, where somebody named it.
        slug: replaces the class's problem type where one class stands for several problems.
        fields: the single fields at fault, for a request that failed validation.
    """

    status: ClassVar[int] = 500
    title: str = "Something went wrong"
    slug: str = "internal"

    def __init__(
        self,
        detail: str = "",
        *,
        retry_after: timedelta | None = None,
        slug: str | None = None,
        fields: Iterable[FieldFault] = (),
    ) -> None:
        """See the class."""
        if type(self) is JobsError:
            raise TypeError("JobsError is abstract: raise the child that says what to do next")
        super().__init__(detail)
        self.detail = detail or self.title
        self.retry_after = retry_after
        self.fields = tuple(fields)
        if slug is not None:
            self.slug = slug

    def __str__(self) -> str:
        """Return the detail."""
        return self.detail


# What a worker does next -------------------------------------------------------------------------------


class Transient(JobsError):
    """It may work later: try again, `retry_after` from now where that is set."""

    status = 503
    slug = "temporarily-unavailable"
    title = "This did not work now and may work later"


class Permanent(JobsError):
    """It will not work by itself, however often it is tried: a dead letter."""

    status = 422
    slug = "permanent-failure"
    title = "This will not work by trying again"


class UnknownOutcome(JobsError):
    """The request left and no answer came back: it may have had its effect.

    Neither `Transient` nor `Permanent`. Ask the other side first, and repeat only with the same
    idempotency key, where the provider honours it.
    """

    status = 502
    slug = "unknown-outcome"
    title = "The outcome is not known"


class InvalidTransition(JobsError):
    """A change that the state table does not hold. Nothing was changed."""

    status = 409
    slug = "invalid-transition"
    title = "The job cannot change this way"


class Stale(JobsError):
    """A guarded write met zero rows: what it was decided on has changed. Read again, decide again."""

    status = 409
    slug = "stale"
    title = "Somebody else changed this first"


class Unusable(Permanent):
    """Bytes from outside that cannot be read as the JSON they should be.

    Args:
        reason: what is wrong with them, for a person; says nothing of their content.
    """

    status = 400
    slug = "unusable-body"
    title = "The body cannot be used"

    @property
    def reason(self) -> str:
        """What is wrong with the bytes."""
        return self.detail


# Signatures of incoming webhooks -----------------------------------------------------------------------


class SignatureError(JobsError):
    """A request that is not proven to come from its sender. Abstract: raise one of its children.

    The answer has one shape for every child, so that a caller learns nothing from being refused; `reason`
    is for our own logs and counters.
    """

    status = 403
    slug = "signature-refused"
    title = "The signature was refused"
    reason: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        """Take what the log may say; it must hold neither secret nor signature."""
        if type(self) is SignatureError:
            raise TypeError("SignatureError is abstract: raise the child that names the reason")
        super().__init__(detail or self.reason)


class Missing(SignatureError):
    """A header the scheme needs is absent or empty."""

    reason = "missing"


class Malformed(SignatureError):
    """A header is there and cannot be what the scheme says."""

    reason = "malformed"


class Mismatch(SignatureError):
    """No signature in the request was made over these bytes with any of our secrets."""

    reason = "mismatch"


class Expired(SignatureError):
    """Correctly signed, too long ago: perhaps a recording played back."""

    reason = "expired"


class FromFuture(SignatureError):
    """Correctly signed, further ahead of our clock than clocks drift. Would stay fresh for ever."""

    reason = "from_future"


# Configuration -----------------------------------------------------------------------------------------


class ConfigError(JobsError):
    """The configuration cannot be used. Carries every fault found, so that one start shows them all.

    Args:
        faults: each one as a sentence that names the setting and the remedy, never a secret's value.
    """

    slug = "configuration"
    title = "The configuration cannot be used"

    def __init__(self, faults: Iterable[str] | str) -> None:
        """See the class."""
        self.faults = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("\n".join(self.faults))


# Answers to a client's request -------------------------------------------------------------------------


class Refusal(Permanent):
    """A request that is answered with a 4xx. Abstract in spirit: its children are what is raised."""

    status = 400
    slug = "refused"
    title = "The request was refused"


class BadRequest(Refusal):
    """The request cannot be read."""

    slug = "bad-request"
    title = "The request cannot be read"


class Unauthorized(Refusal):
    """No key, or one we do not know."""

    status = 401
    slug = "unauthorized"
    title = "An API key is needed"


class Forbidden(Refusal):
    """The key is known and may not do this."""

    status = 403
    slug = "forbidden"
    title = "This key may not do that"


class NotFound(Refusal):
    """There is no such thing, or it belongs to another tenant: the answer is the same."""

    status = 404
    slug = "not-found"
    title = "There is no such thing here"


class MethodNotAllowed(Refusal):
    """The route is there and is asked in another way."""

    status = 405
    slug = "method-not-allowed"
    title = "This route takes another method"


class Conflict(Refusal):
    """The thing exists and is in a state that does not allow this."""

    status = 409
    slug = "conflict"
    title = "The current state does not allow this"


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


class Unprocessable(Refusal):
    """The request can be read and what it asks for is not valid; `fields` names each one at fault."""

    status = 422
    slug = "unprocessable"
    title = "The request is not valid"


class Unavailable(Transient):
    """Something we stand on is away; nothing was accepted. Always answered with `Retry-After`."""

    slug = "unavailable"
    title = "This is unavailable for the moment"
