"""Requests that can be read and are not valid, in the words of the API."""

from __future__ import annotations

from jobs.core.errors import FieldFault, Unprocessable


def field_fault(name: str, message: str) -> Unprocessable:
    """What is wrong with one field of a request, as an error to raise.

    Args:
        name: The field, or the header.
        message: What is wrong with it, as the end of a sentence that begins with its name.
    """
    return Unprocessable(f"{name} {message}", fields=[FieldFault(name, message)])
