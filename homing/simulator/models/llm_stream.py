"""`llm-stream`: continues the prompt by a Markov chain over the prompt and a few sentences of its own."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from homing.simulator.models.documents import encode_text
from homing.simulator.models.fields import read_number, read_text
from homing.simulator.models.result import Input, Result, ResultFile

# Enough sentences that a short prompt has somewhere to go.
_CORPUS = (
    "The pigeon flies home over the hills and the river, and the river shows the pigeon the way home. "
    "A letter that is lost is written again, and the keeper counts the birds at night. "
    "When the wind turns, the bird waits; when the wind falls, the bird flies on over the hills. "
    "The keeper opens the door at night and the last bird of the day comes in with the letter. "
)


def generate(fields: Input) -> Result:
    """Write `max_tokens` words (default 60, at most 400) after `prompt`."""
    prompt, count = _read(fields)
    text = " ".join(continue_text(prompt, count))
    output: dict[str, object] = {"text": text, "tokens": count, "prompt_tokens": len(prompt.split())}
    return Result(output, (ResultFile("completion.txt", "text/plain", encode_text(text)),))


def pieces_of(fields: Input) -> tuple[str, ...]:
    """The text as it comes, token by token: joined, they are the whole.

    Raises:
        BadInputError: there will be no text.
    """
    first, *others = continue_text(*_read(fields))
    return (first, *(f" {token}" for token in others))


def _read(fields: Input) -> tuple[str, int]:
    return read_text(fields, "prompt"), int(read_number(fields, "max_tokens", default=60, low=1, high=400))


def continue_text(prompt: str, count: int) -> list[str]:
    """The words that follow; the same for the same prompt."""
    words = f"{prompt} {_CORPUS}".split()
    following: defaultdict[str, list[str]] = defaultdict(list)
    for word, after in zip(words, words[1:] + words[:1], strict=True):
        following[word.lower()].append(after)
    current = prompt.rsplit(maxsplit=1)[-1].lower()
    tokens = []
    for index in range(count):
        options = following[current]
        digest = hashlib.sha256(f"{prompt}\0{index}".encode("utf-8", "replace")).digest()
        tokens.append(options[int.from_bytes(digest[:4]) % len(options)])
        current = tokens[-1].lower()
    return tokens
