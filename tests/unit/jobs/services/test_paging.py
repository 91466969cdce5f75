from __future__ import annotations

import base64

import pytest

from jobs.core.errors import Unprocessable
from jobs.services.paging import number_place, page, text_place

ROWS = [{"id": f"job_{number}"} for number in range(5)]


def test_a_full_page_names_the_place_to_go_on_from() -> None:
    shown = page(ROWS[:3], limit=2, place="id", show=dict)

    assert [row["id"] for row in shown["data"]] == ["job_0", "job_1"]
    assert text_place(shown["next_cursor"]) == "job_1"


def test_the_last_page_names_none() -> None:
    assert page(ROWS[:2], limit=2, place="id", show=dict)["next_cursor"] is None


def test_numbers_go_on_from_their_cursor_else_from_the_start() -> None:
    cursor = page([{"id": 7}, {"id": 9}], limit=1, place="id", show=dict)["next_cursor"]

    assert number_place(cursor) == 7
    assert number_place(None, start=4) == 4


@pytest.mark.parametrize(
    "junk",
    ["", "%", "é", "====", "a", base64.urlsafe_b64encode(b"job'; --").decode(), "A" * 200, "YQ\n", "Ym9yaXMg"],
)
def test_junk_is_no_cursor_and_no_crash(junk: str) -> None:
    with pytest.raises(Unprocessable, match="cursor"):
        text_place(junk)


def test_a_cursor_of_another_list_is_refused_where_numbers_are_needed() -> None:
    cursor = base64.urlsafe_b64encode(b"job_1").decode().rstrip("=")

    with pytest.raises(Unprocessable):
        number_place(cursor)


def test_a_number_no_row_can_have_is_refused() -> None:
    cursor = base64.urlsafe_b64encode(b"9" * 30).decode().rstrip("=")

    with pytest.raises(Unprocessable):
        number_place(cursor)
