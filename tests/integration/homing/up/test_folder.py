"""One runner per folder, no leftovers, one key."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from homing.up import folder, run_file
from homing.up.run_file import Running
from jobs.core.errors import ConfigError
from jobs.services import keys
from jobs.storage.database import Database


def test_a_second_runner_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    held = folder.hold(tmp_path / "data")
    with pytest.raises(ConfigError, match="running from"):
        folder.hold(tmp_path / "data")

    held.close()

    folder.hold(tmp_path / "data").close()


def _sleeper(data_dir: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HOMING_DATA_DIR": str(data_dir)}
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment)


def test_what_a_killed_runner_left_is_ended_and_strangers_are_not(tmp_path: Path) -> None:
    ours, stranger = _sleeper(tmp_path), _sleeper(tmp_path / "of somebody else")
    pids = {"web": [ours.pid, stranger.pid]}
    run_file.write(Running("http://x", "k", None, None, None, None, pids), tmp_path)

    folder.end_leftovers(tmp_path)

    assert ours.wait(timeout=5) < 0
    assert stranger.poll() is None
    assert run_file.read(tmp_path) is None
    stranger.kill()
    stranger.wait()


def test_the_scratch_of_a_killed_runner_is_removed_with_the_secrets_in_it(tmp_path: Path) -> None:
    abandoned = folder.make_scratch(tmp_path)
    (abandoned / "web.json").write_text("secret")

    made = folder.make_scratch(tmp_path)

    assert not abandoned.exists()
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.rmdir()


def test_the_key_is_kept_over_restarts_and_private(tmp_path: Path, sqlite_url: str) -> None:
    first = folder.api_key(tmp_path, sqlite_url)

    assert folder.api_key(tmp_path, sqlite_url) == first
    assert stat.S_IMODE((tmp_path / "api_key").stat().st_mode) == 0o600
    database = Database.connect(sqlite_url)
    assert keys.authenticate(database, f"Bearer {first}").role is keys.Role.ADMIN
    database.close()


def test_a_revoked_key_is_replaced(tmp_path: Path, sqlite_url: str) -> None:
    first = folder.api_key(tmp_path, sqlite_url)
    database = Database.connect(sqlite_url)
    keys.revoke_key(database, keys.authenticate(database, f"Bearer {first}").key_id)
    database.close()

    assert folder.api_key(tmp_path, sqlite_url) != first
