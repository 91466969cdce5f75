"""``homing up``, as a person meets it: start, say where everything is, stay, stop."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from shlex import quote

from homing.up.fleet import Fleet
from homing.up.options import DEFAULT_FOLDER, FleetOptions
from homing.up.run_file import Running
from jobs.clock import Clock, SystemClock

# Ten seconds are usual on two busy cores; beyond a minute a person should read the logs, and we say which.
_READY_WITHIN_S = 60


def run_fleet(options: FleetOptions, *, clock: Clock | None = None) -> int:
    """Runs a fleet until SIGINT or SIGTERM.

    Returns:
        The exit status: 0 after an orderly stop.

    Raises:
        ConfigError: Nothing was started; carries every fault.
    """
    told_to_stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: told_to_stop.set())
    print("Starting the fleet ...", file=sys.stderr, flush=True)
    with Fleet.start(options, clock=clock or SystemClock()) as fleet:
        _announce(fleet, options, told_to_stop)
        told_to_stop.wait()
        print("Stopping: running tasks get up to 20 s ...", file=sys.stderr, flush=True)
    return 0


def _announce(fleet: Fleet, options: FleetOptions, told_to_stop: threading.Event) -> None:
    is_ready = not options.wants("web") or fleet.wait_ready(within_s=_READY_WITHIN_S, unless=told_to_stop)
    if told_to_stop.is_set():
        return
    if not is_ready:
        print(f"The API is not ready yet; see {options.folder / 'logs' / 'web.log'}", file=sys.stderr)
    said = json.dumps(asdict(fleet.running)) if options.json_output else welcome(fleet.running, _settings(options))
    print(said, flush=True)


def welcome(running: Running, settings: Mapping[str, str] | None = None) -> str:
    """The page that greets a person: addresses, key, and three commands to try.

    Args:
        running: What runs.
        settings: What a command in another terminal must be told to find it.
    """
    lines = [
        f"API        {running.url}    reference: {running.url}/docs",
        f"API key    {running.api_key}",
    ]
    if running.flower_url:
        lines.append(f"Flower     {running.flower_url}    {running.flower_user} / {running.flower_password}")
    if running.simulator_url:
        lines.append(f"Simulator  {running.simulator_url}    ledger: {running.simulator_url}/ledger")
    commands = [f"  {command}" for command in _commands(running, settings or {})]
    return "\n".join(["", *lines, "", "Try, in another terminal:", *commands, "", "Ctrl-C stops it.", ""])


def _settings(options: FleetOptions) -> dict[str, str]:
    """What this fleet was told and another terminal would not guess."""
    told = {}
    if options.folder != DEFAULT_FOLDER.absolute():
        told["HOMING_DATA_DIR"] = str(options.folder)
    if options.config is not None:
        told["HOMING_CONFIG"] = str(options.config.expanduser().absolute())
    return told


def _commands(running: Running, settings: Mapping[str, str]) -> Iterator[str]:
    """Commands to be pasted as they are; none asks a provider for work that costs something."""
    program = "homing" if shutil.which("homing") else str(Path(sys.executable).with_name("homing"))
    homing = " ".join([*(f"{name}={quote(value)}" for name, value in settings.items()), quote(program)])
    if running.simulator_url:
        yield f"""{homing} submit simulator --input '{{"model": "video", "prompt": "a boat at dawn"}}' --wait"""
    else:
        yield f"{homing} providers check"
    yield f"{homing} doctor"
    yield f"curl -H 'Authorization: Bearer {running.api_key}' {running.url}/v1/jobs"
