"""Where result files are kept: the local disk and an S3 server behave alike."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from jobs.config.settings import Settings
from jobs.services.artifacts.store import ArtifactStore, open_store

CONTENT = b"0123456789" * 100_000


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A bucket of an S3 server on this machine."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name, value in (("ACCESS_KEY_ID", "k"), ("SECRET_ACCESS_KEY", "s"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    fsspec.filesystem("s3", skip_instance_cache=True).makedirs("results", exist_ok=True)
    yield f"s3://results/{tmp_path.name}"  # what a server holds outlives it, in this process
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    server.stop()


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    url = request.getfixturevalue("s3") if request.param == "s3" else f"file://{tmp_path / 'store'}"
    return ArtifactStore(url, scratch=tmp_path / "scratch")


def keep(store: ArtifactStore, path: str, content: bytes = CONTENT) -> None:
    with store.receive() as (file, place):
        file.write(content)
        file.flush()
        store.keep(place, path)


def test_a_kept_file_is_read_from_any_place_in_it(store: ArtifactStore) -> None:
    keep(store, "job_1/art_1")

    with store.open("job_1/art_1") as file:
        file.seek(500_003)
        assert file.read(5) == b"34567"
        file.seek(0)
        assert file.read() == CONTENT


def test_a_file_that_was_not_kept_leaves_nothing(store: ArtifactStore, tmp_path: Path) -> None:
    with suppress(ConnectionError), store.receive() as (file, _place):
        file.write(CONTENT)
        raise ConnectionError("cut")

    with pytest.raises(FileNotFoundError):
        store.open("job_1/art_1")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_kept_file_leaves_nothing_beside_it(store: ArtifactStore, tmp_path: Path) -> None:
    keep(store, "job_1/art_1")

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] in ([], ["art_1"])


def test_the_same_path_again_is_replaced_as_a_whole(store: ArtifactStore) -> None:
    keep(store, "job_1/art_1", b"first")
    keep(store, "job_1/art_1", b"second, longer")

    with store.open("job_1/art_1") as file:
        assert file.read() == b"second, longer"


def test_without_an_address_files_are_in_the_data_folder(tmp_path: Path) -> None:
    keep(open_store(Settings.read({"HOMING_DATA_DIR": str(tmp_path)})), "a")

    assert (tmp_path / "artifacts" / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("url", ["/var/files", "s4://bucket", "bucket"])
def test_an_address_of_no_store_is_refused_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="is no store we know"):
        Settings.read({"HOMING_ARTIFACT_URL": url})
