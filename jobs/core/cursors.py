"""Where a reader of a job's stream is: after which event, which version of the job, and which piece of its output.

A cursor travels as the id of a server-sent event, and comes back as ``Last-Event-ID``. Nobody else takes it apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_TEXT = re.compile(r"([0-9a-z_]{1,16})\.([0-9]{1,9})\.([0-9]{1,18})(?:\.([0-9]{1,9})\.([0-9]{1,18}))?")
#: Enough of the job's id to tell a cursor of another job.
_MARK_CHARS = 8


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in one job's story.

    Attributes:
        sequence: Of the last event told; 0 before the first.
        version: Of the job as last told.
        generation: Of the output that was told; 0 where none was.
        offset: How many characters of it were told.
    """

    sequence: int
    version: int
    generation: int = 0
    offset: int = 0

    def to_text(self, job_id: str) -> str:
        """The cursor as an opaque id. Only who was told output has the last two parts."""
        output = f".{self.generation}.{self.offset}" if self.generation else ""
        return f"{job_id[-_MARK_CHARS:]}.{self.sequence}.{self.version}{output}"

    @classmethod
    def from_text(cls, text: str | None, job_id: str) -> Self | None:
        """The cursor an id stands for; None for whatever is no id of this job's stream."""
        match = _TEXT.fullmatch(text or "")
        if match is None or match[1] != job_id[-_MARK_CHARS:]:
            return None
        return cls(*(int(part) for part in match.groups()[1:] if part is not None))
