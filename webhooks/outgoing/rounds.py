"""What a worker does for deliveries: looks for work, and does what a message names."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from jobs.broker import DELIVER
from jobs.services.runtime import Runtime
from webhooks.outgoing import recovering
from webhooks.outgoing.attempt import Send, Sender
from webhooks.outgoing.dispatch import dispatch
from webhooks.outgoing.lanes import Claim
from webhooks.outgoing.sending import deliver

#: A task begins no further try after this; with one try's longest time on top it ends well before its time limit.
BUDGET_S = 20.0


def look_for_work(runtime: Runtime) -> int:
    """One bounded pass: moves recoveries on, claims, and rings. For the sweep, and for the relay's bell.

    Returns:
        How many deliveries it took on.

    Raises:
        Unavailable: The database is away.
    """
    recovered = _recover(runtime)
    return recovered + dispatch(runtime)


def deliver_all(runtime: Runtime, claims: Sequence[Claim], *, send: Send | None = None) -> int:
    """Sends what a message names, side by side, and goes on with each endpoint for a while.

    Args:
        runtime: The process's parts.
        claims: What the message names.
        send: How a try is made; over the network where absent.

    Returns:
        How many tries were made.
    """
    chosen = send or Sender(runtime.guard)
    until = runtime.clock.monotonic() + BUDGET_S
    if len(claims) == 1:
        made = _go_on(runtime, claims[0], chosen, until=until)
    else:
        with ThreadPoolExecutor(max_workers=max(len(claims), 1)) as pool:
            rounds = [pool.submit(_go_on, runtime, claim, chosen, until=until) for claim in claims]
            made = sum(each.result() for each in rounds)
    dispatch(runtime)
    return made


def _go_on(runtime: Runtime, claim: Claim, send: Send, *, until: float) -> int:
    """One delivery after another of one endpoint, while it is well and the time is not up."""
    made, following = 0, claim
    while True:
        _, after = deliver(runtime, following, send)
        made += 1
        if after is None:
            return made
        if runtime.clock.monotonic() >= until:
            _hand_on(runtime, after)
            return made
        following = after


def _hand_on(runtime: Runtime, claim: Claim) -> None:
    """The time is up: what is claimed already goes to the next task."""
    runtime.broker.publish(DELIVER, f"{claim.delivery_id}:{claim.token}")


def _recover(runtime: Runtime) -> int:
    with runtime.database.read() as tx:
        if not recovering.has_due(tx):
            return 0
    with runtime.database.write() as tx:
        return recovering.advance(tx)
