"""The person in charge while the fleet is under fire: sends work that ails, waits for its dead letters, puts right what
was wrong, and redrives them, one by one and many at once.

What he sees meanwhile is evidence too: which letters there were, what was done before a redrive, and whether one letter
was ever redriven twice.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import JobsError
from jobs.storage.schema import jobs
from tests.crashing.ailments import AILMENTS, UNREADABLE
from tests.crashing.letters import find_faults, is_waiting, list_done, list_letters
from tests.crashing.load import Acked, Load, Stopped
from tests.crashing.stage import Stage

_EACH = 2
_LOOK_EVERY_S = 0.5
#: Everything exhausts its tries by then, deaths included; what has not is healed all the same.
_EXHAUSTED_WITHIN_S = 150.0
_HOME_WITHIN_S = 45.0
_RATE = "3/s"
#: What the product does with work that seems to kill its worker; here the harness did, and redrives like a person.
_BLAMED = re.compile(r"never came to|never ended|no try came to an end|worker was lost|stopped its worker|starts")
#: What may have gone on by a webhook while its letter waited; then there is nothing to redrive.
_OVERTAKEN = ("submit", "poll", "cancel")


@dataclass(slots=True)
class Seen:
    """What a person has seen of dead letters, so far.

    Attributes:
        letters: Ids of all he saw; none may vanish.
        done: What was done before a redrive, and when; it may not be done again.
        faults: Promises broken before his eyes.
    """

    letters: set[str] = field(default_factory=set)
    done: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Person:
    """One person, at work in rounds.

    Attributes:
        redrives: How often he got as far as to redrive, in this round.
    """

    stage: Stage
    load: Load
    rng: Random
    seen: Seen = field(default_factory=Seen)
    redrives: int = 0
    _count: int = 0
    _end: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Until the round ends: then everything is healed, and the rest waits for :meth:`tidy_up`."""
        self._end.clear()
        self.redrives = 0
        try:
            while not self._end.is_set():
                self._once()
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001 - a thread would die in silence; the round ends on it
            self.load.faults.append(f"the person in charge: {type(error).__name__}: {error}")
        finally:
            self.stage.ward.heal()

    def stop(self) -> None:
        self._end.set()

    def tidy_up(self) -> None:
        """Decides on each letter that waits and has its reason; any other is for the auditor."""
        for letter in self._look():
            if is_waiting(letter) and is_explained(letter, self.load.acked):
                self._redrive(letter)

    def _once(self) -> None:
        known = set(self.seen.letters)
        self.stage.ward.fall_ill()
        wanted = self._send_patients()
        self._wait(lambda: self._are_lettered(wanted, known), _EXHAUSTED_WITHIN_S)
        self.stage.ward.heal()
        if self._end.is_set():
            return
        self._remember_done()
        self._redrive_all([letter for letter in self._look() if is_waiting(letter)])
        self._wait(self._is_tidy, _HOME_WITHIN_S)

    def _is_tidy(self) -> bool:
        """Whether no letter waits; what a redrive has brought forth again is decided on."""
        self.tidy_up()
        return not any(map(is_waiting, self._look()))

    # Work that ails ------------------------------------------------------------------------------------

    def _send_patients(self) -> dict[str, int]:
        """Some of each; how many letters are to come, by entry."""
        for name in list(AILMENTS) * _EACH:
            if self._end.is_set():
                break
            self._count += 1
            body: dict[str, Any] = {"provider": name, "input": {"number": self._count}}
            if name == "ail_delivery":
                body["callback_url"] = self.stage.refuser.url
            job_id = self.load.order(body, f"{self.load.prefix}-{name}-{self._count}", ails=name)
            if name == "ail_cancel":
                threading.Thread(target=self._cancel, args=(job_id,), name="cancel", daemon=True).start()
        return {name: letters * _EACH for name, (_, letters) in AILMENTS.items()}

    def _cancel(self, job_id: str) -> None:
        """Once it is at the provider: before that, it would simply end."""
        self._wait(lambda: self._is_accepted(job_id), _EXHAUSTED_WITHIN_S)
        try:
            self.load.insist(f"/v1/jobs/{job_id}/cancel")
        except Stopped:
            pass

    def _is_accepted(self, job_id: str) -> bool:
        try:
            with self.stage.database.read() as tx:
                accepted = sa.select(jobs.c.id).where(jobs.c.id == job_id, jobs.c.provider_job_id.is_not(None))
                return tx.row(accepted) is not None
        except JobsError:
            return False

    def _are_lettered(self, wanted: Mapping[str, int], known: set[str]) -> bool:
        fresh = [letter for letter in self._look() if letter["id"] not in known]
        found = Counter({(ails(letter, self.load.acked), letter["ref"]): 1 for letter in fresh})
        came = Counter(name for name, _ in found)
        return all(came[name] >= count for name, count in wanted.items())

    # Letters -------------------------------------------------------------------------------------------

    def _look(self) -> list[dict[str, Any]]:
        """All letters; what is wrong with them is noted."""
        found, faults = self._ask()
        self.seen.faults += [fault for fault in faults if fault not in self.seen.faults]
        self.seen.letters |= {letter["id"] for letter in found}
        return found

    def _ask(self) -> tuple[list[dict[str, Any]], list[str]]:
        """However often it must: the database is under fire as well."""
        while True:
            try:
                with self.stage.database.read() as tx:
                    return list_letters(tx), list(find_faults(tx))
            except JobsError:
                time.sleep(_LOOK_EVERY_S)

    def _remember_done(self) -> None:
        try:
            with self.stage.database.read() as tx:
                self.seen.done |= list_done(tx)
        except JobsError:
            pass  # it is away; the next redrive remembers as much

    def _redrive_all(self, letters: list[dict[str, Any]]) -> None:
        """Half of the kinds one by one, the others as many at once; and some both ways at the same time."""
        kinds = sorted({letter["kind"] for letter in letters})
        if not kinds:
            return
        self.rng.shuffle(kinds)
        together, singly = kinds[::2], kinds[1::2]
        threads = [threading.Thread(target=self._redrive_kind, args=(kind,), name="redrive") for kind in together]
        for thread in threads:
            thread.start()
        for letter in letters:
            if letter["kind"] in singly or letter["kind"] == together[0]:
                self._redrive(letter)
        for thread in threads:
            thread.join()
        self.redrives += 1

    def _redrive(self, letter: Mapping[str, Any]) -> None:
        """Asked for twice, as a person does who presses the button again; it may act once."""
        try:
            if _is_hopeless(letter, self._look()):
                self.load.insist(f"/v1/dead-letters/{letter['id']}/discard")
                return
            answers = [self.load.ask(f"/v1/dead-letters/{letter['id']}/redrive")[0] for _ in range(2)]
            if 202 not in answers and letter["kind"] in _OVERTAKEN:
                self.load.insist(f"/v1/dead-letters/{letter['id']}/discard")
        except Stopped:
            return
        if answers.count(202) > 1:
            self.seen.faults.append(f"letter {letter['id']} was redriven twice")

    def _redrive_kind(self, kind: str) -> None:
        """As many at once, under one key; one that was given up, since it died again and again, is begun anew."""
        body = {"kind": kind, "rate": _RATE}
        try:
            for number in range(3):
                key = f"{self.load.prefix}-{kind}-{self._count}-{number}"
                begun = self.load.insist("/v1/dead-letters/redrive", body, {"Idempotency-Key": key})
                again = self.load.insist("/v1/dead-letters/redrive", body, {"Idempotency-Key": key})
                if begun["id"] != again["id"]:
                    self.seen.faults.append(f"key {key} began two redrives")
                if self._has_ended(begun["id"]):
                    return
        except Stopped:
            return

    def _has_ended(self, redrive_id: str) -> bool:
        """Waits for it; false where it was given up."""
        states: list[str] = []

        def is_over() -> bool:
            try:
                states.append(self.stage.client.get(f"/v1/dead-letters/redrives/{redrive_id}", tries=1)["state"])
            except JobsError:
                return False
            return states[-1] != "running"

        self._wait(is_over, _HOME_WITHIN_S)
        return bool(states) and states[-1] == "done"

    def _wait(self, is_so: Callable[[], bool], within_s: float) -> None:
        """Until it is so, the time is over, or the round is."""
        give_up_at = time.monotonic() + within_s
        while time.monotonic() < give_up_at and not self._end.is_set() and not is_so():
            self._end.wait(_LOOK_EVERY_S)


def ails(letter: Mapping[str, Any], acked: Mapping[str, Acked]) -> str | None:
    """The entry a letter comes from, where that ails and the letter is of its kind."""
    job = acked.get(letter["job_id"] or "")
    name = str(job.ails if job else (letter["evidence"] or {}).get("provider"))
    return name if name in AILMENTS and AILMENTS[name][0] == letter["kind"] else None


def is_blamed(letter: Mapping[str, Any]) -> bool:
    """Whether it says no more than that starts were lost."""
    return _BLAMED.search(letter["reason"]) is not None


def is_explained(letter: Mapping[str, Any], acked: Mapping[str, Acked]) -> bool:
    """Whether the harness has brought it forth, by what ails or by its deaths."""
    return is_blamed(letter) or ails(letter, acked) is not None


def _is_hopeless(letter: Mapping[str, Any], letters: list[dict[str, Any]]) -> bool:
    """Nobody can read it, and it was redriven in vain."""
    same = [each for each in letters if (each["kind"], each["ref"]) == (letter["kind"], letter["ref"])]
    unreadable = str((letter["evidence"] or {}).get("delivery_id", "")).startswith(UNREADABLE)
    return unreadable and any(each["redriven_at"] is not None for each in same)
