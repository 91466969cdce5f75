"""The sweeps of a fleet, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.services.runtime import Runtime
from reconciler.counts import Sweep
from reconciler.sweeps.alarms import Alarms
from reconciler.sweeps.artifacts import Artifacts
from reconciler.sweeps.cancels import Cancels
from reconciler.sweeps.deliveries import Deliveries
from reconciler.sweeps.extra_runs import ExtraRuns
from reconciler.sweeps.handlers import Handlers
from reconciler.sweeps.inbox import Inbox
from reconciler.sweeps.learning import Learning
from reconciler.sweeps.letters import Letters
from reconciler.sweeps.outbox import Outbox
from reconciler.sweeps.polls import Polls
from reconciler.sweeps.redrives import Redrives
from reconciler.sweeps.streams import Streams
from reconciler.sweeps.submits import Submits


def build_sweeps(
    *, apply_inbox: Callable[[Runtime], int], send_deliveries: Callable[[Runtime], int]
) -> Mapping[str, Sweep]:
    """Every sweep the schedule names.

    Args:
        apply_inbox: One bounded batch of incoming events; returns how many it took on.
        send_deliveries: One bounded pass over deliveries that are due; returns how many it took on.
    """
    return {
        "submits": Submits(),
        "polls": Polls(),
        "cancels": Cancels(),
        "extra_runs": ExtraRuns(),
        "alarms": Alarms(),
        "artifacts": Artifacts(),
        "streams": Streams(),
        "inbox": Inbox(apply_inbox),
        "deliveries": Deliveries(send_deliveries),
        "outbox": Outbox(),
        "handlers": Handlers(),
        "learning": Learning(),
        "letters": Letters(),
        "redrives": Redrives(),
    }
