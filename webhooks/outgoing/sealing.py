"""Stored secrets are sealed: a copy of the database signs nothing.

The keys are ``HOMING_SECRET_KEY``, newest first: the newest seals, each opens. In development, where none is set,
one is made in the data folder, readable by its owner only. Any text may be a key; what seals is its SHA-256.

Source: https://github.com/fernet/spec
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from jobs.config.settings import Settings
from jobs.core.errors import Permanent
from jobs.ids import new_token

KEY_FILE = "secret_key"


class Unopened(Permanent):
    """A stored secret that none of today's keys opens."""

    slug = "secret-unreadable"
    title = "A stored secret cannot be opened; is its key still in HOMING_SECRET_KEY?"


class Sealer:
    """Seals and opens secrets. Stateless; one serves all threads."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Takes the keys.

        Args:
            keys: Newest first; at least one.
        """
        self._fernet = MultiFernet([Fernet(_fernet_key(key)) for key in keys])

    def seal(self, secret: str) -> str:
        """The secret as it may be stored."""
        return self._fernet.encrypt(secret.encode()).decode("ascii")

    def open(self, sealed: str) -> str:
        """The secret.

        Raises:
            Unopened: It was sealed with a key that is not here.
        """
        try:
            return self._fernet.decrypt(sealed.encode("ascii")).decode()
        except InvalidToken:
            raise Unopened from None


@cache
def sealer_for(settings: Settings) -> Sealer:
    """The sealer of a process's settings."""
    keys = [key.get_secret_value() for key in settings.secret_key]
    return Sealer(keys or [development_key(settings.data_dir)])


def development_key(data_dir: Path) -> str:
    """The key of a data folder, made where there is none yet. Of two who make one, both take the first."""
    path = data_dir / KEY_FILE
    if not path.exists():
        _make(path)
    return path.read_text(encoding="ascii").strip()


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{new_token()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(new_token() + new_token() + "\n")
    try:
        os.link(draft, path)  # whole, or not at all; and never over another's
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _fernet_key(text: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
