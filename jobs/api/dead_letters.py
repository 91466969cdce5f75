"""``/v1/dead-letters``: what exhausted its tries, and what a person decides about it."""

from __future__ import annotations

from typing import Annotated, Any

from apiflask import APIBlueprint
from flask import Response, request
from pydantic import Field

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import principal, runtime
from jobs.api.documents import DeadLetter, DeadLetterPage, Noop, Redrive, RedrivePage
from jobs.api.fields import PageQuery
from jobs.api.letter_fields import LetterFields, RedriveBody
from jobs.services.creation import KEY_HEADER
from jobs.services.letters.bulk_redrives import begin_redrive, cancel_redrive, read_redrive, read_redrives
from jobs.services.letters.dead_letters import Decided, discard, read_letter, read_letters, redrive

blueprint = APIBlueprint("dead_letters", __name__, url_prefix="/v1/dead-letters", tag="Dead letters")
guard(blueprint)

_NOOP: dict[int | str, dict[str, str | dict[str, dict[str, Any]]]] = {
    200: {
        "description": "There was nothing to do; `why` says why",
        "content": {"application/json": {"schema": Noop.model_json_schema()}},
    }
}


class LettersQuery(PageQuery, LetterFields):
    """Which dead letters."""

    open: Annotated[bool, Field(description="Whether it still waits for a decision")] | None = None


@blueprint.get("")
@blueprint.input(LettersQuery, location="query", arg_name="query")
@blueprint.output(DeadLetterPage)
def list_letters(query: LettersQuery) -> Response:
    """List dead letters, newest first."""
    wanted = query.to_filter(is_open=query.open)
    return answer(read_letters(runtime().database, principal(), wanted=wanted, cursor=query.cursor, limit=query.limit))


@blueprint.post("/redrive")
@blueprint.input(RedriveBody, location="json", arg_name="body")
@blueprint.output(Redrive, status_code=202, description="Durable; a sweep works it off at its rate")
def redrive_many(body: RedriveBody) -> Response:
    """Redrive every dead letter that is open now and fits the filters; those that come later are left alone.

    Send an `Idempotency-Key` of your own (1 to 255 visible ASCII characters): the same request with the same key
    answers the same redrive, with `Idempotent-Replayed: true`.
    """
    begun = begin_redrive(runtime(), principal(), body.to_redrive(), key=request.headers.get(KEY_HEADER))
    headers = {"Location": f"/v1/dead-letters/redrives/{begun.redrive['id']}"}
    if begun.replayed:
        headers["Idempotent-Replayed"] = "true"
    return answer(begun.redrive, 202, headers=headers)


@blueprint.get("/redrives")
@blueprint.input(PageQuery, location="query", arg_name="query")
@blueprint.output(RedrivePage)
def list_redrives(query: PageQuery) -> Response:
    """List redrives of many, newest first."""
    return answer(read_redrives(runtime().database, principal(), cursor=query.cursor, limit=query.limit))


@blueprint.get("/redrives/<redrive_id>")
@blueprint.output(Redrive)
def show_redrive(redrive_id: str) -> Response:
    """Read a redrive of many: how far it has come."""
    return answer(read_redrive(runtime().database, principal(), redrive_id))


@blueprint.post("/redrives/<redrive_id>/cancel")
@blueprint.output(Redrive)
def end_redrive(redrive_id: str) -> Response:
    """End a redrive of many before its end; what it has done stays done."""
    return answer(cancel_redrive(runtime(), principal(), redrive_id))


@blueprint.get("/<letter_id>")
@blueprint.output(DeadLetter)
def show(letter_id: str) -> Response:
    """Read a dead letter, with its evidence."""
    return answer(read_letter(runtime().database, principal(), letter_id))


@blueprint.post("/<letter_id>/redrive")
@blueprint.output(DeadLetter, status_code=202, description="It is due again")
@blueprint.doc(responses=_NOOP)
def redrive_letter(letter_id: str) -> Response:
    """Make the failed thing due again; acts once, however often it is asked for."""
    return _decided(redrive(runtime(), principal(), letter_id), done=202)


@blueprint.post("/<letter_id>/discard")
@blueprint.output(DeadLetter, description="Discarded; or nothing to do, and why")
def discard_letter(letter_id: str) -> Response:
    """Decide that nothing will be done; the letter stays as history."""
    return _decided(discard(runtime(), principal(), letter_id), done=200)


def _decided(decided: Decided, *, done: int) -> Response:
    if decided.why_not is not None:
        return answer({"status": "noop", "why": decided.why_not})
    return answer(decided.letter, done)
