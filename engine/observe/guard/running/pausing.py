"""Paused processes, which resume by themselves when the guard that paused them is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

_WAITING = 'read line; kill -CONT "$@"'
"""Waits for the end of its input, which comes also when the other end is killed."""


class Pause:
    """Halts processes until it is over, or this process has ended, however it ended.

    Raises:
        OSError: nobody could wake them again, so they were not halted.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        listening, self._end = os.pipe()
        words = ("/bin/sh", "-c", _WAITING, "sh", *map(str, pids))
        action = (os.POSIX_SPAWN_DUP2, listening, 0)
        try:
            self._waker = os.posix_spawn(
                words[0], words, dict(os.environ), file_actions=[action], setsid=True, setsigmask=()
            )
        except OSError:
            os.close(self._end)
            raise
        finally:
            os.close(listening)
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)

    def over(self) -> None:
        """Resume them; returns once they were signalled."""
        os.close(self._end)
        with suppress(ChildProcessError):
            os.waitpid(self._waker, 0)
