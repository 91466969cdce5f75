"""``/docs``: the API reference. Every file of it comes from this machine; nothing is fetched from elsewhere."""

from __future__ import annotations

from importlib import resources

from flask import Blueprint, Response, abort

#: Swagger UI draws with inline styles and data: images; scripts run from our own files only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MAX_AGE_S = 3600
#: Name in the URL → package and file, media type.
_FILES = {
    "swagger-ui-bundle.js": ("flask_swagger_ui", "dist/swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": ("flask_swagger_ui", "dist/swagger-ui.css", "text/css"),
    "favicon-32x32.png": ("flask_swagger_ui", "dist/favicon-32x32.png", "image/png"),
    "start.js": (__name__, "start.js", "text/javascript"),
}

blueprint = Blueprint("reference", __name__, url_prefix="/docs")


@blueprint.get("")
def page() -> Response:
    """The page."""
    body = resources.files(__name__).joinpath("page.html").read_bytes()
    return Response(body, content_type="text/html; charset=utf-8", headers={"Content-Security-Policy": POLICY})


@blueprint.get("/<name>")
def asset(name: str) -> Response:
    """A file of the page."""
    if name not in _FILES:
        abort(404)
    package, path, media_type = _FILES[name]
    body = resources.files(package).joinpath(path).read_bytes()
    return Response(body, content_type=media_type, headers={"Cache-Control": f"max-age={_MAX_AGE_S}"})
