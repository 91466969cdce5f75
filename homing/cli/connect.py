"""Clients of the fleet the environment names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homing.client.api import ApiClient
    from homing.client.fleet import Homing


@contextmanager
def connect() -> Iterator[ApiClient]:
    """Open a client of any route for as long as the block lasts.

    Raises:
        ConfigError: no fleet is to be found.
    """
    from homing.client.address import find_address  # noqa: PLC0415 - an HTTP client costs a tenth of a second
    from homing.client.api import ApiClient  # noqa: PLC0415

    client = ApiClient(find_address())
    try:
        yield client
    finally:
        client.close()


def open_fleet() -> Homing:
    """Return the client that programs use too; it closes itself at the end of a `with` block.

    Raises:
        ConfigError: no fleet is to be found.
    """
    from homing.client.fleet import Homing  # noqa: PLC0415

    return Homing()
