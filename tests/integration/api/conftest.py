"""The whole web application over a real database, called in process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from homing.web import create_app
from jobs.clock import FakeClock
from jobs.config.providers import ProviderConfig
from jobs.services.keys import Role, create_key
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.storage.database import Database
from tests.fakes.broker import RecordingBroker
from tests.fakes.provider import REPLAY, FakeProvider
from tests.fakes.runtime import a_runtime

TENANT = "acme"


@dataclass
class Api:
    """A client with a key."""

    client: FlaskClient
    key: str
    key_id: str = ""

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(path, **self._with_key(options))

    def post(self, path: str, body: Any = None, **options: Any) -> TestResponse:
        if body is not None:
            options["json"] = body
        return self.client.post(path, **self._with_key(options))

    def submit(self, body: Mapping[str, Any] | None = None, *, key: str | None = None) -> TestResponse:
        headers = {"Idempotency-Key": key} if key else {}
        return self.post("/v1/jobs", body or a_body(), headers=headers)

    def _with_key(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "headers": {"Authorization": f"Bearer {self.key}", **options.get("headers", {})}}


def a_body(**fields: Any) -> dict[str, Any]:
    return {"provider": "renders", "input": {"model": "video", "prompt": "a lighthouse in fog"}, **fields}


def an_entry(name: str, *, tenant: str | None = None) -> ProviderEntry:
    config = ProviderConfig(
        adapter="simulator",
        base_url="http://127.0.0.1:1",
        tenant=tenant,
        webhook_scheme="standard-webhooks",
    )
    return ProviderEntry(name, config, config.policy, FakeProvider(FakeClock(), REPLAY))


@pytest.fixture
def broker() -> RecordingBroker:
    return RecordingBroker()


@pytest.fixture
def runtime(database: Database, broker: RecordingBroker) -> Runtime:
    entries = [an_entry("renders"), an_entry("private", tenant=TENANT), an_entry("theirs", tenant="globex")]
    return a_runtime(database, broker=broker, providers={entry.name: entry for entry in entries})


@pytest.fixture
def client(runtime: Runtime) -> Iterator[FlaskClient]:
    with create_app(runtime).test_client() as client:
        yield client


def login(client: FlaskClient, database: Database, *, tenant: str = TENANT, role: Role = Role.OPERATOR) -> Api:
    made = create_key(database, tenant=tenant, role=role)
    return Api(client, made.key, made.id)


@pytest.fixture
def api(client: FlaskClient, database: Database) -> Api:
    """An operator of the tenant."""
    return login(client, database)


@pytest.fixture
def viewer(client: FlaskClient, database: Database) -> Api:
    return login(client, database, role=Role.VIEWER)


@pytest.fixture
def admin(client: FlaskClient, database: Database) -> Api:
    return login(client, database, role=Role.ADMIN)


@pytest.fixture
def stranger(client: FlaskClient, database: Database) -> Api:
    """An admin of another tenant."""
    return login(client, database, tenant="globex", role=Role.ADMIN)
