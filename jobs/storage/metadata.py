"""The one metadata all packages hang their tables on, and the column types they share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = sa.MetaData(naming_convention=NAMING)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(sa.types.TypeDecorator[datetime]):
    """An aware UTC instant, stored as whole microseconds since 1970.

    One integer compares, sorts and indexes alike on SQLite and PostgreSQL; neither database's own timestamp text
    does.
    """

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        return None if value is None else to_microseconds(value)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else from_microseconds(value)


def to_microseconds(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """The aware UTC instant of a stored value."""
    return _EPOCH + timedelta(microseconds=value)


# SQLite counts up only in an INTEGER primary key; PostgreSQL wants 64 bits.
RowId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Document = sa.JSON(none_as_null=True)
