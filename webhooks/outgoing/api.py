"""``/v1/endpoints`` and ``/v1/signing-secret``: who is told what."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import Response

from jobs.api.answers import answer
from jobs.api.auth import guard, require
from jobs.api.context import principal, runtime, tenant
from jobs.api.fields import PageQuery
from jobs.services.keys import Role
from webhooks.outgoing import endpoints
from webhooks.outgoing.deliveries import send_test
from webhooks.outgoing.models import (
    ChangeEndpointBody,
    Delivery,
    Endpoint,
    EndpointPage,
    EndpointWithSecret,
    NewEndpointBody,
    RecoverBody,
    RotateBody,
    SigningSecret,
)
from webhooks.outgoing.tenant_secrets import read_signing_secret

blueprint = APIBlueprint("endpoints", __name__, url_prefix="/v1/endpoints", tag="Endpoints")
secrets = APIBlueprint("signing_secrets", __name__, url_prefix="/v1/signing-secret", tag="Endpoints")
guard(blueprint)
guard(secrets)


@blueprint.post("")
@blueprint.input(NewEndpointBody, location="json", arg_name="body")
@blueprint.output(EndpointWithSecret, status_code=201)
def create(body: NewEndpointBody) -> Response:
    """Have events sent to a URL. The answer shows the secret they are signed with; no other answer does."""
    made = endpoints.create_endpoint(runtime(), principal(), body.to_new_endpoint())
    return answer(made, 201, headers={"Location": f"/v1/endpoints/{made['id']}"})


@blueprint.get("")
@blueprint.input(PageQuery, location="query", arg_name="query")
@blueprint.output(EndpointPage)
def list_endpoints(query: PageQuery) -> Response:
    """List endpoints, newest first."""
    found = endpoints.read_endpoints(runtime().database, principal(), cursor=query.cursor, limit=query.limit)
    return answer(found)


@blueprint.get("/<endpoint_id>")
@blueprint.output(Endpoint)
def show(endpoint_id: str) -> Response:
    """Read an endpoint and its health."""
    return answer(endpoints.read_endpoint(runtime().database, principal(), endpoint_id))


@blueprint.patch("/<endpoint_id>")
@blueprint.input(ChangeEndpointBody, location="json", arg_name="body")
@blueprint.output(Endpoint)
def change(endpoint_id: str, body: ChangeEndpointBody) -> Response:
    """Change what is named. Deliveries that wait go to the new URL."""
    return answer(endpoints.change_endpoint(runtime(), principal(), endpoint_id, body.to_columns()))


@blueprint.delete("/<endpoint_id>")
@blueprint.output({}, status_code=204, description="Deleted")
def delete(endpoint_id: str) -> Response:
    """Delete an endpoint; what waits for it is dropped."""
    endpoints.delete_endpoint(runtime(), principal(), endpoint_id)
    return Response(status=204)


@blueprint.post("/<endpoint_id>/disable")
@blueprint.output(Endpoint)
def disable(endpoint_id: str) -> Response:
    """Send nothing more; events are kept, and `recover` brings them."""
    return answer(endpoints.disable_endpoint(runtime(), principal(), endpoint_id))


@blueprint.post("/<endpoint_id>/enable")
@blueprint.output(Endpoint)
def enable(endpoint_id: str) -> Response:
    """Send again, from now on; `recover` brings what was missed."""
    return answer(endpoints.enable_endpoint(runtime(), principal(), endpoint_id))


@blueprint.post("/<endpoint_id>/rotate-secret")
@blueprint.input(RotateBody, location="json", arg_name="body")
@blueprint.output(EndpointWithSecret)
def rotate(endpoint_id: str, body: RotateBody) -> Response:
    """Take a new secret. For 24 hours the old one signs as well."""
    return answer(endpoints.rotate_secret(runtime(), principal(), endpoint_id, body.secret))


@blueprint.post("/<endpoint_id>/test")
@blueprint.output(Delivery, status_code=202)
def test(endpoint_id: str) -> Response:
    """Send an `endpoint.test`; the delivery shows what came of it."""
    return answer(send_test(runtime(), principal(), endpoint_id), 202)


@blueprint.post("/<endpoint_id>/recover")
@blueprint.input(RecoverBody, location="json", arg_name="body")
@blueprint.output(Endpoint, status_code=202)
def recover(endpoint_id: str, body: RecoverBody) -> Response:
    """Send again what the endpoint has missed in a span: held or failed, however much, at its own rate."""
    done = endpoints.recover_endpoint(runtime(), principal(), endpoint_id, since=body.since, until=body.until)
    return answer(done, 202)


@secrets.get("")
@secrets.output(SigningSecret)
def signing_secret() -> Response:
    """Read the secret that signs the callbacks of your jobs. Needs the role operator."""
    require(Role.OPERATOR)
    return answer({"secret": read_signing_secret(runtime(), tenant())})
