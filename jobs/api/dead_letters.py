"""``/v1/dead-letters``: what exhausted its tries, and what a person decides about it."""

from __future__ import annotations

from typing import Annotated, Any

from apiflask import APIBlueprint
from flask import Response
from pydantic import Field

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import principal, runtime
from jobs.api.documents import DeadLetter, DeadLetterPage, Noop
from jobs.api.fields import PageQuery, ShortText
from jobs.services.dead_letters import Decided, LetterFilter, discard, read_letter, read_letters, redrive

blueprint = APIBlueprint("dead_letters", __name__, url_prefix="/v1/dead-letters", tag="Dead letters")
guard(blueprint)

_NOOP: dict[int | str, dict[str, str | dict[str, dict[str, Any]]]] = {
    200: {
        "description": "There was nothing to do; `why` says why",
        "content": {"application/json": {"schema": Noop.model_json_schema()}},
    }
}


class LettersQuery(PageQuery):
    """Which dead letters."""

    kind: Annotated[ShortText, Field(description="submit, poll, cancel, handler, event, inbox …")] | None = None
    job: ShortText | None = None
    open: Annotated[bool, Field(description="Whether it still waits for a decision")] | None = None


@blueprint.get("")
@blueprint.input(LettersQuery, location="query", arg_name="query")
@blueprint.output(DeadLetterPage)
def list_letters(query: LettersQuery) -> Response:
    """List dead letters, newest first."""
    wanted = LetterFilter(kind=query.kind, job_id=query.job, is_open=query.open)
    return answer(read_letters(runtime().database, principal(), wanted=wanted, cursor=query.cursor, limit=query.limit))


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
