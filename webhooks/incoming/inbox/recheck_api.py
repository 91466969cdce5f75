"""``POST /v1/providers/{name}/recheck``: after a corrected secret, what was refused is brought in."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import Response, current_app
from pydantic import Field

from jobs.api.answers import answer
from jobs.api.auth import guard, require
from jobs.api.context import runtime, tenant
from jobs.api.documents import Document
from jobs.services.creation import provider_for
from jobs.services.keys import Role
from webhooks.incoming.inbox.api import INTAKE
from webhooks.incoming.inbox.rechecking import recheck

blueprint = APIBlueprint("recheck", __name__, url_prefix="/v1/providers", tag="Providers")
guard(blueprint)


class Rechecked(Document):
    """What became of a provider's refused requests."""

    provider: str
    checked: int
    taken: int = Field(description="Authentic by today's secrets; now in the inbox, or known there already")
    refused: int = Field(description="Refused again; kept until they are three days old")
    accepted: int
    duplicate: int
    conflict: int
    ignored: int
    quarantined: int


@blueprint.post("/<name>/recheck")
@blueprint.output(Rechecked)
def recheck_provider(name: str) -> Response:
    """Check requests that were refused with today's secrets, at the time they came. Needs the role admin."""
    require(Role.ADMIN)
    provider_for(runtime(), tenant(), name)
    return answer(recheck(runtime(), current_app.extensions[INTAKE].admission, name))
