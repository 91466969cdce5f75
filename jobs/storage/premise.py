"""A condition that a transaction checks before it writes.

A sweep hands its fencing epoch down this way: the service that opens the transaction need not know what is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jobs.storage.database import Transaction

#: Raises ``Stale`` where the condition no longer holds; the transaction then rolls back.
Premise: TypeAlias = Callable[[Transaction], None]


def always(tx: Transaction) -> None:
    """The premise of a writer that has none: row by row, its statements repeat theirs."""
    del tx
