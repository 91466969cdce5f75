"""Runs commands as a shell would see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from homing.cli import main
from tests.fakes.api import FakeApi, serving_api


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command with a data dir of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("homing.client.following._FIRST_REST_S", 0.01)
    monkeypatch.setattr("homing.client.following._LONGEST_REST_S", 0.01)
    monkeypatch.setenv("HOMING_DATA_DIR", str(tmp_path / "data"))

    def command(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)

    return command


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A fleet that the commands of this test talk to."""
    with serving_api() as fake:
        monkeypatch.setenv("HOMING_URL", fake.url)
        monkeypatch.setenv("HOMING_API_KEY", "hk_test")
        yield fake
