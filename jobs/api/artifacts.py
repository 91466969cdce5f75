"""``/v1/jobs/{id}/artifacts`` and ``/v1/artifacts/{id}/content``: the result files that are safe in our store."""

from __future__ import annotations

import mimetypes

from apiflask import APIBlueprint
from flask import Response, request
from werkzeug.wsgi import FileWrapper

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import runtime, tenant
from jobs.api.documents import ArtifactList
from jobs.services.artifacts.content import Content, list_files, open_content

blueprint = APIBlueprint("artifacts", __name__, url_prefix="/v1", tag="Artifacts")
guard(blueprint)

_CHUNK_BYTES = 256 * 1024
#: What a browser shows without running anything in it.
_SHOWN = ("image", "video", "audio")


@blueprint.get("/jobs/<job_id>/artifacts")
@blueprint.output(ArtifactList)
def list_artifacts(job_id: str) -> Response:
    """List a job's result files; each is `pending` until it is `stored`, `rejected` or `expired`."""
    return answer({"data": list_files(runtime().database, tenant=tenant(), job_id=job_id), "next_cursor": None})


@blueprint.get("/artifacts/<artifact_id>/content")
@blueprint.doc(responses={200: "The file", 206: "A part of it", 304: "Not changed", 416: "No such part"})
def show_content(artifact_id: str) -> Response:
    """Read a result file, or a part of it: `Range` and `If-None-Match` are understood; `ETag` is its SHA-256."""
    content = open_content(runtime(), tenant=tenant(), artifact_id=artifact_id)
    response = Response(FileWrapper(content.file, _CHUNK_BYTES), direct_passthrough=True)
    response.call_on_close(content.file.close)
    response.headers.update(_headers(content))
    response.set_etag(content.sha256)
    response.make_conditional(request, accept_ranges=True, complete_length=content.size)
    return response


def _headers(content: Content) -> dict[str, str]:
    """Somebody else's bytes: a browser neither guesses their type nor runs what may be in them."""
    kind, _, subtype = content.content_type.partition("/")
    shown = "inline" if kind in _SHOWN and not subtype.startswith("svg") else "attachment"
    ending = mimetypes.guess_extension(content.content_type) or ""
    return {
        "Content-Type": content.content_type,
        "Content-Length": str(content.size),
        "Content-Disposition": f'{shown}; filename="{content.id}{ending}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-cache",
    }
