"""``/v1/deliveries``: what was sent where, and what came of each try."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import Response

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import principal, runtime
from webhooks.outgoing import deliveries
from webhooks.outgoing.delivery_rows import DeliveryFilter
from webhooks.outgoing.models import DeliveriesQuery, Delivery, DeliveryPage

blueprint = APIBlueprint("deliveries", __name__, url_prefix="/v1/deliveries", tag="Endpoints")
guard(blueprint)


@blueprint.get("")
@blueprint.input(DeliveriesQuery, location="query", arg_name="query")
@blueprint.output(DeliveryPage)
def list_deliveries(query: DeliveriesQuery) -> Response:
    """List deliveries, newest first; also those of a job's `callback_url`."""
    wanted = DeliveryFilter(query.endpoint, query.job, query.state)
    found = deliveries.read_deliveries(
        runtime().database, principal(), wanted=wanted, cursor=query.cursor, limit=query.limit
    )
    return answer(found)


@blueprint.get("/<delivery_id>")
@blueprint.output(Delivery)
def show(delivery_id: str) -> Response:
    """Read a delivery with every attempt."""
    return answer(deliveries.read_delivery(runtime().database, principal(), delivery_id))


@blueprint.post("/<delivery_id>/resend")
@blueprint.output(Delivery, status_code=202)
def resend(delivery_id: str) -> Response:
    """Send it again now: same id, same bytes, signed anew."""
    return answer(deliveries.resend(runtime(), principal(), delivery_id), 202)
