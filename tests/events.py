"""Holds events that were written to the shapes that are promised of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa
from jsonschema import Draft202012Validator, FormatChecker

from jobs.api.event_shapes import strict_schema
from jobs.core.events import EventType, StreamedType
from jobs.services.documents import event_document
from jobs.storage.database import Database
from jobs.storage.schema import outbox
from webhooks.outgoing.schema import event_bodies


@cache
def _validator(event_type: str) -> Draft202012Validator:
    known = StreamedType(event_type) if event_type in {*StreamedType} else EventType(event_type)
    return Draft202012Validator(strict_schema(known), format_checker=FormatChecker())


def faults_of(document: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with an event as a consumer gets it, to the last field."""
    for fault in _validator(document["type"]).iter_errors(document):
        yield f"{document['type']}: {fault.json_path}: {fault.message[:200]}"


def faults_in(database: Database) -> list[str]:
    """What is wrong with the events of a database: as lists show them, and as endpoints are sent them."""
    with database.read() as tx:
        listed = [json.dumps(event_document(row)) for row in tx.rows(sa.select(outbox))]
        sent = [row["body"] for row in tx.rows(sa.select(event_bodies))]
    return [fault for text in (*listed, *sent) for fault in faults_of(json.loads(text))]
