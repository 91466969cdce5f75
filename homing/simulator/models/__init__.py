"""The simulator's models: small, deterministic, and real: each works on its input and leaves files that open."""

from __future__ import annotations

from collections.abc import Mapping

from homing.simulator.models.clean import clean
from homing.simulator.models.export import export
from homing.simulator.models.fine_tune import fine_tune
from homing.simulator.models.llm_stream import generate
from homing.simulator.models.predict import predict
from homing.simulator.models.result import BadInputError, Input, Model, Result, ResultFile
from homing.simulator.models.train import train
from homing.simulator.models.transcribe import transcribe
from homing.simulator.models.video import render

__all__ = ["MODELS", "BadInputError", "Input", "Model", "Result", "ResultFile"]

#: Every model by the name a submit gives.
MODELS: Mapping[str, Model] = {
    "video": render,
    "fine-tune": fine_tune,
    "transcribe": transcribe,
    "llm-stream": generate,
    "clean": clean,
    "train": train,
    "predict": predict,
    "export": export,
}
