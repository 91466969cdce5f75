"""What can go wrong between a client and a fleet, by what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.core.errors import Permanent, Transient

if TYPE_CHECKING:
    from homing.client.documents import Job


class Unreachable(Transient):
    """No answer came from the API."""

    title = "The API does not answer"
    slug = "unreachable"


class Busy(Transient):
    """The API answered that it cannot just now (5xx, 429)."""

    title = "The API cannot do this now"
    slug = "busy"


class Problem(Permanent):
    """The API refused, and said why: `slug` for programs, `title` and `detail` for people, `fields` at fault.

    `http_status` is the answer's; 0 where it is not known.
    """

    title = "The API refused this"
    slug = "refused"
    http_status: int = 0


class NoStream(Permanent):
    """This fleet, or what stands before it, serves no stream of events here."""

    title = "No stream of events is served"
    slug = "no-stream"


class WaitTimeout(TimeoutError):
    """The time to wait is over and the job is still open. It goes on, and can be waited for again.

    Attributes:
        job: as it was seen last.
    """

    def __init__(self, job: Job) -> None:
        """See the class."""
        super().__init__(f"{job.id} is still {job.state}")
        self.job = job

    def __reduce__(self) -> tuple[type[WaitTimeout], tuple[Job]]:
        """Survive pickling: between processes the job comes along."""
        return type(self), (self.job,)
