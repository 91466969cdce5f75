"""Watching how fast dead letters come: one alarm when that is abnormal, and one word when it is over."""

from __future__ import annotations

import structlog

from jobs.core.events import EventType
from jobs.core.growth import GrowthRule
from jobs.ids import first_id
from jobs.services.runtime import Runtime
from jobs.services.work import ring_relay
from jobs.storage.alarms import end_alarm, raise_alarm, raised_since
from jobs.storage.database import Transaction
from jobs.storage.outbox import append_event
from jobs.storage.premise import Premise, always
from jobs.storage.tallies import count_letters_after

ALARM = "dead_letters"

_log = structlog.get_logger(__name__)


def watch_growth(runtime: Runtime, *, premise: Premise = always) -> bool:
    """Compares what came lately with the rule; says whether an alarm began or ended.

    Raises:
        Stale: The premise failed.
    """
    rule = runtime.settings.dead_letter_alarm
    with runtime.database.read() as tx:
        was, growing = _look(tx, rule)
    if growing == was:
        return False
    with runtime.database.write() as tx:
        premise(tx)
        if not (raise_alarm(tx, ALARM) if growing else end_alarm(tx, ALARM)):
            return False
        event_id = _announce(tx, rule, growing=growing)
    ring_relay(runtime, event_id)
    return True


def _look(tx: Transaction, rule: GrowthRule) -> tuple[bool, bool]:
    was = raised_since(tx, ALARM) is not None
    return was, rule.is_growing(sum(_recent(tx, rule).values()), was=was)


def _recent(tx: Transaction, rule: GrowthRule) -> dict[str, int]:
    """New letters within the window, by kind."""
    rows = count_letters_after(tx, first_id("dl", at=tx.now - rule.window))
    return {row["kind"]: row["count"] for row in rows}


def _announce(tx: Transaction, rule: GrowthRule, *, growing: bool) -> str:
    kinds = _recent(tx, rule)
    told = {"count": sum(kinds.values()), "window_s": rule.window.total_seconds(), "kinds": kinds}
    if growing:
        _log.error("dead letters grow", **told)
    else:
        _log.info("dead letters have subsided", **told)
    event = EventType.DEAD_LETTER_SURGED if growing else EventType.DEAD_LETTER_SUBSIDED
    return append_event(tx, event, tenant=None, data={"dead_letters": told})
