"""Subscribing Python functions to events."""

from __future__ import annotations

import pytest

import homing
from homing import Event, on
from jobs.handlers import Handler, HandlerRegistry, registry


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})


def test_a_function_is_registered_and_stays_what_it_was() -> None:
    @on("job.succeeded", provider="renders", transactional=True)
    def book(event: Event) -> str:
        return event.id

    (found,) = registry.wanting("job.succeeded", "renders")
    assert found.function is book
    assert found.transactional
    assert found.name == f"{__name__}.{book.__qualname__}"


@pytest.mark.parametrize(
    ("types", "provider", "asked", "wanted"),
    [
        (("job.succeeded",), None, ("job.succeeded", "renders"), True),
        (("job.succeeded",), None, ("job.failed", "renders"), False),
        (("job.*",), None, ("job.failed", None), True),
        (("job.*", "heartbeat.missed"), None, ("heartbeat.missed", None), True),
        (("*",), None, ("dead_letter.created", None), True),
        (("job.*",), "renders", ("job.failed", "renders"), True),
        (("job.*",), "renders", ("job.failed", "voices"), False),
        (("job.*",), "renders", ("job.failed", None), False),
    ],
)
def test_a_handler_wants_its_types_at_its_provider(
    types: tuple[str, ...], provider: str | None, asked: tuple[str, str | None], wanted: bool
) -> None:
    assert Handler("mine", types, print, provider).wants(*asked) is wanted


def test_a_module_imported_twice_registers_once() -> None:
    def handle(event: Event) -> None: ...

    on("job.*")(handle)
    on("job.*")(handle)

    assert len(list(registry.wanting("job.created", None))) == 1


def test_two_functions_cannot_share_a_name() -> None:
    own = HandlerRegistry()
    own.add(Handler("mine", ("job.*",), print))

    with pytest.raises(ValueError, match="two handlers are named 'mine'"):
        own.add(Handler("mine", ("job.*",), len))


def test_a_type_that_does_not_exist_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'job\.succeeded'"):
        on("job.suceeded")(print)


def test_a_subscription_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="say which events"):
        on()


def test_a_handler_that_is_not_loaded_is_not_found() -> None:
    assert HandlerRegistry().find("gone") is None


def test_plugins_need_one_import() -> None:
    assert set(homing.__all__) == {"Event", "on"}
