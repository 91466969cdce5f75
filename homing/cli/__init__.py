"""The command line, `homing`.

Each group of commands is one file, and imports what it needs inside its functions: `homing --help` and a mistyped
option must not wait for a database driver.

Exit codes: 0 done, 1 failed, 2 the command or the configuration cannot be used. Errors say what to do; a traceback
never reaches a person.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

FAILED = 1
UNUSABLE = 2
#: Answers of the API to a command that cannot be used as it is: its options, its input, its key.
_REFUSED_AS_USED = (400, 401, 422)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit.

    Args:
        argv: without the program's name; default: the process's own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    from homing.cli.app import app  # noqa: PLC0415 - a broken pipe or interrupt during the import is answered too
    from homing.screen import show_error  # noqa: PLC0415
    from jobs.core.errors import ConfigError, JobsError  # noqa: PLC0415

    as_json = "--json" in arguments
    try:
        app(arguments, prog_name="homing", standalone_mode=True)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED
    except ConfigError as error:
        show_error(error, as_json=as_json)
        return UNUSABLE
    except JobsError as error:
        show_error(error, as_json=as_json)
        return UNUSABLE if getattr(error, "http_status", 0) in _REFUSED_AS_USED else FAILED
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the edge of the process: a person sees a line, never a traceback
        show_error(_bug(error), as_json=as_json)
        return FAILED
    return 0


def _bug(error: Exception) -> Exception:
    """What an unforeseen error looks like to a person: what, where, and whose fault it is."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119 - only for show
    return RuntimeError(f"{text} ({where}). This is a fault of Homing; please report it with this line.")
