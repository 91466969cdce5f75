"""A worker that cannot do its work must not take any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_worker_whose_plugin_is_missing_exits_with_status_two_and_names_it(tmp_path: Path) -> None:
    config = tmp_path / "homing.toml"
    config.write_text('[plugins]\nmodules = ["plugin_that_is_nowhere"]')
    command = [sys.executable, "-m", "celery", "-A", "homing.worker:app", "worker", "--concurrency", "1"]
    environ = {**os.environ, "HOMING_CONFIG": str(config), "HOMING_DATA_DIR": str(tmp_path)}

    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=50, check=False)

    assert ended.returncode == 2
    assert "plugin_that_is_nowhere cannot be imported" in ended.stderr
