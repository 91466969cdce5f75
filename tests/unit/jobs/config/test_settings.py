"""What the environment may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from jobs.config.settings import Settings

KEY = "k" * 32


def test_the_database_lies_in_the_data_dir_by_default(tmp_path: Path) -> None:
    settings = Settings.read({"HOMING_DATA_DIR": str(tmp_path)})

    assert settings.database_url == f"sqlite:///{tmp_path}/homing.db"


def test_the_process_environment_is_never_read_behind_ones_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_PUBLIC_URL", "https://elsewhere.example")

    assert Settings.read({}).public_url == "http://127.0.0.1:8000"


def test_a_relative_data_dir_is_made_absolute_for_children_in_other_folders() -> None:
    assert Settings.read({"HOMING_DATA_DIR": "some/where"}).data_dir == Path.cwd() / "some/where"


def test_secret_keys_are_a_list_newest_first() -> None:
    settings = Settings.read({"HOMING_SECRET_KEY": f"{KEY}, {'o' * 40}"})

    assert [key.get_secret_value() for key in settings.secret_key] == [KEY, "o" * 40]


def test_no_secret_shows_in_repr() -> None:
    settings = Settings.read(
        {
            "HOMING_SECRET_KEY": KEY,
            "HOMING_FLOWER_BASIC_AUTH": "flower:opensesame",
            "HOMING_REDIS_URL": "redis://:redispass@h/0",
            "HOMING_DATABASE_URL": "postgresql+psycopg://u:dbpass@h/d",
            "HOMING_HEARTBEAT_URL": "https://hc.example/ping/token",
        }
    )

    for secret in (KEY, "opensesame", "redispass", "dbpass", "token"):
        assert secret not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres://u:p@h/d"),
        ("DATABASE_URL", "mysql://h/d"),
        ("DATABASE_URL", "sqlite://homing.db"),
        ("REDIS_URL", "http://h"),
        ("REDIS_URL", "redis://h:notaport/0"),
        ("PUBLIC_URL", "ftp://h"),
        ("PUBLIC_URL", "https://user:pass@h"),
        ("PUBLIC_URL", "https://h/?q=1"),
        ("SECRET_KEY", "short"),
        ("FLOWER_BASIC_AUTH", "nopassword"),
        ("FLOWER_BASIC_AUTH", "user:short"),
        ("WEBHOOK_MAX_BYTES", "5 parsecs"),
        ("WEBHOOK_MAX_BYTES", "0"),
        ("ENV", "staging"),
        ("ALLOW_PRIVATE_ADDRESSES", "perhaps"),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError):
        Settings.read({f"HOMING_{name}": value})


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.read({"HOMING_REDIS_URL": ""}).redis_url == "redis://127.0.0.1:6379/0"


def test_sizes_are_read_with_their_unit() -> None:
    assert Settings.read({"HOMING_WEBHOOK_MAX_BYTES": "1MiB"}).webhook_max_bytes == 2**20


def test_a_slash_at_the_end_of_the_public_url_is_dropped() -> None:
    assert Settings.read({"HOMING_PUBLIC_URL": "https://h/x/"}).public_url == "https://h/x"
