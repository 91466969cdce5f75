"""The corpus of disguises: each case gets its verdict by its rule, and nothing reaches a private listener."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from jobs.net import exchange
from jobs.net.guard import AddressRefused, Guard, Unresolved
from jobs.net.guarded import Credential, GuardedClient
from jobs.net.http import Bounds, NoAnswer, NotSent
from tests.fakes.raw_server import RawServer, ok, raw_server, says

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[3] / "fixtures" / "ssrf.json").read_text())
QUICK = Bounds(connect_s=0.5, read_s=0.5, total_s=2.0, max_bytes=1000)
PUBLIC = "93.184.216.34"
HOPS = 5


class Listener:
    """A private service that counts who connects."""

    def __init__(self) -> None:
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                connection.sendall(ok(b"secret"))

    def close(self) -> None:
        self._listener.close()


@dataclass
class Names:
    """A resolver: the first answer, then the later one for ever."""

    first: Sequence[str]
    later: Sequence[str] = ("127.0.0.1",)
    asked: list[str] = field(default_factory=list)

    def __call__(self, host: str, _port: int, _within_s: float) -> Sequence[str]:
        self.asked.append(host)
        return self.first if len(self.asked) == 1 or host == "files.example" else self.later


@pytest.fixture
def listener() -> Iterator[Listener]:
    one = Listener()
    yield one
    one.close()


def lead(monkeypatch: pytest.MonkeyPatch, server: RawServer) -> None:
    """Makes one public address lead to a server of the test, as the internet would."""
    real = exchange.look_up
    port = int(server.url.rpartition(":")[2])

    def look_up(host: str, asked_port: int, within_s: float) -> list[Any]:
        return real("127.0.0.1", port, within_s) if host == PUBLIC else real(host, asked_port, within_s)

    monkeypatch.setattr(exchange, "look_up", look_up)


def guard_of(case: dict[str, Any], names: Names) -> Guard:
    return Guard(https_only=case.get("https_only", False), resolve=names)


def moved(location: str, port: int) -> bytes:
    target = location.replace("{port}", str(port)).encode()
    return ok(b"", status=b"302 Found", headers=b"Location: %s\r\n" % target)


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 120
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.invariant("I15")
@pytest.mark.parametrize("case", [case for case in CASES if case["expect"] == "refused"], ids=lambda case: case["name"])
def test_a_refused_case_names_its_rule_and_reaches_nobody(
    case: dict[str, Any], listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F44, F45, F46."""
    hops = [says(moved(location, listener.port)) for location in case.get("redirects", ())]
    names = Names(case.get("resolves", [PUBLIC]))
    client = GuardedClient(guard_of(case, names), bounds=QUICK)
    networks = [ip_network(text) for text in case.get("allowed", ())]

    with raw_server(*hops or [says(ok(b"public"))]) as server:
        lead(monkeypatch, server)
        url = case["url"].replace("{port}", str(listener.port))
        with pytest.raises(AddressRefused) as refusal, client.open("GET", url, allowed=networks, redirects=HOPS):
            pass

    assert refusal.value.rule == case["rule"]
    assert refusal.value.status == 422
    assert listener.connections == 0


@pytest.mark.parametrize("case", [case for case in CASES if case["expect"] == "allowed"], ids=lambda case: case["name"])
def test_an_allowed_case_keeps_the_addresses_that_were_checked(case: dict[str, Any]) -> None:
    names = Names(case.get("resolves", ()))

    target = guard_of(case, names).check(case["url"], allowed=[ip_network(text) for text in case.get("allowed", ())])

    assert target.addresses == tuple(case.get("resolves") or [str(target.url.address)])


def test_the_listener_is_reached_once_the_guard_is_lifted(listener: Listener) -> None:
    """The corpus can fail: without the guard, the same request arrives."""
    client = GuardedClient(Guard(lifted=True), bounds=QUICK)

    assert client.request("GET", f"http://127.0.0.1:{listener.port}/").body == b"secret"
    assert listener.connections == 1


@pytest.mark.parametrize("url", ["http://user@127.0.0.1/", "file:///etc/passwd", "http://127.1/", "http://a\\b/"])
def test_a_lifted_guard_still_wants_a_url_of_one_reading(url: str) -> None:
    with pytest.raises(AddressRefused):
        Guard(lifted=True).check(url)


def test_a_name_that_is_bound_anew_is_dialled_where_it_was_checked(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F45: the second look-up would say 127.0.0.1; there is no second look-up."""
    names = Names([PUBLIC], later=["127.0.0.1"])
    with raw_server(says(ok(b"public"))) as server:
        lead(monkeypatch, server)
        answer = GuardedClient(Guard(resolve=names), bounds=QUICK).request(
            "GET", f"http://rebind.example:{listener.port}/"
        )

    assert answer.body == b"public"
    assert names.asked == ["rebind.example"]
    assert listener.connections == 0


def test_a_name_bound_anew_between_two_tries_is_refused_at_the_second(listener: Listener) -> None:
    names = Names([PUBLIC], later=["127.0.0.1"])
    guard = Guard(resolve=names)
    guard.check(f"http://rebind.example:{listener.port}/")

    with pytest.raises(AddressRefused, match="loopback"):
        GuardedClient(guard, bounds=QUICK).request("GET", f"http://rebind.example:{listener.port}/")

    assert listener.connections == 0


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"])
def test_a_proxy_of_the_environment_sees_nothing(
    variable: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"http://127.0.0.1:{listener.port}")
    with raw_server(says(ok(b"public"))) as server:
        lead(monkeypatch, server)
        answer = GuardedClient(Guard(resolve=Names([PUBLIC])), bounds=QUICK).request("GET", "http://files.example/")

    assert answer.body == b"public"
    assert listener.connections == 0


def test_a_name_without_an_address_is_for_later() -> None:
    with pytest.raises(Unresolved):
        Guard(resolve=Names([])).check("https://files.example/")


def test_the_request_says_the_urls_own_host_and_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """F43, F45."""
    seen: list[bytes] = []
    with raw_server() as server:
        server._scripts = (server.reads_then(lambda connection: connection.sendall(ok(b""))),)
        lead(monkeypatch, server)
        client = GuardedClient(Guard(resolve=Names([PUBLIC])), bounds=QUICK)
        client.request("GET", "http://files.example:8080/a%2Fb%7Ec/../d?sig=A%2BB%2F%3D&x=%7E")
        seen = server.requests

    head = seen[0].decode().lower()
    assert head.startswith("get /a%2fb%7ec/../d?sig=a%2bb%2f%3d&x=%7e http/1.1\r\n")
    assert b"/a%2Fb%7Ec/../d?sig=A%2BB%2F%3D&x=%7E" in seen[0]
    assert head.count("\r\nhost: files.example:8080\r\n") == 1
    assert "authorization" not in head


def test_a_signed_target_in_a_location_header_keeps_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """F43."""
    target = b"/a/../b%7E?sig=A%2BB%2F%3D"
    with raw_server() as server:
        moves = server.reads_then(lambda to: to.sendall(moved(target.decode(), 0)))
        arrives = server.reads_then(lambda to: to.sendall(ok(b"there")))
        server._scripts = (moves, arrives)
        lead(monkeypatch, server)
        client = GuardedClient(Guard(resolve=Names([PUBLIC])), bounds=QUICK)
        with client.open("GET", "http://files.example/", redirects=1) as stream:
            assert b"".join(stream.chunks()) == b"there"

        assert server.requests[1].startswith(b"GET %s HTTP/1.1\r\n" % target)


def test_a_credential_is_sent_to_its_own_origin_only() -> None:
    """A redirect takes nobody's key along, and brings none home either."""
    secret = {"X-Key": "hunter2"}
    with raw_server() as there, raw_server() as ours:
        there._scripts = (there.reads_then(lambda to: to.sendall(ok(b"there"))),)
        ours._scripts = (ours.reads_then(lambda to: to.sendall(moved(f"{there.url}/x", 0))),)
        client = GuardedClient(Guard(lifted=True), bounds=QUICK)
        for first in (ours, there):
            credential = Credential(ours.url, secret)
            with client.open("GET", f"{first.url}/a", redirects=2, credential=credential) as stream:
                assert stream.status == 200

        assert [b"hunter2" in request for request in ours.requests] == [True]
        assert [b"hunter2" in request for request in there.requests] == [False, False]


def test_a_redirect_from_https_to_http_is_refused() -> None:
    guard = Guard(resolve=Names([PUBLIC], later=[PUBLIC]))
    source = guard.check("https://files.example/a").url

    with pytest.raises(AddressRefused, match="downgrade"):
        guard.follow(source, "http://files.example/b")


def test_a_redirect_is_an_answer_where_none_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with raw_server(says(moved("/x", 0))) as server:
        lead(monkeypatch, server)
        assert GuardedClient(Guard(resolve=Names([PUBLIC]))).request("GET", "http://files.example/").status == 302


def test_a_large_answer_is_cut_or_refused() -> None:
    with raw_server(says(ok(b"a" * 5000))) as server:
        client = GuardedClient(Guard(lifted=True), bounds=QUICK)

        assert len(client.request("GET", server.url, cut=True).body) == QUICK.max_bytes
        with pytest.raises(NoAnswer):
            client.request("GET", server.url)


def test_nobody_listening_is_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NotSent):
        GuardedClient(Guard(lifted=True), bounds=QUICK).request("GET", f"http://127.0.0.1:{port}/")
