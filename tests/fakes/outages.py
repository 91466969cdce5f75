"""A database that is gone at the one moment that matters."""

from __future__ import annotations

from collections.abc import Callable

from jobs.storage.database import Database, Transaction


class BreaksOnce:
    """A database whose nth write from now on is lost: the process died, or the database went away, before it."""

    def __init__(self, database: Database, *, nth: int, error: BaseException) -> None:
        self._database = database
        self._nth = nth
        self._error = error

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def write(self) -> object:
        self._count()
        return self._database.write()

    def insist(self, work: Callable[[Transaction], object]) -> object:
        """A death ends the insisting, and an outage is one that outlasts it."""
        self._count()
        return self._database.insist(work)

    def _count(self) -> None:
        self._nth -= 1
        if self._nth == 0:
            raise self._error
