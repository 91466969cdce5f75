"""Secrets in the TOML file: `{ env = "NAME" }`, `{ file = "path" }`, or plain text outside production."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_HOW = 'write { env = "NAME" } or { file = "path" }'


@dataclass(frozen=True, slots=True)
class SecretSources:
    """Where secrets may come from.

    Attributes:
        environ: the environment.
        folder: what a relative file name is relative to.
        plain_allowed: whether the text itself may stand in the file.
    """

    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    plain_allowed: bool

    def resolve(self, value: object) -> str:
        """Return the secret's text, without outer blanks (every secrets file ends in a newline).

        Raises:
            ValueError: what is wrong, as the end of a sentence; never the secret.
        """
        match value:
            case {"env": str(name), **others} if not others:
                return self._of_variable(name)
            case {"file": str(name), **others} if not others:
                return self._of_file(self.folder / Path(name).expanduser())
            case str() if not self.plain_allowed:
                raise ValueError(f"stands in the file as plain text; in production {_HOW}")
            case str():
                return _filled(value, "is empty")
            case _:
                raise ValueError(f"is no secret; {_HOW}")

    def _of_variable(self, name: str) -> str:
        if name not in self.environ:
            raise ValueError(f"names the environment variable {name}, which is not set")
        return _filled(self.environ[name], f"names the environment variable {name}, which is empty")

    def _of_file(self, path: Path) -> str:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"names the file {path}, which cannot be read ({_why(error)})") from None
        return _filled(text, f"names the file {path}, which is empty")


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else "it is not UTF-8 text"


def _filled(text: str, otherwise: str) -> str:
    trimmed = text.strip()
    if not trimmed:
        raise ValueError(otherwise)
    return trimmed
