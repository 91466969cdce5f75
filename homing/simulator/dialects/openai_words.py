"""Batches, responses and fine-tuning jobs as OpenAI shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from homing.simulator.dialects.openai_files import Files, Row, write_rows
from homing.simulator.run import Run, Status

BATCH, RESPONSE, FINE_TUNE = "batch", "response", "fine_tuning.job"

_WORDS: Mapping[str, Mapping[Status, str]] = {
    BATCH: {
        Status.QUEUED: "validating",
        Status.PROCESSING: "in_progress",
        Status.SUCCEEDED: "completed",
        Status.FAILED: "failed",
        Status.CANCELED: "cancelled",
    },
    RESPONSE: {
        Status.QUEUED: "queued",
        Status.PROCESSING: "in_progress",
        Status.SUCCEEDED: "completed",
        Status.FAILED: "failed",
        Status.CANCELED: "cancelled",
    },
    FINE_TUNE: {
        Status.QUEUED: "validating_files",
        Status.PROCESSING: "running",
        Status.SUCCEEDED: "succeeded",
        Status.FAILED: "failed",
        Status.CANCELED: "cancelled",
    },
}
#: Other ends that `metadata.fail` may ask for.
_OTHER_ENDS = {BATCH: ("expired",), RESPONSE: ("incomplete",), FINE_TUNE: ()}


def word_of(run: Run) -> str:
    """Its status."""
    kind, fail = str(run.order.asked["object"]), run.order.input.get("fail")
    if run.status is Status.FAILED and fail in _OTHER_ENDS[kind]:
        return str(fail)
    return _WORDS[kind][run.status]


def describe(run: Run, files: Files) -> dict[str, object]:
    """The run as its endpoint shows it; what it leaves behind becomes a file here."""
    asked = run.order.asked
    kind = str(asked["object"])
    common = {
        "id": run.id,
        "object": kind,
        "status": word_of(run),
        "created_at": int(run.submitted_at.timestamp()),
        "metadata": asked.get("metadata") or {},
    }
    return common | _DESCRIBE[kind](run, asked, files)


def _describe_batch(run: Run, asked: Mapping[str, Any], files: Files) -> dict[str, object]:
    rows: list[Row] = asked["rows"]
    done = rows if run.status is Status.SUCCEEDED else rows[: len(rows) // 2] if run.status.is_terminal else []
    output, errors = (_put_rows(run, files, done, failed=failed) for failed in (False, True))
    failed = sum(row.fails for row in done)
    fault = [{"code": "invalid_request", "message": _error_of(run)["message"], "line": None, "param": None}]
    return {
        "endpoint": asked["endpoint"],
        "input_file_id": asked["input_file_id"],
        "completion_window": asked.get("completion_window", "24h"),
        "output_file_id": output,
        "error_file_id": errors,
        "request_counts": {"total": len(rows), "completed": len(done) - failed, "failed": failed},
        "errors": {"object": "list", "data": fault} if word_of(run) == "failed" else None,
    }


def _put_rows(run: Run, files: Files, rows: list[Row], *, failed: bool) -> str | None:
    content = write_rows(rows, failed=failed)
    if not content:
        return None
    name = "errors" if failed else "output"
    file_id = f"file-{run.id}-{name}"
    return files.put(content, name=f"{name}.jsonl", purpose="batch_output", file_id=file_id).id


def _describe_response(run: Run, asked: Mapping[str, Any], files: Files) -> dict[str, object]:  # noqa: ARG001
    text = (run.outcome.output or {}).get("text") if run.outcome else None
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {
        "id": f"msg-{run.id}", "type": "message", "role": "assistant", "status": "completed", "content": [part],
    }  # fmt: skip
    word = word_of(run)
    return {
        "model": asked.get("model"),
        "background": True,
        "output": [message] if text else [],
        "error": {"code": "server_error", "message": _error_of(run)["message"]} if word == "failed" else None,
        "incomplete_details": {"reason": "max_output_tokens"} if word == "incomplete" else None,
        "instructions": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _describe_tuning(run: Run, asked: Mapping[str, Any], files: Files) -> dict[str, object]:
    done = run.status is Status.SUCCEEDED
    made = run.outcome.files if run.outcome else ()
    names = [
        files.put(file.content, name=file.name, purpose="fine-tune-results", file_id=f"file-{run.id}-{number}").id
        for number, file in enumerate(made)
    ]
    return {
        "model": asked.get("model"),
        "training_file": asked["training_file"],
        "validation_file": asked.get("validation_file"),
        "fine_tuned_model": f"ft:{asked.get('model')}:homing::{run.id[-8:]}" if done else None,
        "result_files": names,
        "trained_tokens": asked["tokens"] if done else None,
        "finished_at": int(run.finished_at.timestamp()) if run.finished_at else None,
        "error": _error_of(run) if run.status is Status.FAILED else None,
        "hyperparameters": {"n_epochs": "auto", "batch_size": "auto", "learning_rate_multiplier": "auto"},
        "organization_id": "org-simulator",
        "seed": 0,
    }


def _error_of(run: Run) -> dict[str, object]:
    error = (run.outcome.error if run.outcome else None) or {}
    return {"code": error.get("code", "internal"), "message": error.get("message", "it failed"), "param": None}


_DESCRIBE: Mapping[str, Callable[[Run, Mapping[str, Any], Files], dict[str, object]]] = {
    BATCH: _describe_batch,
    RESPONSE: _describe_response,
    FINE_TUNE: _describe_tuning,
}
