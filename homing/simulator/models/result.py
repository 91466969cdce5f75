"""What a model is: a function from an input to an output and files; and its error for bad inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

#: A run's input, `model` taken out.
Input: TypeAlias = Mapping[str, object]

#: One line of a table.
Row: TypeAlias = dict[str, object]


class BadInputError(Exception):
    """The model cannot work on this input; its text goes into the run's error."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file a run leaves behind."""

    name: str
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """What a run brings: a JSON object and files."""

    output: dict[str, object]
    files: tuple[ResultFile, ...] = ()


#: Deterministic: the same input gives the same result.
Model: TypeAlias = Callable[[Input], Result]
