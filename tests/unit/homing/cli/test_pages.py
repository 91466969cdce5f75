"""Lists: a page at a time, and how to go on."""

from __future__ import annotations

import pytest

from tests.fakes.api import FakeApi
from tests.unit.homing.cli.conftest import Run

PATHS = {"dead-letters": "/v1/dead-letters", "deliveries": "/v1/deliveries", "endpoints": "/v1/endpoints"}


@pytest.mark.parametrize("name", PATHS)
def test_a_list_says_how_to_go_on_only_where_it_does(run: Run, api: FakeApi, name: str) -> None:
    api.on(f"GET {PATHS[name]}", {"data": [{"id": "x_1", "events": ["job.*"]}], "next_cursor": "c2"})
    api.on(f"GET {PATHS[name]}", {"data": [], "next_cursor": None})

    first, last = run(name, "list"), run(name, "list", "--cursor", "c2")

    assert "x_1" in first.out
    assert first.err == "more: --cursor c2\n"
    assert (api.asked[-1].query["cursor"], last.err) == ("c2", "")
    assert last.out.startswith("no ")
