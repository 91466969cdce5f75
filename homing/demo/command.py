"""Runs the demo from its first line to its proof."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from homing.demo.evidence import Evidence, gather
from homing.demo.figures import count_figures
from homing.demo.folder import open_folder
from homing.demo.killing import Killer, deaths_for, killing
from homing.demo.live import Show, live_table
from homing.demo.options import DemoOptions, read_inputs
from homing.demo.page import document, print_page
from homing.demo.proof import Check, prove
from homing.demo.stage import Stage, set_stage
from homing.demo.submission import Submission, submit_all
from homing.demo.telling import Teller, teller
from homing.demo.watching import Lookout, Sight
from homing.simulator.job_lines import JobLine
from jobs.clock import Clock, SystemClock, system_rng
from jobs.ids import new_id

_LOOK_EVERY_S = 0.4
# Jobs that are not home by then will not come: the proof says which claim broke.
_PATIENCE_S = 150.0
_PATIENCE_PER_JOB_S = 1.0
# What a process held when it died is free again when its lease has ended; some are unlucky more than once.
_PATIENCE_UNDER_FIRE_S = 150.0
# Late and repeated webhooks of the last jobs still come in, and must change nothing.
_SETTLE_S = 3.0
_SETTLE_AT_MOST_S = 15.0


def run_demo(options: DemoOptions, *, clock: Clock | None = None) -> int:
    """Run it.

    Returns:
        The exit code: 0 only if every claim held.

    Raises:
        ConfigError: the inputs cannot be read, or the fleet cannot be started here.
        Unavailable: something did not come up.
    """
    ticking = clock or SystemClock()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    inputs = read_inputs(options)
    tell = teller(ticking)
    with (
        open_folder(options.data_dir, tell=tell) as folder,
        set_stage(options, inputs, folder=folder.path, tell=tell, clock=ticking) as stage,
    ):
        lookout = Lookout(stage, wanted=len(inputs), clock=ticking)
        killer = _killer(stage, options, tell) if options.kill else None
        with killing(killer):
            submissions = _play(stage, inputs, lookout=lookout, options=options, tell=tell, clock=ticking)
        evidence = gather(stage, submissions, killed=killer.killed if killer else None)
        checks = _report(options, evidence, elapsed_s=lookout.elapsed_s)
        folder.keep = not all(check.held for check in checks)
    return 0 if all(check.held for check in checks) else 1


def _killer(stage: Stage, options: DemoOptions, tell: Teller) -> Killer:
    rng = system_rng()
    rng.seed(options.seed)
    return Killer(lambda: stage.fleet.running.pids, rng, tell, deaths_for(options.jobs))


def _report(options: DemoOptions, evidence: Evidence, *, elapsed_s: float) -> list[Check]:
    """Prove, and print the proof."""
    checks, figures = prove(evidence, faults=options.faults), count_figures(evidence)
    if options.as_json:
        print(json.dumps(document(options, checks, figures, elapsed_s=elapsed_s), indent=2), flush=True)
    else:
        print_page(checks, figures, title=_title(options))
        print(f"\n{_verdict(checks)}\n", flush=True)
    return checks


def _play(
    stage: Stage,
    inputs: Sequence[JobLine],
    *,
    lookout: Lookout,
    options: DemoOptions,
    tell: Teller,
    clock: Clock,
) -> list[Submission]:
    """Send every job and watch until all are home."""
    tell(f"submitting {len(inputs)} jobs, some of them twice")
    called_off = threading.Event()
    patience_s = _PATIENCE_S + _PATIENCE_PER_JOB_S * len(inputs) + (_PATIENCE_UNDER_FIRE_S if options.kill else 0)
    with ThreadPoolExecutor(1) as pool, live_table(title=_title(options), tell=tell) as show:
        run_id = new_id("demo", at=clock.now())
        send = partial(submit_all, run_id=run_id, called_off=called_off, insist=options.kill)
        sending = pool.submit(send, stage.client, inputs)
        try:
            while not _is_over(sending, _look(lookout, show)) and lookout.elapsed_s < patience_s:
                called_off.wait(_LOOK_EVERY_S)
        finally:
            called_off.set()
        _settle(stage, clock)
        _look(lookout, show)
        return sending.result()


def _is_over(sending: Future[list[Submission]], sight: Sight) -> bool:
    if not sending.done():
        return False
    sending.result()  # a submit that failed ends the demo at once
    return sight.is_over


def _look(lookout: Lookout, show: Show) -> Sight:
    sight = lookout.look()
    show(sight)
    return sight


def _settle(stage: Stage, clock: Clock) -> None:
    """Wait until the provider has nothing more to send."""
    pause = threading.Event()
    until_s = clock.monotonic() + _SETTLE_AT_MOST_S
    seen, quiet_since_s = -1, clock.monotonic()
    while clock.monotonic() < until_s and clock.monotonic() - quiet_since_s < _SETTLE_S:
        count = len(stage.simulator.ledger()["webhooks"])
        if count != seen:
            seen, quiet_since_s = count, clock.monotonic()
        pause.wait(_LOOK_EVERY_S)


def _title(options: DemoOptions) -> str:
    deaths = " · processes killed" if options.kill else ""
    return f"Homing demo · {options.jobs} jobs · faults {options.faults} · seed {options.seed}{deaths}"


def _verdict(checks: Sequence[Check]) -> str:
    broken = [check.claim for check in checks if not check.held]
    if broken:
        return f"{len(broken)} of {len(checks)} claims did not hold: {'; '.join(broken)}."
    return "Every job came home: once, in the right state."
