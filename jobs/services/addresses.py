"""URLs that a client registers: judged at once, and again whenever they are called."""

from __future__ import annotations

from jobs.core.addresses import AddressRefused
from jobs.core.errors import FieldFault
from jobs.net.guard import Guard, Unresolved


def check_address(guard: Guard, field: str, url: str) -> None:
    """Refuses a URL that Homing may not be sent to.

    Args:
        guard: Judges it; its look-up is bounded.
        field: Of the request, for the answer.
        url: As the client gave it.

    Raises:
        AddressRefused: Says which rule; also for a name that has no address now.
    """
    try:
        guard.check(url)
    except AddressRefused as refused:
        raise _naming(field, refused) from None
    except Unresolved as missing:
        raise _naming(field, AddressRefused(missing.detail, rule="unresolved")) from None


def _naming(field: str, refused: AddressRefused) -> AddressRefused:
    refused.fields = (FieldFault(field, refused.detail),)
    return refused
