"""What can go wrong at a provider, and how often: the faults and the profiles that mix them.

A run suffers at most one fault of each group, because two faults of one group would hide each other: a
dropped webhook cannot also be late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """One kind of trouble; its value is the word in the ledger."""

    DROPPED = "dropped"
    """None of the run's webhooks is ever sent: only a poll brings the job home."""
    DUPLICATED = "duplicated"
    """Each event is sent twice, same id, same bytes."""
    REORDERED = "reordered"
    """`processing` is sent after the terminal event."""
    DELAYED = "delayed"
    """The terminal event comes late, freshly signed."""
    DELAYED_STALE = "delayed_stale"
    """The terminal event comes late and carries its first, now expired, signature."""
    EARLY = "early"
    """The run ends at once, and its webhooks come before the submit is answered."""
    BADLY_SIGNED = "badly_signed"
    """Every try of the terminal event is signed with another secret."""
    STALE = "stale"
    """Every try of the terminal event is signed for a moment long past."""
    FUTURE = "future"
    """Every try of the terminal event is signed for a moment far ahead."""
    TWO_SIGNATURES = "two_signatures"
    """Each event carries two signatures, of a secret that was rotated out and of the live one."""

    LOST_ANSWER = "lost_answer"
    """The submit is accepted, and the connection closed without an answer."""
    SUBMIT_503 = "submit_503"
    """The submit is refused before anything was accepted."""
    SUBMIT_429 = "submit_429"
    """The submit is refused, with a Retry-After."""

    STATUS_5XX = "status_5xx"
    STATUS_429 = "status_429"
    STATUS_HTML = "status_html"
    """A gateway's page in place of the answer, under status 200."""
    STATUS_HANG = "status_hang"
    """The read is held for seconds, then cut without an answer."""
    STATUS_UNKNOWN = "status_unknown"
    """A word nobody has heard of."""

    STREAM_CUT = "stream_cut"
    """The connection breaks in the middle of the text."""
    STREAM_SILENT = "stream_silent"
    """In the middle of the text nothing comes for seconds, and then the connection breaks."""

    CANCEL_IGNORED = "cancel_ignored"
    """A cancel is accepted, and the run goes on to its own end all the same."""

    URL_EXPIRED = "url_expired"
    """The first URL handed out for a result has already run out; the next one is good."""
    URL_LOST = "url_lost"
    """Every URL handed out for a result has already run out."""
    TRUNCATED = "truncated"
    """The first download of a result is cut short and looks whole."""
    WRONG_TYPE = "wrong_type"
    """The first download of a result is a page that says sorry."""


WEBHOOK_FAULTS = (
    Fault.DROPPED, Fault.DUPLICATED, Fault.REORDERED, Fault.DELAYED,
    Fault.DELAYED_STALE, Fault.EARLY, Fault.BADLY_SIGNED, Fault.STALE, Fault.FUTURE, Fault.TWO_SIGNATURES,
)  # fmt: skip
SUBMIT_FAULTS = (Fault.LOST_ANSWER, Fault.SUBMIT_503, Fault.SUBMIT_429)
STATUS_FAULTS = (
    Fault.STATUS_5XX, Fault.STATUS_429, Fault.STATUS_HTML, Fault.STATUS_HANG, Fault.STATUS_UNKNOWN,
)  # fmt: skip
CANCEL_FAULTS = (Fault.CANCEL_IGNORED,)
#: Of runs that can be listened to.
STREAM_FAULTS = (Fault.STREAM_CUT, Fault.STREAM_SILENT)
ARTIFACT_FAULTS = (Fault.URL_EXPIRED, Fault.URL_LOST, Fault.TRUNCATED, Fault.WRONG_TYPE)
#: Dealt by no profile, since the demo could not survive or would never meet them; tests choose them by hand.
BY_HAND = (Fault.FUTURE, Fault.TWO_SIGNATURES, Fault.CANCEL_IGNORED, Fault.URL_LOST)
GROUPS = (WEBHOOK_FAULTS, SUBMIT_FAULTS, STATUS_FAULTS, STREAM_FAULTS, CANCEL_FAULTS, ARTIFACT_FAULTS)


@dataclass(frozen=True, slots=True)
class Faults:
    """What befalls one run.

    Attributes:
        webhook: trouble of its webhooks.
        submit: trouble of its submit.
        status: trouble of its first status reads.
        stream: trouble of the first listeners to its output.
        cancel: trouble of its cancel.
        artifact: trouble of its result files.
        times: how often the submit, status and stream troubles repeat, from 1.
        jitter: a share from 0 to 1 that places the fault within its range (how late, which status).
    """

    webhook: Fault | None = None
    submit: Fault | None = None
    status: Fault | None = None
    stream: Fault | None = None
    cancel: Fault | None = None
    artifact: Fault | None = None
    times: int = 1
    jitter: float = 0.5

    @property
    def words(self) -> list[str]:
        """The kinds, as the ledger names them."""
        kinds = (self.webhook, self.submit, self.status, self.stream, self.cancel, self.artifact)
        return [kind.value for kind in kinds if kind is not None]


NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True)
class Profile:
    """A mix of faults.

    Attributes:
        shares: for each kind the share of runs that suffer it; per group they add up to at most 1.
        most_times: how often a submit, status or stream trouble repeats at most (an unknown status: at least 2).
    """

    shares: Mapping[Fault, float]
    most_times: int = 1


# The quotas round up, so the shares of a group stay so far below 1 that 40 runs have room for every kind and
# still leave a few runs in peace. Drops and duplicates lie a little above the promised quarter.
PROFILES: Mapping[str, Profile] = {
    "none": Profile({}),
    "default": Profile(
        {
            Fault.DROPPED: 0.275, Fault.DUPLICATED: 0.275, Fault.REORDERED: 0.1, Fault.DELAYED: 0.075,
            Fault.DELAYED_STALE: 0.05, Fault.EARLY: 0.075, Fault.BADLY_SIGNED: 0.05, Fault.STALE: 0.05,
            Fault.LOST_ANSWER: 0.1, Fault.SUBMIT_503: 0.05, Fault.SUBMIT_429: 0.05,
            Fault.STATUS_5XX: 0.075, Fault.STATUS_429: 0.05, Fault.STATUS_HTML: 0.075,
            Fault.STATUS_HANG: 0.05, Fault.STATUS_UNKNOWN: 0.075,
            Fault.STREAM_CUT: 0.25, Fault.STREAM_SILENT: 0.1,
            Fault.URL_EXPIRED: 0.05, Fault.TRUNCATED: 0.05, Fault.WRONG_TYPE: 0.05,
        }
    ),
    "brutal": Profile(
        {
            Fault.DROPPED: 0.33, Fault.DUPLICATED: 0.3, Fault.REORDERED: 0.075, Fault.DELAYED: 0.05,
            Fault.DELAYED_STALE: 0.025, Fault.EARLY: 0.05, Fault.BADLY_SIGNED: 0.05, Fault.STALE: 0.05,
            Fault.LOST_ANSWER: 0.2, Fault.SUBMIT_503: 0.1, Fault.SUBMIT_429: 0.1,
            Fault.STATUS_5XX: 0.15, Fault.STATUS_429: 0.1, Fault.STATUS_HTML: 0.15,
            Fault.STATUS_HANG: 0.1, Fault.STATUS_UNKNOWN: 0.15,
            Fault.STREAM_CUT: 0.4, Fault.STREAM_SILENT: 0.2,
            Fault.URL_EXPIRED: 0.1, Fault.TRUNCATED: 0.1, Fault.WRONG_TYPE: 0.1,
        },
        most_times=2,
    ),
}  # fmt: skip
