"""``/v1/providers``: how the accounts at providers are doing; pausing and resuming one."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import Response

from jobs.api.answers import answer
from jobs.api.auth import guard, require
from jobs.api.context import runtime, tenant
from jobs.api.documents import Provider, ProviderPage
from jobs.services.accounts.overview import pause, read_accounts, resume
from jobs.services.keys import Role

blueprint = APIBlueprint("providers", __name__, url_prefix="/v1/providers", tag="Providers")
guard(blueprint)


@blueprint.get("")
@blueprint.output(ProviderPage)
def list_providers() -> Response:
    """List the provider entries you may use, with your jobs counted."""
    return answer(read_accounts(runtime(), tenant=tenant()))


@blueprint.post("/<name>/pause")
@blueprint.output(Provider)
def pause_provider(name: str) -> Response:
    """Send no more requests to a provider; its webhooks are still taken. Needs the role admin."""
    require(Role.ADMIN)
    return answer(pause(runtime(), name, tenant=tenant()))


@blueprint.post("/<name>/resume")
@blueprint.output(Provider)
def resume_provider(name: str) -> Response:
    """End a pause. Needs the role admin."""
    require(Role.ADMIN)
    return answer(resume(runtime(), name, tenant=tenant()))
