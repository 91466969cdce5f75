"""`video`: renders the prompt as a short animated GIF, or one PNG with `"format": "png"`."""

from __future__ import annotations

import hashlib
import io
import textwrap
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

from homing.simulator.models.fields import read_number, read_text
from homing.simulator.models.result import BadInputError, Input, Result, ResultFile

_WIDTH, _HEIGHT = 320, 180
_FRAME_MS = 120
_LINE_CHARS = 26
_MAX_LINES = 5

Colour: TypeAlias = tuple[int, int, int]


def render(fields: Input) -> Result:
    """Draw `prompt` over colours that the prompt decides; `frames` (1 to 24) are shown in a loop."""
    prompt = read_text(fields, "prompt")
    kind = fields.get("format", "gif")
    if kind not in ("gif", "png"):
        raise BadInputError("format must be gif or png")
    count = int(read_number(fields, "frames", default=8, low=1, high=24)) if kind == "gif" else 1
    colours = derive_colours(prompt)
    frames = [_frame(prompt, colours, shift=index / count) for index in range(count)]
    content = _encode(frames, kind=str(kind))
    output: dict[str, object] = {
        "width": _WIDTH, "height": _HEIGHT, "frames": count, "colours": [_hex(colour) for colour in colours],
    }  # fmt: skip
    return Result(output, (ResultFile(f"video.{kind}", f"image/{kind}", content),))


def derive_colours(prompt: str) -> tuple[Colour, Colour]:
    """Two colours of a prompt: a dark one and a bright one."""
    digest = hashlib.sha256(prompt.encode("utf-8", "replace")).digest()
    dark = (digest[0] // 3, digest[1] // 3, digest[2] // 3)
    bright = (64 + digest[3] // 2, 64 + digest[4] // 2, 64 + digest[5] // 2)
    return dark, bright


def _frame(prompt: str, colours: tuple[Colour, Colour], *, shift: float) -> Image.Image:
    image = _gradient(colours)
    draw = ImageDraw.Draw(image)
    x = int(shift * _WIDTH)
    draw.ellipse((x - 18, _HEIGHT - 44, x + 18, _HEIGHT - 8), fill=colours[1])
    lines = textwrap.wrap(prompt, _LINE_CHARS, max_lines=_MAX_LINES, placeholder=" …")
    font = ImageFont.load_default(size=18)
    draw.multiline_text((16, 14), "\n".join(lines), fill=(255, 255, 255), font=font, spacing=5)
    return image


def _gradient(colours: tuple[Colour, Colour]) -> Image.Image:
    mask = Image.linear_gradient("L").resize((_WIDTH, _HEIGHT))
    dark, bright = (Image.new("RGB", (_WIDTH, _HEIGHT), colour) for colour in colours)
    return Image.composite(bright, dark, mask)


def _encode(frames: list[Image.Image], *, kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "png":
        frames[0].save(buffer, "PNG")
    else:
        small = [frame.quantize(64) for frame in frames]
        small[0].save(buffer, "GIF", save_all=True, append_images=small[1:], duration=_FRAME_MS, loop=0, optimize=False)
    return buffer.getvalue()


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
