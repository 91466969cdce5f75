"""The models do real work on their input."""

from __future__ import annotations

import io
import itertools
import json
import wave
from typing import Any

import pytest
from PIL import Image

from homing.simulator.models import MODELS, BadInputError, Result

LINE = {"weights": {"x": 2.0}, "bias": 1.0}
POINTS = [[0, 1], [1, 3], [2, 5], [5, 11]]


def run(model: str, **fields: Any) -> Result:
    return MODELS[model](fields)


def test_two_prompts_give_two_pictures_and_one_prompt_always_the_same() -> None:
    pictures = [run("video", prompt=prompt, format="png").files[0].content for prompt in ("a", "b", "a")]

    assert pictures[0] == pictures[2] != pictures[1]


def test_a_clip_moves() -> None:
    content = run("video", prompt="a boat", frames=3).files[0].content

    with Image.open(io.BytesIO(content)) as clip:
        assert getattr(clip, "n_frames", 1) == 3
        first = clip.convert("RGB").tobytes()
        clip.seek(1)
        assert clip.convert("RGB").tobytes() != first


def test_training_finds_the_line_through_the_points() -> None:
    output = run("train", points=POINTS).output

    assert output == {"fit": {"weights": {"x": 2.0}, "bias": 1.0}, "points": 4, "mse": 0.0, "r2": 1.0}


def test_training_takes_several_columns_from_csv() -> None:
    output = run("train", target="z", csv="x,y,z\n0,0,1\n1,0,3\n0,1,0\n1,1,2").output

    assert output["fit"] == {"weights": {"x": 2.0, "y": -1.0}, "bias": 1.0}


def test_fine_tuning_lowers_the_loss_toward_the_line() -> None:
    output = run("fine-tune", points=POINTS, start={"weights": {"x": 1.0}}, epochs=500).output

    losses = output["losses"]
    assert isinstance(losses, list)
    assert all(after <= before for before, after in itertools.pairwise(losses))
    assert float(str(output["loss_after"])) < 0.01 < float(str(output["loss_before"]))


def test_a_trained_fit_predicts() -> None:
    fit = run("train", points=POINTS).output["fit"]

    assert run("predict", fit=fit, rows=[{"x": 10}]).output["rows"] == [{"x": 10, "prediction": 21.0}]
    assert run("predict", fit=fit, csv="x\n3").output["rows"] == [{"x": "3", "prediction": 7.0}]


def test_cleaning_trims_types_and_drops() -> None:
    result = run("clean", csv=" Name ,N\n Ada , 1\n,\nAda,1\n2026-01-01,2.5\nx,1_0")

    assert result.output == {
        "rows": [{"name": "Ada", "n": 1}, {"name": "2026-01-01", "n": 2.5}, {"name": "x", "n": "1_0"}],
        "empty": 1,
        "repeated": 1,
    }
    assert result.files[0].content == b"name,n\nAda,1\n2026-01-01,2.5\nx,1_0\n"


def test_what_clean_leaves_train_can_learn() -> None:
    rows = run("clean", csv="x,y\n 0 ,1\n1, 3\n1,3\n2,5").output["rows"]

    assert run("train", rows=rows).output["fit"] == LINE


def test_a_text_is_counted() -> None:
    output = run("export", text="It's home. Home again! It's late").output

    assert (output["words"], output["different_words"], output["sentences"]) == (6, 4, 2)
    assert output["top_words"][0] == {"word": "it's", "count": 2}  # type: ignore[index]


def test_a_table_is_described_column_by_column() -> None:
    result = run("export", rows=[{"a": 1, "b": "x"}, {"a": 4}])

    assert result.output["columns"] == [
        {"column": "a", "filled": 2, "min": 1.0, "max": 4.0, "mean": 2.5},
        {"column": "b", "filled": 1},
    ]
    assert json.loads(result.files[0].content) == result.output


def test_speech_is_as_long_as_its_transcript_says() -> None:
    result = run("transcribe", text="good morning harbour")

    with wave.open(io.BytesIO(result.files[0].content)) as sound:
        length_s = sound.getnframes() / sound.getframerate()
    words = json.loads(result.files[1].content)["words"]
    assert length_s == pytest.approx(result.output["duration_s"], abs=0.001)
    assert [word["word"] for word in words] == ["good", "morning", "harbour"]
    assert all(one["end_s"] <= after["start_s"] for one, after in itertools.pairwise(words))


def test_a_text_is_continued_the_same_way_each_time() -> None:
    first, second = (run("llm-stream", prompt="The pigeon", max_tokens=30).output for _ in range(2))

    assert first == second
    assert first["tokens"] == 30
    assert str(first["text"]) != str(run("llm-stream", prompt="The keeper", max_tokens=30).output["text"])


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("video", {}),
        ("video", {"prompt": "  "}),
        ("video", {"prompt": 7}),
        ("video", {"prompt": "x" * 300_000}),
        ("video", {"prompt": "a", "format": "mp4"}),
        ("video", {"prompt": "a", "frames": 1000}),
        ("train", {}),
        ("train", {"points": [[1, 2], [1, 3]]}),
        ("train", {"points": [[1, "a"], [2, 3]]}),
        ("train", {"points": [[1, 2, 3]]}),
        ("train", {"points": []}),
        ("train", {"rows": [{"y": 1}]}),
        ("train", {"rows": [{"x": 1}]}),
        ("train", {"rows": "no"}),
        ("train", {"rows": [1]}),
        ("train", {"points": [[10**400, 1], [2, 3]]}),
        ("fine-tune", {"points": POINTS, "start": 1}),
        ("fine-tune", {"points": POINTS, "start": {"weights": {"x": "a"}}}),
        ("fine-tune", {"points": POINTS, "epochs": 10**9}),
        ("predict", {"rows": [{"x": 1}]}),
        ("predict", {"fit": {"weights": {"x": None}}, "rows": [{"x": 1}]}),
        ("predict", {"fit": LINE, "rows": [{"z": 1}]}),
        ("predict", {"fit": LINE, "rows": [{"x": "one"}]}),
        ("clean", {"csv": ""}),
        ("clean", {"rows": []}),
        ("export", {}),
        ("transcribe", {}),
        ("transcribe", {"text": "word " * 500}),
        ("transcribe", {"tones": []}),
        ("transcribe", {"tones": [440, "la"]}),
        ("transcribe", {"tones": [9]}),
        ("llm-stream", {"prompt": "a", "max_tokens": 0}),
        ("llm-stream", {"prompt": "a", "max_tokens": float("nan")}),
    ],
)
def test_an_input_a_model_cannot_use_is_refused_with_a_reason(model: str, fields: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match=r"\w+ \w+"):
        MODELS[model](fields)


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("text", ["\ud800", "\x00", "a\u202eb", "\U0001f54a" * 50])
def test_odd_texts_break_no_model(model: str, text: str) -> None:
    fields = {"prompt": text, "text": text, "csv": f"x,y\n{text},1", "points": POINTS, "fit": LINE, "rows": [{"x": 1}]}

    result = MODELS[model](fields)

    assert result.files
