"""What a person may ask of ``homing up``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from homing.up.processes import LOCAL_ONLY, NAMES
from jobs.core.errors import ConfigError
from jobs.core.suggestions import did_you_mean

DEFAULT_PORT = 8080
DEFAULT_FOLDER = Path(".homing")
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """One fleet on one machine.

    Attributes:
        data_dir: Database, embedded Redis, logs, ``run.json``.
        port: Of the API; 0 picks a free one, which is kept over restarts.
        embedded: Start a Redis of its own, and let this machine's addresses be dialled.
        config: The TOML file; none: what ``HOMING_CONFIG`` says, else ``homing.toml`` where there is one.
        processes: Names to start; empty: all.
        simulator: Start the provider simulator; none: only where embedded and no TOML file names a provider.
        simulator_port: Of the simulator; 0 picks a free one.
        simulator_arguments: Further arguments of ``homing simulator`` (seed, faults ...).
        json_output: Print ``run.json`` as one line instead of a page for people.
        environ: What the processes start from.
    """

    data_dir: Path = DEFAULT_FOLDER
    port: int = DEFAULT_PORT
    embedded: bool = False
    config: Path | None = None
    processes: tuple[str, ...] = ()
    simulator: bool | None = None
    simulator_port: int = 0
    simulator_arguments: tuple[str, ...] = ()
    json_output: bool = False
    environ: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what cannot work, everything at once.

        Raises:
            ConfigError: Naming each fault.
        """
        if faults := list(self._faults()):
            raise ConfigError(faults)

    def wants(self, name: str) -> bool:
        """Whether this process is to run."""
        return not self.processes or name in self.processes

    @property
    def folder(self) -> Path:
        """The data folder, absolute."""
        return self.data_dir.expanduser().absolute()

    def _faults(self) -> Iterator[str]:
        for name in self.processes:
            if name not in NAMES:
                guess = did_you_mean(name, NAMES)
                hint = f"; did you mean {guess}?" if guess else f"; there are {', '.join(NAMES)}"
                yield f"--processes: there is no process {name!r}{hint}"
            elif name in LOCAL_ONLY and not self.embedded:
                yield f"--processes: {name} runs only with --embedded"
        if not (0 <= self.port <= _LAST_PORT and 0 <= self.simulator_port <= _LAST_PORT):
            yield f"--port must be from 0 to {_LAST_PORT}"
