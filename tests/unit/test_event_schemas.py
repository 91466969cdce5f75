"""The schemas of events: complete, usable, and the same as the files that are shipped."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from homing.event_schemas import schema_files
from jobs.api.event_shapes import list_event_types, schema_of, strict_schema
from jobs.core.events import SCHEMA_VERSION, EventType, StreamedType

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "event-schemas"
HEARTBEAT: dict[str, Any] = {
    "id": "evt_1",
    "type": "heartbeat.missed",
    "schema_version": 1,
    "sequence": None,
    "occurred_at": "2026-01-01T00:00:00.000000Z",
    "tenant": None,
    "data": {
        "heartbeat": {"name": "x", "period_s": 1.0, "last_beat_at": "2026-01-01T00:00:00Z", "silent_s": 14.0},
    },
}


def test_the_shipped_files_are_the_schemas_of_this_release() -> None:
    """If this fails: python -m homing.event_schemas docs/reference/event-schemas"""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == dict(schema_files())


@pytest.mark.parametrize("event_type", [*EventType, *StreamedType])
def test_every_type_has_a_schema_that_is_one(event_type: EventType | StreamedType) -> None:
    schema = schema_of(event_type)

    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:homing:event:{event_type}:{SCHEMA_VERSION}"
    assert schema["properties"]["type"]["const"] == event_type


def test_types_are_listed_with_their_version() -> None:
    assert {(known["type"], known["schema_version"]) for known in list_event_types()} == {
        (str(event_type), SCHEMA_VERSION) for event_type in (*EventType, *StreamedType)
    }


def test_a_consumer_is_not_broken_by_what_a_later_release_adds_and_our_tests_are() -> None:
    newer = copy.deepcopy(HEARTBEAT)
    newer["data"]["heartbeat"]["host"] = "h1"

    assert Draft202012Validator(schema_of(EventType.HEARTBEAT_MISSED)).is_valid(newer)
    assert not Draft202012Validator(strict_schema(EventType.HEARTBEAT_MISSED)).is_valid(newer)


@pytest.mark.parametrize("name", ["id", "type", "schema_version", "sequence", "occurred_at", "tenant", "data"])
def test_what_is_missing_is_noticed_and_a_position_may_be(name: str) -> None:
    validator = Draft202012Validator(schema_of(EventType.HEARTBEAT_MISSED))

    assert validator.is_valid(HEARTBEAT)
    assert validator.is_valid({**HEARTBEAT, "position": 7})
    assert not validator.is_valid({key: value for key, value in HEARTBEAT.items() if key != name})
