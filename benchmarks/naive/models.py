"""Its tables."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker


class Base(DeclarativeBase):
    """Its metadata."""

    type_annotation_map = {dict[str, Any]: sa.JSON}  # noqa: RUF012 - as SQLAlchemy documents it


class Job(Base):
    """A long-running job."""

    __tablename__ = "naive_jobs"

    id: Mapped[int] = mapped_column(primary_key=True)
    run: Mapped[str] = mapped_column(unique=True)
    state: Mapped[str] = mapped_column(default="running")
    version: Mapped[int] = mapped_column(default=1)
    output: Mapped[dict[str, Any] | None]
    finished_at: Mapped[datetime | None]


class Event(Base):
    """A webhook."""

    __tablename__ = "naive_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    delivery_id: Mapped[str] = mapped_column(unique=True)
    body: Mapped[str]
    processed_at: Mapped[datetime | None]


class Transition(Base):
    """A job's history."""

    __tablename__ = "naive_transitions"

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(sa.ForeignKey("naive_jobs.id"), index=True)
    event_id: Mapped[int] = mapped_column(sa.ForeignKey("naive_events.id"), unique=True)
    before: Mapped[str]
    after: Mapped[str]
    at: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC))


class Outgoing(Base):
    """An event for others."""

    __tablename__ = "naive_outbox"

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(sa.ForeignKey("naive_jobs.id"), index=True)
    type: Mapped[str]
    data: Mapped[dict[str, Any]]


def new_session() -> Session:
    """A session on this process's engine."""
    if not _factories:
        engine = sa.create_engine(os.environ["NAIVE_DATABASE_URL"])
        _factories.append(sessionmaker(engine))
    return _factories[0]()


_factories: list[sessionmaker[Session]] = []
