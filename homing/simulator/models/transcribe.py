"""`transcribe`: turns a text, or tones, into a WAV, and says when each word of it sounds."""

from __future__ import annotations

import array
import hashlib
import io
import math
import sys
import wave
from dataclasses import dataclass

from homing.simulator.models.documents import write_json
from homing.simulator.models.fields import as_number, read_text
from homing.simulator.models.result import BadInputError, Input, Result, ResultFile

_RATE_HZ = 8000
_VOLUME = 9000  # of 32767: loud enough, far from clipping
_GAP_S = 0.04
_MAX_WORDS = 120
_TONE_S = 0.25
_FADE_SAMPLES = 80  # 10 ms at each end, or every word would click


@dataclass(frozen=True, slots=True)
class Sound:
    """One word and how it sounds."""

    word: str
    pitch_hz: float
    duration_s: float


def transcribe(fields: Input) -> Result:
    """Sound `text` word by word, or `tones` (a list of Hz)."""
    sounds = _tones(fields["tones"]) if "tones" in fields else _words(read_text(fields, "text"))
    samples = array.array("h")
    words: list[dict[str, object]] = []
    for sound in sounds:
        start_s = len(samples) / _RATE_HZ
        samples.extend(_sample(sound))
        words.append({"word": sound.word, "start_s": round(start_s, 3), "end_s": round(len(samples) / _RATE_HZ, 3)})
        samples.extend([0] * int(_GAP_S * _RATE_HZ))
    output: dict[str, object] = {
        "text": " ".join(sound.word for sound in sounds),
        "duration_s": round(len(samples) / _RATE_HZ, 3),
        "words": words,
    }
    transcript = write_json(output)
    return Result(
        output,
        (
            ResultFile("speech.wav", "audio/wav", _wav(samples)),
            ResultFile("transcript.json", "application/json", transcript),
        ),
    )


def _words(text: str) -> list[Sound]:
    words = text.split()
    if len(words) > _MAX_WORDS:
        raise BadInputError(f"text has {len(words)} words; at most {_MAX_WORDS} can be transcribed")
    return [Sound(word, _pitch(word), 0.1 + 0.02 * min(len(word), 15)) for word in words]


def _tones(value: object) -> list[Sound]:
    numbers = [as_number(tone) for tone in value] if isinstance(value, list) else []
    tones = [tone for tone in numbers if tone is not None and 20 <= tone <= _RATE_HZ / 2]
    if not tones or len(tones) != len(numbers) or len(tones) > _MAX_WORDS:
        raise BadInputError(f"tones must be 1 to {_MAX_WORDS} frequencies from 20 to {_RATE_HZ // 2} Hz")
    return [Sound(f"{tone:g}Hz", tone, _TONE_S) for tone in tones]


def _pitch(word: str) -> float:
    """A pitch of the word's own, on the semitones of one and a half octaves above A3."""
    step = hashlib.sha256(word.lower().encode("utf-8", "replace")).digest()[0] % 18
    return float(220.0 * 2 ** (step / 12))


def _sample(sound: Sound) -> list[int]:
    count = int(sound.duration_s * _RATE_HZ)
    turn = 2 * math.pi * sound.pitch_hz / _RATE_HZ
    return [
        int(_VOLUME * min(1.0, n / _FADE_SAMPLES, (count - n) / _FADE_SAMPLES) * math.sin(turn * n))
        for n in range(count)
    ]


def _wav(samples: array.array[int]) -> bytes:
    if sys.byteorder == "big":
        samples.byteswap()
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(_RATE_HZ)
        out.writeframes(samples.tobytes())
    return buffer.getvalue()
