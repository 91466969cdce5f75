"""``/v1/event-types``."""

from __future__ import annotations

from jsonschema import Draft202012Validator

from jobs.core.events import EventType, StreamedType
from tests.integration.api.conftest import Api


def test_every_event_type_is_listed_with_a_schema(api: Api) -> None:
    listed = {known["type"]: known for known in api.get("/v1/event-types").json["data"]}  # type: ignore[index]

    assert list(listed) == [str(event_type) for event_type in (*EventType, *StreamedType)]
    for known in listed.values():
        Draft202012Validator.check_schema(known["schema"])


def test_event_types_need_a_key(api: Api) -> None:
    assert api.client.get("/v1/event-types").status_code == 401
