from __future__ import annotations

import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel

from homing.web import create_app
from jobs.api import documents
from jobs.core.states import JobState
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter
from tests.factories import seen
from tests.integration.api.conftest import TENANT, Api


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json
    return found


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(document).validate()


def test_every_route_is_in_the_document(runtime: Runtime, document: dict[str, Any]) -> None:
    hidden = ("/static/", "/docs", "/openapi.json", "/webhooks/")
    routes = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in create_app(runtime).url_map.iter_rules()
        for method in rule.methods or ()
        if method not in ("HEAD", "OPTIONS") and not rule.rule.startswith(hidden)
    }

    described = {(path, method) for path, operations in document["paths"].items() for method in operations}

    assert described - routes == {("/webhooks/{provider}", "post"), ("/webhooks/{provider}/{token}", "post")}
    assert routes <= described


def test_every_guarded_route_asks_for_a_key_and_names_its_problems(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            guarded = path.startswith("/v1/")
            assert operation.get("security") == ([{"api_key": []}] if guarded else None)
            if guarded:
                problem = operation["responses"]["401"]["content"]["application/problem+json"]["schema"]
                assert problem == {"$ref": "#/components/schemas/Problem"}
            assert operation["summary"], path


def test_the_key_of_a_request_is_described(document: dict[str, Any]) -> None:
    names = [parameter["name"] for parameter in document["paths"]["/v1/jobs"]["post"]["parameters"]]

    assert "Idempotency-Key" in names


def test_answers_are_what_the_document_says(api: Api, runtime: Runtime, database: Database) -> None:
    job = api.submit().json
    with database.write() as tx:
        runtime.observer.observe(tx, job["id"], seen(JobState.SUCCEEDED))
        runtime.observer.observe(tx, job["id"], seen(JobState.FAILED))
        dead_letter(tx, "submit", job["id"], reason="r", attempts=1, tenant=TENANT)
    relay(runtime)
    answers: list[tuple[type[BaseModel], str]] = [
        (documents.Job, f"/v1/jobs/{job['id']}"),
        (documents.JobPage, "/v1/jobs"),
        (documents.TransitionPage, f"/v1/jobs/{job['id']}/transitions"),
        (documents.EventPage, "/v1/events"),
        (documents.DeadLetterPage, "/v1/dead-letters"),
        (documents.ProviderPage, "/v1/providers"),
    ]

    for model, path in answers:
        answer = api.get(path)
        assert answer.status_code == 200
        model.model_validate_json(answer.get_data())
        assert answer.json.get("data", [None]), path
    documents.Job.model_validate_json(api.submit().get_data())


def test_the_reference_loads_nothing_from_elsewhere(client: FlaskClient) -> None:
    page = client.get("/docs")

    assert page.status_code == 200
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert links
    assert all(link.startswith("/") and not link.startswith("//") for link in links)
    for link in links:
        assert client.get(link).status_code == 200, link


def test_the_references_files_have_their_types(client: FlaskClient) -> None:
    types = {name: client.get(f"/docs/{name}").mimetype for name in ("swagger-ui-bundle.js", "swagger-ui.css")}

    assert types == {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


@pytest.mark.parametrize("name", ["page.html", "__init__.py", "..%2fweb.py", "swagger-ui.js.map"])
def test_only_the_references_own_files_are_served(client: FlaskClient, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404
