"""``/v1/jobs``: submit a job, read it, wait for it, end it."""

from __future__ import annotations

import math
from datetime import timedelta

from apiflask import APIBlueprint
from flask import Response, current_app, request

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.bodies import JobsQuery, NewJobBody, ResolveBody, WaitQuery
from jobs.api.context import principal, runtime, tenant
from jobs.api.documents import Job, JobPage, TransitionPage
from jobs.api.fields import PageQuery
from jobs.services.canceling import request_cancel
from jobs.services.creation import KEY_HEADER, create_job
from jobs.services.reading import SeenJob, read_job, read_jobs, read_transitions
from jobs.services.resolving import Resolution, resolve
from jobs.services.waiting import MAX_WAIT, WaitingRoom

WAITING_ROOM = "homing.waiting_room"

blueprint = APIBlueprint("jobs", __name__, url_prefix="/v1/jobs", tag="Jobs")
guard(blueprint)


@blueprint.post("")
@blueprint.input(NewJobBody, location="json", arg_name="body")
@blueprint.output(Job, status_code=202, description="Durable; it will come home")
def submit(body: NewJobBody) -> Response:
    """Submit a job.

    Send an `Idempotency-Key` of your own (1 to 255 visible ASCII characters): the same request with the same key
    answers the same job, with `Idempotent-Replayed: true`; another request with that key is a 422.
    """
    created = create_job(runtime(), tenant=tenant(), body=body.to_new_job(), key=request.headers.get(KEY_HEADER))
    headers = {"Location": f"/v1/jobs/{created.job['id']}"}
    if created.replayed:
        headers["Idempotent-Replayed"] = "true"
    return _tagged(answer(created.job, 202, headers=headers), created.job["version"])


@blueprint.get("")
@blueprint.input(JobsQuery, location="query", arg_name="query")
@blueprint.output(JobPage)
def list_jobs(query: JobsQuery) -> Response:
    """List jobs, newest first."""
    return answer(
        read_jobs(
            runtime().database,
            tenant=tenant(),
            wanted=query.to_filter(),
            cursor=query.cursor,
            limit=query.limit,
        )
    )


@blueprint.get("/<job_id>")
@blueprint.input(WaitQuery, location="query", arg_name="query")
@blueprint.output(Job)
def show(job_id: str, query: WaitQuery) -> Response:
    """Read a job, or wait for it to change.

    `ETag` is the version; `Retry-After` says when asking again is worth it. `?wait=30&since=<version>` answers as
    soon as the version is another one, else after 30 seconds; where too many wait already, at once.
    """
    seen = read_job(runtime().database, tenant=tenant(), job_id=job_id)
    since = seen.job["version"] if query.since is None else query.since
    if query.wait and since == seen.job["version"] and _wait(job_id, since, query.wait):
        seen = read_job(runtime().database, tenant=tenant(), job_id=job_id)
    return _shown(seen)


@blueprint.get("/<job_id>/transitions")
@blueprint.input(PageQuery, location="query", arg_name="query")
@blueprint.output(TransitionPage)
def list_transitions(job_id: str, query: PageQuery) -> Response:
    """Read a job's history: every observation that mattered, applied or not, oldest first."""
    return answer(
        read_transitions(runtime().database, tenant=tenant(), job_id=job_id, cursor=query.cursor, limit=query.limit)
    )


@blueprint.post("/<job_id>/cancel")
@blueprint.output(Job, status_code=202, description="Canceled, or will be once the provider confirms")
def cancel(job_id: str) -> Response:
    """End a job: at once if no submit was ever begun, else when the provider confirms."""
    request_cancel(runtime(), job_id, tenant=tenant())
    seen = read_job(runtime().database, tenant=tenant(), job_id=job_id)
    return _tagged(answer(seen.job, 202), seen.job["version"])


@blueprint.post("/<job_id>/resolve")
@blueprint.input(ResolveBody, location="json", arg_name="body")
@blueprint.output(Job)
def resolve_review(job_id: str, body: ResolveBody) -> Response:
    """End a review: `settle` names the state, `resubmit` opens a new attempt, `poll` asks again, `acknowledge`."""
    decided = Resolution(
        action=body.action,
        reason=body.reason,
        by=principal().key_id,
        state=body.state,
        provider_job_id=body.provider_job_id,
    )
    job = resolve(runtime(), job_id, tenant=tenant(), decided=decided)
    return _tagged(answer(job), job["version"])


def _wait(job_id: str, since: int, wait_s: int) -> bool:
    room: WaitingRoom = current_app.extensions[WAITING_ROOM]
    return room.wait(job_id, since=since, at_most=timedelta(seconds=min(wait_s, MAX_WAIT.seconds)))


def _shown(seen: SeenJob) -> Response:
    headers = {}
    if seen.ask_again_after is not None:
        headers["Retry-After"] = str(math.ceil(seen.ask_again_after.total_seconds()))
    response = _tagged(answer(seen.job, headers=headers), seen.job["version"])
    response.make_conditional(request)
    return response


def _tagged(response: Response, version: int) -> Response:
    response.set_etag(str(version))
    return response
