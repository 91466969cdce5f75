"""Result files over HTTP: whose they are, what a browser is told about them, and parts of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.core.observations import Link
from jobs.core.policy import Finish, Policy
from jobs.core.states import JobState
from jobs.services.artifacts.store import open_store
from jobs.services.runtime import Runtime
from jobs.storage.artifacts import end_artifact, list_artifacts, take_artifact
from tests.factories import new_job, seen
from tests.integration.api.conftest import Api

CONTENT = bytes(range(256)) * 4
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Kept:
    """A stored file and its job."""

    id: str
    job_id: str

    @property
    def path(self) -> str:
        return f"/v1/artifacts/{self.id}/content"


@pytest.fixture(autouse=True)
def _store(runtime: Runtime, tmp_path: Path) -> None:
    runtime.settings = runtime.settings.model_copy(update={"artifact_url": f"file://{tmp_path / 'store'}"})


def keep(runtime: Runtime, *, content_type: str = "video/mp4", tenant: str = "acme", stored: bool = True) -> Kept:
    job = new_job(runtime.database, tenant=tenant, provider="renders", provider_job_id="p-1")
    runtime.observer._policies = {"renders": Policy(finish=Finish.ON_ARTIFACTS)}
    with runtime.database.write() as tx:
        link = Link("https://files.example/a?sig=secret")
        runtime.observer.observe(tx, job["id"], seen(JobState.SUCCEEDED, at=tx.now, links=(link,)))
        (row,) = list_artifacts(tx, job["id"])
        taken = take_artifact(tx, row["id"], held=None, until=tx.now)
        assert taken is not None
        facts = {"content_type": content_type, "size_bytes": len(CONTENT), "sha256": SHA256, "path": "there"}
        if stored:
            end_artifact(tx, taken, {"state": "stored", "next_fetch_at": None, "settled_at": tx.now, **facts})
    store = open_store(runtime.settings)
    with store.receive() as (file, place):
        file.write(CONTENT)
        file.flush()
        store.keep(place, "there")
    return Kept(row["id"], job["id"])


def test_a_file_is_listed_without_its_signed_link(api: Api, runtime: Runtime) -> None:
    kept = keep(runtime)

    answer = api.get(f"/v1/jobs/{kept.job_id}/artifacts")

    assert answer.json is not None
    (shown,) = answer.json["data"]
    assert shown == {
        "id": kept.id,
        "state": "stored",
        "content_type": "video/mp4",
        "size": len(CONTENT),
        "sha256": SHA256,
        "reason": None,
        "expires_at": None,
    }
    assert "secret" not in api.get(f"/v1/jobs/{kept.job_id}").get_data(as_text=True)


def test_the_whole_file_comes_with_what_a_browser_must_know(api: Api, runtime: Runtime) -> None:
    answer = api.get(keep(runtime).path)

    assert (answer.status_code, answer.data) == (200, CONTENT)
    assert answer.headers["Content-Type"] == "video/mp4"
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    assert answer.headers["ETag"] == f'"{SHA256}"'
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    ("content_type", "begins", "ends"),
    [
        ("video/mp4", "inline", '.mp4"'),
        ("image/png", "inline", '.png"'),
        ("image/svg+xml", "attachment", '.svg"'),
        ("text/html", "attachment", '.html"'),
        ("application/octet-stream", "attachment", '"'),
    ],
)
def test_only_what_runs_nothing_is_shown(api: Api, runtime: Runtime, content_type: str, begins: str, ends: str) -> None:
    disposition = api.get(keep(runtime, content_type=content_type).path).headers["Content-Disposition"]

    assert disposition.startswith(f"{begins}; filename=")
    assert disposition.endswith(ends)


@pytest.mark.parametrize(
    ("wanted", "part", "where"),
    [
        ("bytes=0-9", CONTENT[:10], "bytes 0-9/1024"),
        ("bytes=1000-", CONTENT[1000:], "bytes 1000-1023/1024"),
        ("bytes=-4", CONTENT[-4:], "bytes 1020-1023/1024"),
        ("bytes=1020-5000", CONTENT[1020:], "bytes 1020-1023/1024"),
    ],
)
def test_a_part_of_a_file(api: Api, runtime: Runtime, wanted: str, part: bytes, where: str) -> None:
    answer = api.get(keep(runtime).path, headers={"Range": wanted})

    assert (answer.status_code, answer.data) == (206, part)
    assert answer.headers["Content-Range"] == where
    assert answer.headers["Content-Length"] == str(len(part))


def test_a_part_that_is_not_there_is_refused(api: Api, runtime: Runtime) -> None:
    assert api.get(keep(runtime).path, headers={"Range": "bytes=5000-"}).status_code == 416


def test_a_file_that_is_known_is_not_sent_again(api: Api, runtime: Runtime) -> None:
    answer = api.get(keep(runtime).path, headers={"If-None-Match": f'"{SHA256}"'})

    assert (answer.status_code, answer.data) == (304, b"")


def test_a_file_of_another_tenant_is_not_there(api: Api, runtime: Runtime) -> None:
    kept = keep(runtime, tenant="globex")

    assert api.get(kept.path).status_code == 404
    assert api.get(f"/v1/jobs/{kept.job_id}/artifacts").status_code == 404


def test_a_file_that_is_not_stored_has_no_content(api: Api, runtime: Runtime) -> None:
    answer = api.get(keep(runtime, stored=False).path)

    assert answer.status_code == 409
    assert answer.json is not None
    assert answer.json["detail"] == "the file is pending"


def test_a_file_that_left_the_store_is_not_there(api: Api, runtime: Runtime, tmp_path: Path) -> None:
    kept = keep(runtime)
    (tmp_path / "store" / "there").unlink()

    assert api.get(kept.path).status_code == 404


def test_a_job_that_collects_cannot_be_canceled(api: Api, runtime: Runtime) -> None:
    assert api.post(f"/v1/jobs/{keep(runtime, stored=False).job_id}/cancel").status_code == 409
