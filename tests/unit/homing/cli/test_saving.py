"""`homing get --save`: result files come whole, are named, and what is missing is said."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from homing.client import Homing
from homing.client.api import ApiClient
from homing.client.files import save_file
from tests.fakes.api import FakeApi
from tests.unit.homing.cli.conftest import Run

CONTENT = "a boat at dawn"


def a_file(number: int, **changes: Any) -> dict[str, Any]:
    digest = hashlib.sha256(CONTENT.encode()).hexdigest()
    known = {"id": f"art_{number}", "state": "stored", "content_type": "image/png", "sha256": digest, "reason": None}
    return {**known, **changes}


def with_files(api: FakeApi, *files: dict[str, Any]) -> None:
    api.on("GET /v1/jobs/job_1/artifacts", {"data": list(files), "next_cursor": None})
    for file in files:
        api.on(f"GET /v1/artifacts/{file['id']}/content", CONTENT)


def test_every_stored_file_is_saved_by_its_id_and_told(run: Run, api: FakeApi, tmp_path: Path) -> None:
    with_files(api, a_file(1), a_file(2, content_type="text/plain"))
    folder = tmp_path / "new" / "folder"

    ended = run("get", "job_1", "--save", str(folder))

    assert ended.code == 0
    assert ended.out.splitlines() == [str(folder / "art_1.png"), str(folder / "art_2.txt")]
    assert [(folder / name).read_text() for name in ("art_1.png", "art_2.txt")] == [CONTENT, CONTENT]
    assert len(list(folder.iterdir())) == 2


def test_what_is_not_stored_is_said_and_counts_as_failure(run: Run, api: FakeApi, tmp_path: Path) -> None:
    with_files(api, a_file(1), a_file(2, state="rejected", reason="it is text/html"))

    ended = run("get", "job_1", "--save", str(tmp_path), "--json")

    assert ended.code == 1
    assert [file["path"] for file in ended.document["data"]] == [str(tmp_path / "art_1.png"), None]
    assert "art_2 is rejected: it is text/html" in run("get", "job_1", "--save", str(tmp_path)).err


def test_a_job_without_files_is_said(run: Run, api: FakeApi, tmp_path: Path) -> None:
    with_files(api)

    ended = run("get", "job_1", "--save", str(tmp_path))

    assert (ended.code, ended.out, ended.err) == (0, "", "no result files\n")


@pytest.mark.parametrize(
    ("change", "words"), [({"sha256": "0" * 64}, "came damaged"), ({"id": "../art_9"}, "no such thing")]
)
def test_what_comes_damaged_or_not_at_all_leaves_nothing(
    run: Run, api: FakeApi, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    with_files(api, a_file(1, **change))
    folder = tmp_path / "files"

    ended = run("get", "job_1", "--save", str(folder))

    assert ended.code == 1
    assert words in ended.err
    assert not list(folder.iterdir())


@pytest.mark.parametrize("as_json", [False, True])
def test_what_was_saved_before_another_failed_is_told(run: Run, api: FakeApi, tmp_path: Path, as_json: bool) -> None:
    with_files(api, a_file(1), a_file(2, sha256="0" * 64), a_file(3, state="pending"))

    ended = run("get", "job_1", "--save", str(tmp_path), *(["--json"] if as_json else []))

    assert ended.code == 1
    assert "art_2 came damaged" in ended.err
    if as_json:
        assert [file["path"] for file in ended.document["data"]] == [str(tmp_path / "art_1.png"), None, None]
    else:
        assert ended.out.splitlines() == [str(tmp_path / "art_1.png")]
        assert "art_2 was not saved" in ended.err
        assert "art_3 is pending" in ended.err


def test_files_and_history_are_asked_for_apart(run: Run, api: FakeApi, tmp_path: Path) -> None:
    ended = run("get", "job_1", "--save", str(tmp_path), "--history")

    assert ended.code == 2
    assert "one of the two" in ended.err


def test_a_file_whose_answer_failed_is_asked_for_again(run: Run, api: FakeApi, tmp_path: Path) -> None:
    with_files(api, a_file(1))
    api.answers["GET /v1/artifacts/art_1/content"].insert(0, (503, {"title": "away"}))

    assert run("get", "job_1", "--save", str(tmp_path)).code == 0
    assert (tmp_path / "art_1.png").read_text() == CONTENT


def test_a_folder_that_cannot_be_written_is_a_usage_error(run: Run, api: FakeApi, tmp_path: Path) -> None:
    with_files(api, a_file(1))
    (tmp_path / "taken").write_text("a file")

    ended = run("get", "job_1", "--save", str(tmp_path / "taken"))

    assert ended.code == 2
    assert "cannot write into" in ended.err


def test_two_that_save_one_file_at_once_both_have_it_whole(tmp_path: Path) -> None:
    file = a_file(1)

    class Slow:
        """While its bytes come, somebody else saves the same file."""

        def download(self, _path: str, *, into: BinaryIO) -> None:
            into.write(CONTENT[:5].encode())
            into.flush()
            save_file(cast(ApiClient, Quick()), file, tmp_path)
            assert (tmp_path / "art_1.png").read_text() == CONTENT
            into.write(CONTENT[5:].encode())

    class Quick:
        def download(self, _path: str, *, into: BinaryIO) -> None:
            into.write(CONTENT.encode())

    saved = save_file(cast(ApiClient, Slow()), file, tmp_path)

    assert saved.read_text() == CONTENT
    assert list(tmp_path.iterdir()) == [saved]


def test_a_program_saves_the_same_files(api: FakeApi, tmp_path: Path) -> None:
    with_files(api, a_file(1), a_file(2, state="pending"))

    with Homing() as fleet:
        assert fleet.save_files("job_1", tmp_path) == (tmp_path / "art_1.png",)
