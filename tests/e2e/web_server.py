"""The web process as it is shipped, over a database of the test's own; may be ended and started again where it was."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from homing.up.ports import free_port
from tests.services.waiting import wait_until
from tests.vectors import TEXT_SECRET

SECRET_KEY = "a-key-of-these-tests-longer-than-32-characters"
_WITHIN_S = 20
_PROVIDER = f"""
[providers.plain]
adapter = "simulator"
base_url = "http://127.0.0.1:1"
webhook_scheme = "hmac-body"
webhook_secrets = ["{TEXT_SECRET}"]
"""


@dataclass
class WebServer:
    """One granian worker, or as many as its options say.

    Attributes:
        environment: Settings beyond those of the database and its folder.
        options: Of granian.
    """

    database_url: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def worker(self) -> int:
        """The process that serves."""
        return self.workers[0]

    @property
    def workers(self) -> list[int]:
        """The processes that serve."""
        return [child.pid for child in psutil.Process(self._process.pid).children()]

    def start(self) -> None:
        config = self.folder / "homing.toml"
        config.write_text(_PROVIDER)
        settings = {
            "HOMING_DATABASE_URL": self.database_url,
            "HOMING_DATA_DIR": str(self.folder),
            "HOMING_SECRET_KEY": SECRET_KEY,
            "HOMING_CONFIG": str(config),
        }
        command = [Path(sys.executable).with_name("granian"), "--interface", "wsgi", "--factory", "--no-ws"]
        command += ["--port", str(self.port), "--workers-kill-timeout", "1", *self.options, "homing.web:create_app"]
        with (self.folder / "web.log").open("ab") as log:
            environment = {**os.environ, **settings, **self.environment}
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        wait_until(self._answers, within_s=_WITHIN_S, what="the web server's first answer")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(_WITHIN_S)

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError((self.folder / "web.log").read_text(errors="replace")[-2000:])
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
