"""A storm of repeats: every delivery is stored already, and the provider sends it again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.load import press
from benchmarks.processes import PRODUCT, start_server, wait_for_server
from benchmarks.signing import write_requests
from benchmarks.stage import KINDS, SQLITE, Stage

_VERIFY = "verify only"
_DELIVERIES = 1_000
#: Each worker has to meet each delivery once, and which one gets it is chance.
_LEARNING_S = 3


@contextmanager
def setup(stage: Stage) -> Iterator[Sequence[Case]]:
    """One file of deliveries, which the first seconds of load make known to every worker."""
    requests = write_requests(stage.new_folder() / "requests", (f"d-{number}" for number in range(_DELIVERIES)))
    with ExitStack() as stack:
        started = [("benchmarks.apps:verify_only", SQLITE), *((PRODUCT, kind) for kind in KINDS)]
        servers = [start_server(factory, stage.environ(stage.database_url(kind))) for factory, kind in started]
        for running, _ in servers:
            stack.callback(running.stop)
        for running, address in servers:
            wait_for_server(running, address)
        (_, verifier), *products = servers
        for _, address in products:
            press(address, requests, seconds=_LEARNING_S)
        measured = [(f"{kind}, repeats", address) for kind, (_, address) in zip(KINDS, products, strict=True)]
        yield [
            Case(_VERIFY, partial(_measure, stage, verifier, requests)),
            *(Case(name, partial(_measure, stage, address, requests), _VERIFY) for name, address in measured),
        ]


def _measure(stage: Stage, address: str, requests: Path) -> Figures:
    return press(address, requests, seconds=stage.scale.load_s).figures


BENCHMARK = Benchmark(
    "duplicates",
    "repeats of stored deliveries acknowledged, against the receiver without a database, c=32",
    "req/s",
    setup,
    targets=tuple(Target(f"{kind}, repeats", "req/s", 0.5, _VERIFY) for kind in KINDS),
)
