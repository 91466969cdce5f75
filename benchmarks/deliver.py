"""How many events a second one endpoint is told that answers at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import sqlalchemy as sa

from benchmarks.benchmark import Benchmark, Case, Figures
from benchmarks.parts import product
from benchmarks.processes import start_server, wait_for_server
from benchmarks.stage import KINDS, SQLITE, Stage
from jobs.core.events import EventType
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from webhooks.outgoing.attempt import Sender
from webhooks.outgoing.dispatch import claim_due
from webhooks.outgoing.endpoint_rows import DEFAULT_CONCURRENCY, new_row
from webhooks.outgoing.fan_out import new_delivery
from webhooks.outgoing.lanes import wake
from webhooks.outgoing.rounds import deliver_all
from webhooks.outgoing.schema import DeliveryState, EndpointKind, deliveries, endpoints, event_bodies
from webhooks.outgoing.sealing import sealer_for
from webhooks.outgoing.secrets import first, new_signing_secret

_ALONE = "the requests alone"
_BODY = b'{"type":"job.succeeded","data":{"job":{"id":"job_1","state":"succeeded","output":{"url":"x"}}}}' * 4
_RATE_PER_S = 1e9  # none: a wait ends the turn of whoever sends, and the rest would be for another worker


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """The receiver is up; a database is made fresh for each repeat."""
    with ExitStack() as stack:
        receiver, address = start_server("benchmarks.apps:empty", stage.environ(stage.database_url(SQLITE)))
        stack.callback(receiver.stop)
        wait_for_server(receiver, address)
        yield [
            Case(_ALONE, partial(_alone, stage, address)),
            *(Case(f"{kind}, told and recorded", partial(_deliver, stage, kind, address), _ALONE) for kind in KINDS),
        ]


def _alone(stage: Stage, address: str) -> Figures:
    with product(stage, stage.database_url(SQLITE)) as runtime:
        send = Sender(runtime.guard)
        begin = time.perf_counter()
        with ThreadPoolExecutor(max_workers=DEFAULT_CONCURRENCY) as pool:
            sent = [pool.submit(send, address, headers={}, body=_BODY) for _ in range(stage.scale.delivered)]
            assert all(each.result().is_success for each in sent)
        return {"deliveries/s": stage.scale.delivered / (time.perf_counter() - begin)}


def _deliver(stage: Stage, kind: str, address: str) -> Figures:
    with product(stage, stage.database_url(kind)) as runtime:
        _fill(runtime, address, stage.scale.delivered)
        begin, begin_cpu_s = time.perf_counter(), time.process_time()
        while claims := claim_due(runtime):
            deliver_all(runtime, claims)
        spent_s, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu_s
        done = _succeeded(runtime)
    assert done == stage.scale.delivered, f"{done} in {spent_s:.0f} s: a worker's turn is shorter than that"
    return {"deliveries/s": done / spent_s, "CPU us": cpu_s / done * 1e6}


def _fill(runtime: Runtime, url: str, count: int) -> None:
    with runtime.database.write() as tx:
        columns = {"secrets": first(sealer_for(runtime.settings), new_signing_secret()), "rate_per_s": _RATE_PER_S}
        lane = new_row(tx, tenant="acme", kind=EndpointKind.SUBSCRIBED, url=url, columns=columns)
        tx.execute(sa.insert(endpoints).values(lane))
        events = [_event(tx, number) for number in range(count)]
        tx.execute(sa.insert(event_bodies), [{"event_id": event["id"], "body": _BODY} for event in events])
        tx.execute(sa.insert(deliveries), [new_delivery(tx, lane, event, None, place=-count) for event in events])
        wake(tx, [lane["id"]])


def _event(tx: Transaction, number: int) -> dict[str, object]:
    said = {"id": f"evt_{number}", "type": EventType.JOB_SUCCEEDED, "job_id": f"job_{number}"}
    return {**said, "occurred_at": tx.now}


def _succeeded(runtime: Runtime) -> int:
    counted = sa.select(sa.func.count()).where(deliveries.c.state == DeliveryState.SUCCEEDED)
    with runtime.database.read() as tx:
        return int(tx.execute(counted).scalar_one())


BENCHMARK = Benchmark(
    "deliver",
    "events told to one endpoint that answers at once, four side by side: counted, sent, recorded",
    "deliveries/s",
    setup,
)
