"""Stored secrets: sealed, opened by any of today's keys, made anew by nobody twice."""

from __future__ import annotations

import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.config.settings import Settings
from tests.factories import T
from webhooks.outgoing.sealing import KEY_FILE, Sealer, Unopened, development_key, sealer_for
from webhooks.outgoing.secrets import MAX_LIVE, OVERLAP, check_secret, first, live, new_signing_secret, rotated

OLD, NEW = "o" * 40, "n" * 40


def test_what_is_sealed_shows_nothing_and_opens_again() -> None:
    sealed = Sealer([NEW]).seal("whsec_abc")

    assert "whsec" not in sealed
    assert Sealer([NEW]).open(sealed) == "whsec_abc"


def test_the_newest_key_seals_and_each_opens() -> None:
    by_old, by_new = Sealer([OLD]).seal("s"), Sealer([NEW, OLD]).seal("s")

    assert Sealer([NEW, OLD]).open(by_old) == "s"
    assert Sealer([NEW]).open(by_new) == "s"
    with pytest.raises(Unopened):
        Sealer([NEW]).open(by_old)


def test_a_key_is_made_in_the_data_folder_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    key = development_key(folder)

    assert len(key) >= 32
    assert development_key(folder) == key
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [KEY_FILE]


def test_of_many_who_make_a_key_at_once_all_take_the_same(tmp_path: Path) -> None:
    found: list[str] = []
    barrier = threading.Barrier(8)

    def make() -> None:
        barrier.wait()
        found.append(development_key(tmp_path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_configured_key_makes_no_file(tmp_path: Path) -> None:
    settings = Settings.read({"HOMING_DATA_DIR": str(tmp_path), "HOMING_SECRET_KEY": f"{NEW},{OLD}"})

    assert Sealer([NEW]).open(sealer_for(settings).seal("s")) == "s"
    assert list(tmp_path.iterdir()) == []


def test_after_a_rotation_both_are_live_for_a_day() -> None:
    sealer = Sealer([NEW])
    one, two = new_signing_secret(), new_signing_secret()

    stored = rotated(sealer, first(sealer, one), two, at=T)

    assert live(sealer, stored, at=T) == [two, one]
    assert live(sealer, stored, at=T + OVERLAP - timedelta(seconds=1)) == [two, one]
    assert live(sealer, stored, at=T + OVERLAP) == [two]


def test_a_second_rotation_gives_the_first_secret_no_longer_life() -> None:
    sealer = Sealer([NEW])
    half = OVERLAP / 2

    stored = rotated(sealer, rotated(sealer, first(sealer, "a"), "b", at=T), "c", at=T + half)

    assert live(sealer, stored, at=T + half) == ["c", "b", "a"]
    assert live(sealer, stored, at=T + OVERLAP) == ["c", "b"]


def test_the_list_of_secrets_does_not_grow_for_ever() -> None:
    sealer = Sealer([NEW])
    stored = first(sealer, "s0")
    for number in range(10):
        stored = rotated(sealer, stored, f"s{number + 1}", at=T)

    assert len(stored) == MAX_LIVE
    assert live(sealer, stored, at=T)[0] == "s10"


@pytest.mark.parametrize("text", ["", "hunter2", "whsec_", "whsec_AAAA", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "whpk_AAAA"])
def test_a_secret_that_receivers_libraries_cannot_use_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        check_secret(text)

    assert text == "" or text not in str(refused.value) or text == "whsec_"
