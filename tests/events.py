"""Holds events that were written to the shapes that are promised of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa
from jsonschema import Draft202012Validator, FormatChecker

from jobs.api.event_shapes import strict_schema
from jobs.core.events import EventType
from jobs.services.documents import event_document
from jobs.storage.database import Database
from jobs.storage.schema import outbox


@cache
def _validator(event_type: str) -> Draft202012Validator:
    return Draft202012Validator(strict_schema(EventType(event_type)), format_checker=FormatChecker())


def faults_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is wrong with rows of the outbox, each as a consumer gets it; to the last field."""
    faults = []
    for row in rows:
        document = json.loads(json.dumps(event_document(row)))
        for fault in _validator(document["type"]).iter_errors(document):
            faults.append(f"{document['type']}: {fault.json_path}: {fault.message[:200]}")
    return faults


def faults_in(database: Database) -> list[str]:
    """What is wrong with the events of a database."""
    with database.read() as tx:
        return faults_of(tx.rows(sa.select(outbox)))
