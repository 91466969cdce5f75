"""What may be done next about a submit, as a pure function: the rule that keeps a provider from billing twice.

Once ``sending_at`` is set the request may have arrived, whatever we saw of it. From then on it is sent again only
where the provider recognises the key, within the time it remembers it; else the provider is asked; and where it
cannot be asked either, a person is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.providers.port import Capabilities, KeyUse

# A provider's list may lag behind its answers: "not there" is asked again so often before a person is asked.
MAX_ASKS = 5
# A key is not relied on in the last of its window: our request needs time to arrive, and clocks differ.
_MARGIN = timedelta(minutes=1)
_MARGIN_SHARE = 10


class SubmitStep(StrEnum):
    """The next thing to do."""

    ADOPT = "adopt"  # nothing is sent: read the run the job takes charge of
    SEND = "send"  # nothing has ever left
    RESEND = "resend"  # the same request under the same key, which the provider recognises
    ASK = "ask"  # does the provider know a run under our token or key?
    WAIT = "wait"  # a webhook or a person will have to tell


@dataclass(frozen=True, slots=True)
class Sent:
    """What is known of an attempt's submit.

    Attributes:
        sending_at: When it was first about to leave; None: it never was.
        asks: How often the provider did not know it.
        key_taken: The provider has refused our key as used: a run exists.
        wants_end: Somebody asked for the end of the job: better find a run than risk starting one.
    """

    sending_at: datetime | None
    asks: int = 0
    key_taken: bool = False
    wants_end: bool = False


def next_step(sent: Sent, capabilities: Capabilities, *, now: datetime) -> SubmitStep:
    """The next thing to do about a submit. Pure."""
    if sent.sending_at is None:
        return SubmitStep.SEND
    if _may_resend(sent, capabilities, now=now) and not _asks_first(sent, capabilities):
        return SubmitStep.RESEND
    return SubmitStep.ASK if capabilities.search else SubmitStep.WAIT


def _may_resend(sent: Sent, capabilities: Capabilities, *, now: datetime) -> bool:
    if capabilities.keys is KeyUse.NONE or sent.key_taken or sent.sending_at is None:
        return False
    window = capabilities.key_window
    return window is None or now < sent.sending_at + window - min(_MARGIN, window / _MARGIN_SHARE)


def _asks_first(sent: Sent, capabilities: Capabilities) -> bool:
    """A key that is refused does not name its run, and a canceled job wants none begun: look before sending."""
    careful = capabilities.keys is KeyUse.REJECT or sent.wants_end
    return careful and capabilities.search and sent.asks < MAX_ASKS
