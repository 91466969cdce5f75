"""One vendor of the table, asked: what the suites over it share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.core.states import JobState
from jobs.providers.port import SubmitRequest
from tests.contract.described_cases import PRESETS
from tests.contract.vendor_cases import CALLBACK, KEY, TOKEN, Case
from tests.contract.vendor_server import Vendor

Open = Callable[..., Vendor]


def every(cases: tuple[Case, ...]) -> pytest.MarkDecorator:
    """Runs a test once for each vendor."""
    return pytest.mark.parametrize(
        "case", cases, ids=[f"{case.adapter}-{case.read.split('/')[2]}-{case.run}" for case in cases]
    )


def a_request(case: Case) -> SubmitRequest:
    return SubmitRequest(case.input, KEY, TOKEN, CALLBACK)  # type: ignore[arg-type]  # JSON by construction


def name_of(case: Case) -> str:
    """The run as its reports name it: a description's as its vendor does, whatever its address says before it."""
    return case.run.rpartition("/")[2] if case in PRESETS else case.run


def a_word(case: Case, *states: JobState) -> str:
    return next(word for word, state in case.words.items() if state in states)
