"""Requests as Homing reads them: JSON strictly, whatever the content type says."""

from __future__ import annotations

from typing import Any

from flask import Request
from werkzeug.datastructures import ImmutableMultiDict
from werkzeug.utils import cached_property

from jobs.core import text
from jobs.core.errors import TooLarge


class StrictRequest(Request):
    """A request whose JSON is read like a provider's: UTF-8, no NaN, no deep nesting, clean text.

    Its query string is cleaned alike: PostgreSQL takes no U+0000, not even to look for it.
    """

    @cached_property
    def args(self) -> ImmutableMultiDict[str, str]:
        """The query string's fields, as clean text."""
        return ImmutableMultiDict([(name, text.clean(value)) for name, value in super().args.items(multi=True)])

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:  # noqa: ARG002
        """The body, or None where it is empty.

        Raises:
            Unusable: It is not JSON (400).
            TooLarge: It is larger than this route takes.
        """
        raw = self.get_data(cache=True)
        if self.content_length is None and self.max_content_length and len(raw) >= self.max_content_length:
            # A chunked body names no length: werkzeug stops reading at the limit and says nothing.
            raise TooLarge(f"the body has more than {self.max_content_length} bytes")
        return text.clean(text.decode_json(raw)) if raw.strip() else None
