"""Where the program begins: the screen for the bare command, else a command; errors as one line."""

from __future__ import annotations

import atexit
import codecs
import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.printable import printable

PROGRAM = "capacity-tui"
DEBUG_VARIABLE = "CAPACITY_TUI_DEBUG"
INTERRUPTED = 130  # Exit code after Ctrl-C, as shells count it
INTERNAL_ERROR = 70  # Exit code of a mistake in the program itself (EX_SOFTWARE of sysexits.h)
_OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_ALLOCATIONS = 250_000
"""A command looks for garbage after so many new objects: more than modules and catalogue of a plan are."""
COMPLETION_VARIABLE = "_CAPACITY_TUI_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done; 1: the plan does not fit (with ``--check``); 2: bad input; 3: a missing part asked for by name.

    Args:
        arguments: what follows the program's name; default is the process's own.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _replace_closed_streams()
    _show_what_the_terminal_can()
    # The bare command goes straight to the screen, which should not wait for what parses commands.
    if not given and COMPLETION_VARIABLE not in os.environ:
        return _guarded(_open_screen)
    return _guarded(lambda: _run_command(given))


def _open_screen() -> int:
    # Nothing is garbage before the first frame, and searching for it would hold that up; the screen turns it on again.
    gc.disable()
    from capacity_tui.tui.app import run

    return run()


def _run_command(arguments: list[str]) -> int:
    # What a command loads stays until it ends: looking for garbage in it, every few hundred objects and once more
    # as the process ends, took a third of its time.
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(gc.freeze)
    from capacity_tui.tui.cli.program import run_command

    return run_command(arguments)


def _guarded(action: Callable[[], int]) -> int:
    """Return an action's exit code; tell errors in one line, and be quiet about a closed pipe or Ctrl-C."""
    try:
        code = action()
        sys.stdout.flush()
    except CapacityError as error:
        _tell(error.one_line())
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Who reads has enough.
        _drop_unwritten()
        return 0
    except Exception as error:
        return _unexpected(error)
    return code


def _unexpected(error: Exception) -> int:
    """Tell a full disk behind stdout, or a mistake in the program itself, in one line."""
    if isinstance(error, OSError) and error.errno in _OUTPUT_FULL and error.filename is None:
        _drop_unwritten()
        _tell(f"the output cannot be written: {error.strerror}; free some space, or write elsewhere")
        return CapacityError.exit_code
    if DEBUG_VARIABLE in os.environ:
        raise error
    what = " ".join(str(error).split())[:200]
    _tell(f"internal error: {type(error).__name__}: {what}; set {DEBUG_VARIABLE}=1 to see where")
    return INTERNAL_ERROR


def _drop_unwritten() -> None:
    """Lead what is still buffered nowhere, so that flushing it at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(line: str) -> None:
    print(f"{PROGRAM}: {printable(line)}", file=sys.stderr)  # noqa: T201


def _replace_closed_streams() -> None:
    """Read nothing from, and write nowhere to, a standard stream that the caller has closed."""
    # In the order of their file descriptors, so that each opens the one that is missing.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open


def _show_what_the_terminal_can() -> None:
    """Let a character the terminal's encoding lacks become one that stands for it, or a question mark, not an error."""
    codecs.register_error("stand_in", _stand_in)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="stand_in")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from capacity_tui.tui.text import to_ascii

    return to_ascii(error.object[error.start : error.end]), error.end
