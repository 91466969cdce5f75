"""What can be wrong with work until somebody puts it right: each under a provider entry of its name.

Work of such an entry is tried in vain, exhausts its tries and becomes a dead letter, while its illness lasts. That is a
file in a folder: whoever plays a part in the illness looks there, and the harness heals by removing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: For each entry: the kind of its dead letters, and how many of them one job brings forth.
AILMENTS: Mapping[str, tuple[str, int]] = {
    "ail_submit": ("submit", 1),  # the provider declines every submit: the account has no money
    "ail_poll": ("poll", 1),  # the adapter breaks on what the provider answers
    "ail_cancel": ("cancel", 1),  # the provider declines every cancel
    "ail_artifact": ("artifact", 1),  # the file is not where it is said to be
    "ail_event": ("event", 1),  # the event of its end cannot be relayed
    "ail_handler": ("handler", 2),  # both handlers fail, the transactional one after its effect
    "ail_delivery": ("delivery", 1),  # the callback's endpoint refuses
    "ail_inbox": ("inbox", 2),  # one webhook breaks whoever applies it, and one can never be read
}
#: Delivery ids of webhooks that nobody can read begin so: a redrive does not help them, and a person discards them.
UNREADABLE = "unreadable-"


class Ward:
    """The folder: one file for each illness that lasts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def is_ill(self, name: str) -> bool:
        """Whether that entry's work is in vain now."""
        return (self._folder / name).exists()

    def fall_ill(self) -> None:
        """All of them."""
        for name in AILMENTS:
            (self._folder / name).touch()

    def heal(self) -> None:
        """All of them."""
        for name in AILMENTS:
            (self._folder / name).unlink(missing_ok=True)
