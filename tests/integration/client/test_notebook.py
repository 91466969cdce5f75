"""The notebook of the documentation runs, from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.stage import Stage
from tests.integration.client.conftest import serving
from tests.integration.client.test_waiting import open_road

NOTEBOOK = Path(__file__).parents[3] / "docs" / "examples" / "notebook.ipynb"


def cells() -> list[str]:
    """The code of each cell, as a kernel gets it."""
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert all(cell["outputs"] == [] for cell in document["cells"] if cell["cell_type"] == "code")
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_brings_its_job_home(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    with serving(stage, open_road) as fleet, fleet.moving():
        monkeypatch.setenv("HOMING_URL", fleet.url)
        monkeypatch.setenv("HOMING_API_KEY", fleet.key)

        for number, cell in enumerate(cells()):
            exec(compile(cell, f"cell {number}", "exec"), names)

    out = capsys.readouterr().out
    assert names["job"].output == {"frames": 24}
    assert "job.created" in out
    assert "nobody" in out
