"""Which fleet a command talks to."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.client.address import Address, find_address
from homing.up import run_file
from homing.up.run_file import Running
from jobs.core.errors import ConfigError


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder from which a fleet runs."""
    running = Running(
        url="http://127.0.0.1:9",
        api_key="hk_run",
        flower_url=None,
        flower_user=None,
        flower_password=None,
        simulator_url=None,
    )
    run_file.write(running, tmp_path)
    return tmp_path


def test_the_environment_says_it_all(tmp_path: Path) -> None:
    environ = {"HOMING_URL": "https://h/", "HOMING_API_KEY": "hk_x", "HOMING_DATA_DIR": str(tmp_path)}

    assert find_address(environ) == Address("https://h", "hk_x")


def test_else_the_run_file_of_the_data_dir_does(data_dir: Path) -> None:
    assert find_address({"HOMING_DATA_DIR": str(data_dir)}) == Address("http://127.0.0.1:9", "hk_run")


def test_a_key_of_ones_own_wins_over_the_run_files(data_dir: Path) -> None:
    environ = {"HOMING_DATA_DIR": str(data_dir), "HOMING_API_KEY": "hk_mine"}

    assert find_address(environ).api_key == "hk_mine"


def test_the_run_files_key_is_never_sent_to_another_fleet(data_dir: Path) -> None:
    environ = {"HOMING_DATA_DIR": str(data_dir), "HOMING_URL": "https://elsewhere"}

    with pytest.raises(ConfigError, match="HOMING_API_KEY"):
        find_address(environ)


@pytest.mark.parametrize("url", ["h:1", "ftp://h", "https://user:pass@h"])
def test_a_url_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    environ = {"HOMING_URL": url, "HOMING_API_KEY": "k", "HOMING_DATA_DIR": str(tmp_path)}

    with pytest.raises(ConfigError, match="HOMING_URL"):
        find_address(environ)


def test_no_key_shows_in_repr() -> None:
    assert "hk_secret" not in repr(Address("http://h", "hk_secret"))
