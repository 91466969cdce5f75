"""Result files over real databases and a raw file server: whole, of the right kind, once, or refused with a reason."""

from __future__ import annotations

import gzip
import hashlib
import io
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from jobs.clock import FakeClock
from jobs.config.providers import ArtifactRules
from jobs.core.errors import Conflict
from jobs.core.observations import JobError, Link, Source
from jobs.core.policy import Finish, Policy
from jobs.core.states import JobState
from jobs.net.guard import Guard
from jobs.net.http import Bounds
from jobs.services.artifacts import download as fetching
from jobs.services.artifacts.fetching import LEASE, Came, claim_due, fetch_artifact
from jobs.services.canceling import request_cancel
from jobs.services.letters.redrivers import REDRIVERS
from jobs.storage.artifacts import take_artifact
from jobs.storage.database import Database
from jobs.storage.schema import artifacts, outbox
from tests.factories import PROVIDER, seen
from tests.fakes.raw_server import RawServer, Script, ok, raw_server, read_request, says
from tests.fakes.stage import Stage, a_stage

LIMIT = 50_000


def picture(kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(out, kind)
    return out.getvalue()


PNG, JPEG = picture(), picture("JPEG")


def file(body: bytes = PNG, *, headers: bytes = b"Content-Type: image/png\r\n", status: bytes = b"200 OK") -> Script:
    return says(ok(body, status=status, headers=headers))


def raw(head: bytes, body: bytes = b"") -> Script:
    return says(b"HTTP/1.1 200 OK\r\n%s\r\n" % head, body)


DENIED = file(b"<Error><Code>AccessDenied</Code></Error>", status=b"403 Forbidden")


@dataclass
class Scene:
    """A stage whose success names files on a raw server."""

    stage: Stage
    folder: Path

    def succeed(self, *links: Link, **facts: Any) -> str:
        """A job whose success was polled."""
        job_id, run = self.stage.running_job()
        self.stage.provider.finish(run, links=links, **facts)
        self.stage.poll(job_id)
        return job_id

    def work(self, passes: int = 12) -> list[Came]:
        """Sweeps until nothing is due, time passing between."""
        came = []
        for _ in range(passes):
            claims = claim_due(self.stage.runtime, 100)
            came += [fetch_artifact(self.stage.runtime, artifact, token) for artifact, token in claims]
            self.stage.clock.advance(timedelta(minutes=11))
        return came

    def files(self, job_id: str) -> list[dict[str, Any]]:
        return sorted(self.stage.rows(artifacts, job_id=job_id), key=lambda row: int(row["position"]))

    def kept(self) -> list[bytes]:
        return [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def scene(database: Database, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(fetching, "BOUNDS", Bounds(connect_s=0.5, read_s=0.5, total_s=5.0))
    stage = a_stage(database, clock, policy=Policy(finish=Finish.ON_ARTIFACTS))
    config = stage.runtime.providers[PROVIDER].config.model_copy(update={"artifacts": ArtifactRules(max_bytes=LIMIT)})
    entry = replace(stage.runtime.providers[PROVIDER], config=config)
    settings = stage.runtime.settings.model_copy(update={"artifact_url": f"file://{tmp_path / 'store'}"})
    stage.runtime = replace(
        stage.runtime, settings=settings, guard=Guard(lifted=True), providers={PROVIDER: entry}, wake_parked=_ignore
    )
    return Scene(stage, tmp_path / "store")


def _ignore(_provider: str, _run: str) -> None:
    pass


@pytest.fixture
def serve() -> Iterator[Callable[..., RawServer]]:
    servers: list[Any] = []

    def start(*scripts: Script) -> RawServer:
        servers.append(raw_server(*scripts))
        server: RawServer = servers[-1].__enter__()
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


# ------------------------------------------------------------------------------------------------- the finish


def test_a_success_with_files_is_recorded_and_ends_with_them(scene: Scene, serve: Callable[..., RawServer]) -> None:
    server = serve(file())
    link = Link(f"{server.url}/a.png?sig=secret", "image/png", len(PNG), hashlib.sha256(PNG).hexdigest())
    job_id = scene.succeed(link, output={"image": link.url, "n": 1})

    collecting = scene.stage.job(job_id)
    assert (collecting["state"], collecting["output"]) == ("running", None)
    assert collecting["progress"]["message"] == "collecting"
    assert (collecting["next_poll_at"], collecting["next_alarm_at"]) == (None, None)
    with pytest.raises(Conflict, match="collected"):
        request_cancel(scene.stage.runtime, job_id)

    assert scene.work(1) == [Came.STORED]

    job = scene.stage.job(job_id)
    assert (job["state"], job["ended_by"], job["cost"]) == ("succeeded", "poll", 0.02)
    assert job["output"] == {"image": f"{server.url}/a.png", "n": 1}, "a signed query is told to nobody"
    assert [artifact["state"] for artifact in job["artifacts"]] == ["stored"]
    assert scene.kept() == [PNG]
    assert scene.stage.history(job_id) == ["pending>running by poll", "running>succeeded by poll"]
    assert scene.stage.events(job_id)[-2:] == ["artifact.stored", "job.succeeded"]
    sequences = [row["sequence"] for row in scene.stage.rows(outbox, job_id=job_id)]
    assert sequences == sorted(set(sequences))


def test_on_outcome_the_job_succeeds_at_once_and_files_follow(scene: Scene, serve: Callable[..., RawServer]) -> None:
    scene.stage.runtime.observer._policies = {PROVIDER: Policy(finish=Finish.ON_OUTCOME)}
    job_id = scene.succeed(Link(f"{serve(file()).url}/a.png"))

    assert scene.stage.job(job_id)["state"] == "succeeded"
    scene.work(1)

    assert scene.stage.events(job_id)[-2:] == ["job.succeeded", "artifact.stored"]
    assert scene.stage.job(job_id)["artifacts"][0]["state"] == "stored"


def test_one_lost_file_of_two_fails_the_job_with_its_reason(scene: Scene, serve: Callable[..., RawServer]) -> None:
    good, bad = serve(file()), serve(file(b"<!doctype html><p>sorry", headers=b"Content-Type: image/png\r\n"))
    job_id = scene.succeed(Link(f"{good.url}/a.png"), Link(f"{bad.url}/b.png"))

    scene.work()

    job = scene.stage.job(job_id)
    assert (job["state"], job["error"]["code"], job["ended_by"]) == ("failed", "artifact_rejected", "poll")
    assert "text/html" in job["error"]["message"]
    assert [row["state"] for row in scene.files(job_id)] == ["stored", "rejected"]
    assert [letter["kind"] for letter in scene.stage.letters()] == ["artifact"]
    assert scene.kept() == [PNG]


@pytest.mark.parametrize("output", [None, [], {}, ""])
def test_a_success_that_returns_nothing_is_none(scene: Scene, output: Any) -> None:
    """F37."""
    job_id = scene.succeed(output=output)

    assert scene.stage.job(job_id)["error"]["code"] == "no_output"


def test_an_error_in_a_successs_clothes_is_an_error(scene: Scene) -> None:
    """F37."""
    job_id = scene.succeed(output={"status": "error", "message": "out of memory"})

    assert scene.stage.job(job_id)["error"] == {"code": "output_error", "message": "out of memory"}


def test_an_output_without_files_is_a_success(scene: Scene) -> None:
    assert scene.stage.job(scene.succeed(output={"text": "hello"}))["state"] == "succeeded"


def test_an_event_that_names_no_output_makes_us_look(scene: Scene) -> None:
    """Events often say less than the provider knows."""
    job_id, run = scene.stage.running_job()
    with scene.stage.database.write() as tx:
        scene.stage.runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, at=tx.now, provider_job_id=run))

    job = scene.stage.job(job_id)
    assert (job["state"], job["next_poll_at"]) == ("pending", scene.stage.clock.now())


def test_a_contradiction_while_collecting_is_kept_and_waits_for_a_person(
    scene: Scene, serve: Callable[..., RawServer]
) -> None:
    job_id = scene.succeed(Link(f"{serve(file()).url}/a.png"))
    failed = seen(JobState.FAILED, at=scene.stage.clock.now(), error=JobError("x", "y"), source=Source.WEBHOOK)
    with scene.stage.database.write() as tx:
        scene.stage.runtime.observer.observe(tx, job_id, failed)

    scene.work(1)

    job = scene.stage.job(job_id)
    assert (job["state"], job["review_reason"]) == ("succeeded", "conflicting_outcome")
    assert job["late_outcome"]["state"] == "failed"


# --------------------------------------------------------------------------------------------- what may be a file


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"error":"model deprecated"}', b"Content-Type: image/png\r\n"),
        (b"<!doctype html><p>sorry</p>", b"Content-Type: image/png\r\n"),
        (b"Not Found", b"Content-Type: image/png\r\n"),
        (b"", b"Content-Type: image/png\r\n"),
    ],
)
def test_a_200_is_not_a_picture(scene: Scene, serve: Callable[..., RawServer], body: bytes, headers: bytes) -> None:
    """F37: bounded tries, then refused; never served."""
    job_id = scene.succeed(Link(f"{serve(file(body, headers=headers)).url}/x"))

    assert scene.work() == [Came.RETRY, Came.RETRY, Came.REJECTED]
    assert scene.stage.job(job_id)["state"] == "failed"
    assert scene.kept() == []


@pytest.mark.parametrize(
    ("body", "headers", "name", "stored"),
    [
        (PNG, b"Content-Type: application/octet-stream\r\n", "a", "image/png"),
        (JPEG, b"Content-Type: image/jpeg\r\n", "a.png", "image/jpeg"),
        (gzip.compress(PNG), b"Content-Type: image/png\r\nContent-Encoding: gzip\r\n", "a.png", "image/png"),
    ],
)
def test_a_real_picture_is_stored_under_its_true_type(
    scene: Scene, serve: Callable[..., RawServer], body: bytes, headers: bytes, name: str, stored: str
) -> None:
    """F37."""
    job_id = scene.succeed(Link(f"{serve(file(body, headers=headers)).url}/{name}"))
    scene.work(1)

    (row,) = scene.files(job_id)
    assert (row["state"], row["content_type"]) == ("stored", stored)


CUT = {
    "length, cut": raw(b"Content-Type: image/png\r\nContent-Length: %d\r\n" % len(PNG), PNG[:100]),
    "no length, cut": raw(b"Content-Type: image/png\r\n", PNG[:100]),
    "chunked, cut": raw(b"Transfer-Encoding: chunked\r\n", b"%x\r\n" % len(PNG) + PNG[:100]),
    "chunked, early end": raw(b"Transfer-Encoding: chunked\r\n", b"64\r\n" + PNG[:100] + b"\r\n0\r\n\r\n"),
    "gzip, cut": file(gzip.compress(PNG)[:-20], headers=b"Content-Type: image/png\r\nContent-Encoding: gzip\r\n"),
    "206": file(PNG, status=b"206 Partial Content"),
    "length 0": file(b""),
}


@pytest.mark.parametrize("case", CUT)
def test_a_cut_download_is_tried_again_and_then_whole(scene: Scene, serve: Callable[..., RawServer], case: str) -> None:
    """F38."""
    server = serve(CUT[case], file())
    job_id = scene.succeed(Link(f"{server.url}/a.png"))

    assert scene.work(2) == [Came.RETRY, Came.STORED]
    assert scene.kept() == [PNG]
    assert scene.stage.job(job_id)["state"] == "succeeded"


@pytest.mark.parametrize("link", [{"size_bytes": len(PNG) + 1}, {"sha256": "0" * 64}])
def test_a_file_that_is_not_what_the_provider_named_is_refused(
    scene: Scene, serve: Callable[..., RawServer], link: dict[str, Any]
) -> None:
    """F38."""
    scene.succeed(Link(f"{serve(file()).url}/a.png", **link))

    assert scene.work()[-1] is Came.REJECTED
    assert scene.kept() == []


def endless(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(200):
        connection.sendall(b"1000\r\n" + b"\0" * 4096 + b"\r\n")


LARGE = {
    "gzip of zeros": file(gzip.compress(b"\0" * 5_000_000), headers=b"Content-Encoding: gzip\r\n"),
    "endless": endless,
    "length 10^13": raw(b"Content-Length: 10000000000000\r\n"),
    "no length": raw(b"", b"x" * (LIMIT + 1)),
}


@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_is_refused_at_once(scene: Scene, serve: Callable[..., RawServer], case: str) -> None:
    """F40."""
    job_id = scene.succeed(Link(f"{serve(LARGE[case]).url}/a"))

    assert scene.work() == [Came.REJECTED]
    assert scene.files(job_id)[0]["reason"].startswith("too_large")
    assert scene.kept() == []


def test_an_encoding_nobody_asked_for_is_refused(scene: Scene, serve: Callable[..., RawServer]) -> None:
    """F40 (d)."""
    twice = file(gzip.compress(gzip.compress(PNG)), headers=b"Content-Encoding: gzip, gzip\r\n")
    scene.succeed(Link(f"{serve(twice).url}/a.png"))

    assert scene.work()[-1] is Came.REJECTED


# ------------------------------------------------------------------------------------------------------ dead links


@pytest.mark.parametrize("status", [b"403 Forbidden", b"404 Not Found", b"410 Gone"])
def test_a_dead_link_is_replaced_by_a_fresh_one(scene: Scene, serve: Callable[..., RawServer], status: bytes) -> None:
    """F39, variant 1."""
    dead, fresh = serve(file(b"gone", status=status)), serve(file())
    job_id = scene.succeed(Link(f"{dead.url}/a.png?sig=1"))
    scene.stage.provider.finish(scene.stage.job(job_id)["provider_job_id"], links=(Link(f"{fresh.url}/a.png?sig=2"),))

    claims = claim_due(scene.stage.runtime, 10)
    assert [fetch_artifact(scene.stage.runtime, *claim) for claim in claims] == [Came.RETRY]
    claims = claim_due(scene.stage.runtime, 10)
    assert [fetch_artifact(scene.stage.runtime, *claim) for claim in claims] == [Came.STORED], "at once, without a wait"
    assert scene.stage.job(job_id)["state"] == "succeeded"


def test_a_link_that_stays_dead_expires_after_two_questions(scene: Scene, serve: Callable[..., RawServer]) -> None:
    """F39, variant 2: no day-long retries."""
    job_id = scene.succeed(Link(f"{serve(DENIED).url}/a.png?sig=1"))
    asked = scene.stage.provider.count("status")

    assert scene.work() == [Came.RETRY, Came.RETRY, Came.EXPIRED]
    assert scene.stage.provider.count("status") - asked <= 3
    assert scene.stage.job(job_id)["error"]["code"] == "artifact_expired"
    assert scene.stage.events(job_id)[-2:] == ["artifact.expired", "job.failed"]


def test_a_redrive_a_day_later_asks_for_a_fresh_link(scene: Scene, serve: Callable[..., RawServer]) -> None:
    """F39, variant 3: the file comes; the job's end stays."""
    job_id = scene.succeed(Link(f"{serve(DENIED).url}/a.png"))
    scene.work()
    scene.stage.clock.advance(timedelta(days=1))
    fresh = Link(f"{serve(file()).url}/a.png")
    scene.stage.provider.finish(scene.stage.job(job_id)["provider_job_id"], links=(fresh,))

    (letter,) = scene.stage.letters("artifact")
    with scene.stage.database.write() as tx:
        assert REDRIVERS["artifact"](tx, letter) is None
        assert REDRIVERS["artifact"](tx, letter) is not None
    scene.work(2)

    assert scene.files(job_id)[0]["state"] == "stored"
    assert scene.stage.job(job_id)["state"] == "failed"


def test_a_provider_that_does_not_answer_is_asked_again(scene: Scene, serve: Callable[..., RawServer]) -> None:
    scene.succeed(Link(f"{serve(file(b'', status=b'503 Busy'), file()).url}/a.png"))

    assert scene.work(2) == [Came.RETRY, Came.STORED]


# -------------------------------------------------------------------------------------------------------- the guard


@pytest.mark.parametrize("location", ["http://10.0.0.5/x", "//169.254.169.254/x", "file:///etc/passwd"])
def test_a_download_that_is_redirected_inward_is_refused(
    scene: Scene, serve: Callable[..., RawServer], location: str
) -> None:
    """F44."""
    moved = file(b"", status=b"302 Found", headers=b"Location: %s\r\n" % location.encode())
    port = serve(moved).url.rpartition(":")[2]
    local = scene.stage.runtime.providers[PROVIDER].config.model_copy(
        update={"private_addresses": (ip_network("127.0.0.0/8"),)}
    )
    entry = replace(scene.stage.runtime.providers[PROVIDER], config=local)
    scene.stage.runtime = replace(scene.stage.runtime, guard=Guard(), providers={PROVIDER: entry})
    job_id = scene.succeed(Link(f"http://127.0.0.1:{port}/a.png"))

    assert scene.work() == [Came.REJECTED]
    assert scene.files(job_id)[0]["reason"].startswith("address: ")


def test_a_link_into_our_own_network_is_refused_without_a_connection(scene: Scene) -> None:
    scene.stage.runtime = replace(scene.stage.runtime, guard=Guard())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        job_id = scene.succeed(Link(f"http://127.0.0.1:{listener.getsockname()[1]}/a.png"))
        assert scene.work() == [Came.REJECTED]
        listener.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listener.accept()

    assert scene.files(job_id)[0]["reason"] == "address: loopback"


# ------------------------------------------------------------------------------------------------------- the lease


def test_a_second_message_finds_nothing_to_do(scene: Scene, serve: Callable[..., RawServer]) -> None:
    scene.succeed(Link(f"{serve(file()).url}/a.png"))
    ((artifact, token),) = claim_due(scene.stage.runtime, 10)

    assert claim_due(scene.stage.runtime, 10) == []
    assert fetch_artifact(scene.stage.runtime, artifact, token) is Came.STORED
    assert fetch_artifact(scene.stage.runtime, artifact, token) is Came.NOTHING
    assert fetch_artifact(scene.stage.runtime, artifact) is Came.NOTHING


def test_a_fetch_whose_worker_died_is_done_by_another(scene: Scene, serve: Callable[..., RawServer]) -> None:
    job_id = scene.succeed(Link(f"{serve(file()).url}/a.png"))
    claim_due(scene.stage.runtime, 10)
    scene.stage.clock.advance(timedelta(seconds=61))

    assert scene.work(1) == [Came.STORED]
    assert scene.stage.job(job_id)["state"] == "succeeded"


def test_a_provider_that_left_the_configuration_costs_a_file_no_start(
    scene: Scene, serve: Callable[..., RawServer]
) -> None:
    job_id = scene.succeed(Link(f"{serve(file()).url}/a.png"))
    providers = scene.stage.runtime.providers
    scene.stage.runtime = replace(scene.stage.runtime, providers={})

    assert scene.work(7) == [Came.NOTHING] * 7
    scene.stage.runtime = replace(scene.stage.runtime, providers=providers)

    assert scene.work(1) == [Came.STORED]
    assert scene.stage.job(job_id)["state"] == "succeeded"


def test_a_fetch_that_kills_its_worker_each_time_is_given_up(scene: Scene, serve: Callable[..., RawServer]) -> None:
    job_id = scene.succeed(Link(f"{serve(file()).url}/a.png"))
    (row,) = scene.files(job_id)
    for start in range(3):
        with scene.stage.database.write() as tx:
            assert take_artifact(tx, row["id"], held=None, until=tx.now + LEASE) is not None
        scene.stage.clock.advance(LEASE * 2**start)  # each start that never ends waits longer

    assert scene.work(1) == [Came.REJECTED]
    assert "never came to its end" in scene.files(job_id)[0]["reason"]
    assert scene.stage.job(job_id)["state"] == "failed"


def test_a_person_may_end_a_job_that_collects_and_its_files_still_come(
    scene: Scene, serve: Callable[..., RawServer]
) -> None:
    job_id = scene.succeed(Link(f"{serve(file()).url}/a.png"))
    settled = seen(
        JobState.CANCELED,
        at=scene.stage.clock.now(),
        source=Source.OPERATOR,
        attempt=None,
        provider_job_id=None,
        resolved_by_person=True,
    )
    with scene.stage.database.write() as tx:
        scene.stage.runtime.observer.observe(tx, job_id, settled)

    assert scene.work(1) == [Came.STORED]
    assert scene.stage.job(job_id)["state"] == "canceled"
