"""Mux: video assets made from an input.

The input is the body of ``POST /video/v1/assets``. ``api_token`` is ``<token id>:<token secret>``.

What is known, and how well:

- Basic authentication, paths, ``{"data": {…}}``, status words, ``errors.messages``, static renditions and their states,
  ``master.url``, ``meta.external_id``, cursor pages: vendor source (mux_python 5.1.2).
- ``Mux-Signature: t=,v1=`` (the ``stripe`` scheme) over the body, which is the whole asset, so it is believed; ``id``
  names the delivery; deliveries are tried for 24 h, and repeated even after a 2xx: vendor documentation.
- Webhooks go to one URL per environment. Our token travels as ``meta.external_id`` and comes back in the asset, so an
  event finds its attempt even where the submit's answer was lost; the list is searched for it too. The list's
  order is not documented: its first pages are read, and an empty answer proves nothing.
- No idempotency key: none found. GETs of assets are rate limited and webhooks advised: vendor documentation.
- ``DELETE`` removes an asset, at work or not: vendor source. A master's URL is good for 24 h: vendor source.
- ``https://stream.mux.com/<playback id>/<rendition>`` is where a public rendition lies: vendor documentation.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import timedelta

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, UnknownOutcome, Unusable
from jobs.core.observations import JobError, Json, Link, Progress
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers import answers
from jobs.providers.calls import Calls, about, accepted_id, credential_of, dump, is_ended, path_segment
from jobs.providers.port import AlreadyFinished, Capabilities, Report, SubmitRequest, WebhookReport

STATES: Mapping[str, JobState] = {
    "preparing": JobState.RUNNING,
    "ready": JobState.SUCCEEDED,
    "errored": JobState.FAILED,
}

CAPABILITIES = Capabilities(
    search=True,
    callback_per_request=False,
    polls_min_interval=timedelta(seconds=5),
    result_ttl=timedelta(hours=24),
)

STREAM_URL = "https://stream.mux.com"
_ASSETS = "/video/v1/assets"
_PAGE_ITEMS = 100
_MAX_PAGES = 3
# Events that show an asset as it stands; the others (tracks, warnings, deletions) are of no interest.
_ASSET_EVENTS = frozenset(
    {
        "video.asset.created",
        "video.asset.ready",
        "video.asset.errored",
        "video.asset.static_renditions.ready",
        "video.asset.static_rendition.ready",
        "video.asset.master.ready",
    }
)


class MuxProvider:
    """One environment at Mux."""

    capabilities = CAPABILITIES

    def __init__(self, config: ProviderConfig, client: HttpClient, clock: Clock) -> None:
        """Dials nobody yet."""
        basic = base64.b64encode(credential_of(config).encode()).decode()
        self._calls = Calls(client, clock, config.base_url.rstrip("/"), {"Authorization": f"Basic {basic}"})

    def submit(self, request: SubmitRequest) -> Report:
        """See the port. ``meta.external_id`` is ours; everything else of the input is sent as it is."""
        own = request.input.get("meta")
        meta = {**(own if isinstance(own, Mapping) else {}), "external_id": request.token}
        answer = self._calls.submit(_ASSETS, body=dump({**request.input, "meta": meta}))
        data = answer.get("data")
        if not isinstance(data, Mapping):
            raise UnknownOutcome("accepted without data")
        return Report(accepted_id(data, "id"))

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:  # noqa: ARG002 - the port's shape
        """See the port."""
        return tuple(_report(asset) for asset in self._list_assets() if _token_of(asset) == token)

    def _list_assets(self) -> Iterator[answers.Body]:
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = self._calls.read(
                _ASSETS, params={"limit": str(_PAGE_ITEMS)} | ({"cursor": cursor} if cursor else {})
            )
            items = page.get("data")
            if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
                raise Transient("not a list of assets")
            yield from items
            cursor = answers.id_of(page.get("next_cursor"))
            if cursor is None:
                return

    def status(self, provider_job_id: str) -> Report:
        """See the port."""
        data = self._calls.read(f"{_ASSETS}/{path_segment(provider_job_id)}").get("data")
        if not isinstance(data, Mapping):
            raise Transient("not an answer: it has no data")
        return _report(about(data, run=provider_job_id))

    def cancel(self, provider_job_id: str) -> Report | None:
        """See the port. The asset is read first: a DELETE that comes after its end would destroy it."""
        if is_ended(self.status(provider_job_id)):
            raise AlreadyFinished("the asset is finished; a DELETE now would erase it")
        self._calls.remove(f"{_ASSETS}/{path_segment(provider_job_id)}")
        return Report(provider_job_id, JobState.CANCELED)

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:  # noqa: ARG002 - the port's shape
        """See the port."""
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        delivery_id, data = answers.id_of(body.get("id")), body.get("data")
        if body.get("type") not in _ASSET_EVENTS or not isinstance(data, Mapping):
            return WebhookReport(None, delivery_id, ignored_because="not about an asset's state")
        if answers.id_of(data.get("id")) is None or "status" not in data:
            return WebhookReport(None, delivery_id, ignored_because="names no asset, or no status")
        return WebhookReport(_report(data), delivery_id, token=_token_of(data))


def _report(asset: answers.Body) -> Report:
    state, unknown = answers.status_of(asset, "status", states=STATES)
    waits = state is JobState.SUCCEEDED and _is_preparing_files(asset)
    done = state is JobState.SUCCEEDED and not waits
    return Report(
        provider_job_id=answers.id_of(asset.get("id")),
        state=JobState.RUNNING if waits else state,
        unknown_status=unknown,
        progress=Progress(None, "preparing files") if waits else None,
        output=dict(asset) if done else None,
        error=_error(asset.get("errors")) if state is JobState.FAILED else None,
        links=_links(asset) if done else (),
    )


def _is_preparing_files(asset: answers.Body) -> bool:
    """An asset can be played before the files asked for with it can be fetched; only then is the work done."""
    renditions, master = _object(asset.get("static_renditions")), _object(asset.get("master"))
    return "preparing" in {part.get("status") for part in (renditions, master, *_files(renditions))}


def _links(asset: answers.Body) -> tuple[Link, ...]:
    playback = next(
        (item.get("id") for item in _objects(asset.get("playback_ids")) if item.get("policy") == "public"), None
    )
    master = _object(asset.get("master")).get("url")
    links = [Link(master, "video/mp4")] if isinstance(master, str) else []
    if isinstance(playback, str):
        links += [link for file in _files(_object(asset.get("static_renditions"))) if (link := _link(playback, file))]
    return tuple(links)


def _link(playback: str, file: answers.Body) -> Link | None:
    name = file.get("name")
    if not isinstance(name, str) or file.get("status", "ready") != "ready":
        return None
    size = file.get("filesize")
    return Link(
        f"{STREAM_URL}/{path_segment(playback)}/{path_segment(name)}",
        "audio/mp4" if name.endswith(".m4a") else "video/mp4",
        size_bytes=int(size)
        if isinstance(size, str) and size.isascii() and size.isdigit() and len(size) < 19
        else None,
    )


def _error(errors: object) -> JobError | None:
    found = _object(errors)
    messages = found.get("messages")
    message = "; ".join(str(text) for text in messages) if isinstance(messages, list) else None
    return answers.error_of({"code": found.get("type"), "message": message})


def _token_of(asset: answers.Body) -> str | None:
    return answers.id_of(_object(asset.get("meta")).get("external_id"))


def _files(renditions: answers.Body) -> list[answers.Body]:
    return _objects(renditions.get("files"))


def _object(value: object) -> answers.Body:
    return value if isinstance(value, Mapping) else {}


def _objects(value: object) -> list[answers.Body]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
