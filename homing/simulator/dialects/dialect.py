"""What every dialect needs: a door with a credential, a model for a name, an order for a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, jsonify, request

from homing.simulator.callbacks import Voice
from homing.simulator.calls import SayError
from homing.simulator.models import MODELS
from homing.simulator.provider import Provider
from homing.simulator.run import Run, Status
from homing.simulator.webhooks import Delivery, Habits, Seal, other_secret
from jobs.ids import new_id

View = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider's way to speak.

    Attributes:
        pages: its routes, to be mounted under its name.
        voice: what it sends when a run changes.
    """

    pages: Blueprint
    voice: Voice


def open_pages(
    provider: Provider, name: str, *, error: SayError, header: str = "Authorization", scheme: str = "Bearer "
) -> Blueprint:
    """A blueprint that asks for the simulator's `api_token`, where it has one.

    Args:
        provider: whose token it is.
        name: of the dialect.
        error: how the dialect refuses.
        header: where the credential stands.
        scheme: what stands before it, its blank included.
    """
    pages = Blueprint(f"dialect_{name}", __name__)

    @pages.before_request
    def check_token() -> Response | None:
        token = provider.config.api_token
        if token is None or request.path.endswith("/jwks.json") or request.headers.get(header) == f"{scheme}{token}":
            return None
        return error(401, "unauthenticated", "you did not pass a valid authentication token")

    return pages


def route(pages: Blueprint, rules: Iterable[tuple[str, str, View]]) -> None:
    """Add views under (method, rule); one view may serve several rules."""
    for method, rule, view in rules:
        pages.add_url_rule(rule, f"{method} {rule}".replace(".", "_"), view, methods=[method])


def read_body() -> dict[str, Any] | None:
    """The request's JSON object, if it is one."""
    body = request.get_json(force=True, silent=True)
    return body if isinstance(body, dict) else None


def choose_model(name: object, *, default: str) -> str:
    """The simulator's model of a vendor's model name: `owner/video:1` is `video`; any other name is the default."""
    last = name.split(":")[0].rstrip("/").rsplit("/", 1)[-1] if isinstance(name, str) else ""
    return last if last in MODELS else default


def reference_of(callback_url: object) -> str | None:
    """What tells a client's submits apart in the ledger: the last part of its callback URL."""
    return callback_url.split("?")[0].rstrip("/").rsplit("/", 1)[-1] if isinstance(callback_url, str) else None


def fields_of(value: object, *, default: Mapping[str, object]) -> dict[str, object]:
    """A model's input out of a vendor's: what is given, and what our model needs besides."""
    given = value if isinstance(value, Mapping) else {}
    return {**{name: item for name, item in default.items() if name not in given}, **given}


def file_urls(provider: Provider, run: Run) -> list[str]:
    """Fresh URLs of a run's result files."""
    return [str(file["url"]) for file in provider.files.describe(run, base_url=provider.base_url)]


def say_detail(status: int, code: str, message: str) -> Response:  # noqa: ARG001 - no code is named
    """A refusal in the words of those who name nothing but a detail."""
    answer = jsonify(detail=message)
    answer.status_code = status
    return answer


def address(
    provider: Provider, run: Run, status: Status, document: Mapping[str, object], *, seal: Seal, habits: Habits
) -> Delivery | None:
    """A message to whoever asked for word of a run; none where nobody did.

    Args:
        provider: who sends it.
        run: what it is about.
        status: that it tells of.
        document: the message.
        seal: how it is signed.
        habits: how often it is tried.
    """
    url = run.order.callback_url
    if url is None:
        return None
    event_id = new_id("msg", at=provider.clock.now())
    return Delivery(event_id, run.id, status.value, url, json.dumps(document).encode(), seal=seal, habits=habits)


def standard_seal(provider: Provider) -> Seal:
    """Standard Webhooks under the simulator's own secret, whatever scheme its own dialect signs by."""
    secret = provider.config.webhook_secret
    return Seal("standard-webhooks", secret, other_secret(secret))
