"""A call's trouble in a few words, however deep it is wrapped."""

from __future__ import annotations

import socket
import ssl

import pytest
from requests import ConnectionError as RequestsConnectionError
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection
from urllib3.exceptions import MaxRetryError, NewConnectionError

from homing.cli.call_faults import fault_of
from jobs.net.http import NotSent


def wrapped(cause: BaseException) -> NotSent:
    """As it comes from the HTTP client: below urllib3's retries, below requests, below ours."""
    refused = NewConnectionError(HTTPConnection("h"), "cannot be reached")
    refused.__cause__ = cause
    outer = RequestsConnectionError(MaxRetryError(HTTPConnectionPool("h"), "/", refused))
    error = NotSent("nothing was sent: …")
    error.__cause__ = outer
    return error


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "no host of that name is known"),
        (ConnectionRefusedError(111, "Connection refused"), "nothing listens there"),
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), "no TLS connection comes about"),
        (TimeoutError("timed out"), "no answer came in time"),
        (ConnectionResetError(104, "reset"), "no answer came"),
    ],
)
def test_the_innermost_cause_decides(cause: BaseException, words: str) -> None:
    assert fault_of(wrapped(cause)) == words


def test_an_error_without_a_cause_is_no_answer() -> None:
    assert fault_of(NotSent("nothing was sent")) == "no answer came"
