"""`GET /files/<run>/<name>`: serves results, some of them badly."""

from __future__ import annotations

import io

from flask import Blueprint, Response, request, send_file

from homing.simulator.faults import Fault
from homing.simulator.models import ResultFile
from homing.simulator.provider import Provider

_DENIED = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
_SORRY = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>Please try again.</body></html>"


def create_file_pages(provider: Provider) -> Blueprint:
    """The routes of the result files."""
    pages = Blueprint("files", __name__)

    @pages.get("/files/<run_id>/<name>")
    def download(run_id: str, name: str) -> Response:
        args = request.args
        if not provider.files.is_good(
            request.path, expires=args.get("expires", ""), signature=args.get("signature", "")
        ):
            return Response(_DENIED, status=403, mimetype="application/xml")
        file = provider.files.get(run_id, name)
        if file is None:
            return Response(_DENIED.replace("AccessDenied", "NoSuchKey"), status=404, mimetype="application/xml")
        return _serve(provider, file, run_id=run_id)

    return pages


def _serve(provider: Provider, file: ResultFile, *, run_id: str) -> Response:
    run = provider.runs.find(run_id)
    fault = run.faults.artifact if run is not None else None
    if fault in (Fault.TRUNCATED, Fault.WRONG_TYPE) and provider.files.count_download(run_id, file.name) == 0:
        provider.ledger.record_artifact(fault)
        if fault is Fault.WRONG_TYPE:
            return Response(_SORRY, mimetype="text/html")
        # A shorter length under a clean end: nothing but the promised size and digest gives it away.
        return Response(file.content[: len(file.content) // 2], mimetype=file.content_type)
    return send_file(io.BytesIO(file.content), mimetype=file.content_type, conditional=True)
