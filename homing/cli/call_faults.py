"""Why a call came to nothing, in a few words: the HTTP library's own reason fills lines and says little."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from requests import Timeout

_WORDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (socket.gaierror, "no host of that name is known"),
    (ConnectionRefusedError, "nothing listens there"),
    (ssl.SSLError, "no TLS connection comes about"),
    ((TimeoutError, Timeout), "no answer came in time"),
)


def fault_of(error: BaseException) -> str:
    """Say what kept a call from its answer, by the innermost cause that is known."""
    causes = list(_causes(error))
    return next((words for kind, words in _WORDS if any(isinstance(cause, kind) for cause in causes)), "no answer came")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what is behind it; the libraries pass causes on in three ways."""
    while error is not None:
        yield error
        wrapped = [each for each in error.args if isinstance(each, BaseException)]
        reason = getattr(error, "reason", None)
        inner = reason if isinstance(reason, BaseException) else next(iter(wrapped), None)
        error = inner or error.__cause__ or error.__context__
