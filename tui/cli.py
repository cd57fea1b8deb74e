"""Where the program begins: the screen for the bare command, else a headless command; errors as one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from capacity_tui.engine.errors import CapacityError

PROGRAM = "capacity-tui"
DEBUG_VARIABLE = "CAPACITY_TUI_DEBUG"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells count it."""
INTERNAL_ERROR = 70
"""Exit code of a mistake in the program itself (EX_SOFTWARE of sysexits.h)."""
_COMPLETION_VARIABLE = "_CAPACITY_TUI_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done; 1: the plan does not fit (with ``--check``); 2: bad input; 3: a missing part asked for by name.

    Args:
        arguments: what follows the program's name; default is the process's own.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _show_what_the_terminal_can()
    # The bare command goes straight to the screen, which should not wait for what parses commands.
    if not given and _COMPLETION_VARIABLE not in os.environ:
        return _guarded(_open_screen)
    return _guarded(lambda: _run_command(given))


def _open_screen() -> int:
    from capacity_tui.tui.app import run

    return run()


def _run_command(arguments: list[str]) -> int:
    from capacity_tui.tui.headless.group import run_command

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
        # Who reads has enough; what is still buffered must not be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if DEBUG_VARIABLE in os.environ:
            raise
        what = " ".join(str(error).split())[:200]
        _tell(f"internal error: {type(error).__name__}: {what}; set {DEBUG_VARIABLE}=1 to see where")
        return INTERNAL_ERROR
    return code


def _tell(line: str) -> None:
    print(f"{PROGRAM}: {line}", file=sys.stderr)  # noqa: T201


def _show_what_the_terminal_can() -> None:
    """Let a character the terminal's encoding lacks become a question mark, not an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
