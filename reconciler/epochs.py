"""Fencing: which run of a tick is the newest, counted in the database.

A Redis lock may end under its owner (a long pause, a failover, a flush), and two would sweep at once. Each run
begins an epoch, and each of its transactions checks that no newer one has begun. The check locks the counter, so an
epoch cannot begin between the check and the commit: after it has begun, no older run ever writes (I7).
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.core.errors import Stale
from jobs.storage.counters import count_up, is_counter_at
from jobs.storage.database import Database, Transaction


@dataclass(frozen=True, slots=True)
class Epoch:
    """A run's place among all runs of its name. Usable as a transaction's premise."""

    name: str
    number: int

    def __call__(self, tx: Transaction) -> None:
        """Holds the epoch for the rest of the transaction.

        Raises:
            Stale: A newer one has begun.
        """
        if not is_counter_at(tx, _counter(self.name), self.number):
            raise Stale(f"epoch {self.number} of {self.name} has been succeeded")


def begin(database: Database, name: str) -> Epoch:
    """Begins the next epoch; every older one of that name is over."""
    with database.write() as tx:
        return Epoch(name, count_up(tx, _counter(name)))


def _counter(name: str) -> str:
    return f"epoch:{name}"
