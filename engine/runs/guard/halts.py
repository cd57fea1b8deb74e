"""Pauses and resumes the processes of a guarded run, for heat and batteries."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from capacity_tui.engine.machine import Host
from capacity_tui.engine.machine.host import probe_power
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.runs.guard.attempt import Attempt
from capacity_tui.engine.runs.guard.event_log import Event
from capacity_tui.engine.runs.guard.pauses import Halting, Supply, supply_of
from capacity_tui.engine.runs.monitor.run_monitor import RunMonitor, RunState

_SUPPLY_SECONDS = 5.0
"""How often is looked where power comes from."""

_NEWEST_STEPS = 50


class Halts:
    """Pauses and resumes one attempt; announced each time."""

    def __init__(
        self, attempt: Attempt, plan: Plan, tell: Callable[[Event], None], supply: Callable[[], Supply] | None = None
    ) -> None:
        self._attempt = attempt
        self._tell = tell
        self._ask_supply = supply or supply_now
        self._wanted = Halting(plan, os.cpu_count() or 1)
        self._supply: Supply | None = None
        self._asked_at = -np.inf
        self._pauses: list[Pause] = []
        self._halted: set[int] = set()
        self._began = 0.0
        self._passed = 0.0

    @property
    def seconds(self) -> float:
        """For how long it stood still so far."""
        return self._passed + (time.monotonic() - self._began if self._pauses else 0.0)

    def look(self, monitor: RunMonitor, state: RunState) -> None:
        """Pause or resume it where that is due."""
        now = time.monotonic()
        if now - self._asked_at >= _SUPPLY_SECONDS:
            self._asked_at, self._supply = now, self._ask_supply()
        step, seconds = monitor.curve.step or 0.0, step_seconds_of(monitor)
        move = self._wanted.look(now, monitor.samples, state.going_on, self._supply, step, seconds)
        if move is None:
            return
        if move.action == "pause" and not self._pauses:
            self._began = now
            self._halt()
        elif move.action == "resume":
            self.over()
        self._tell({"event": move.action, **move.data()})

    def over(self) -> None:
        """Resume it, whatever it was paused for."""
        if self._pauses:
            self._passed += time.monotonic() - self._began
        while self._pauses:
            self._pauses.pop().over()
        self._halted.clear()

    def _halt(self) -> None:
        """Halt its processes, also those that others of them started meanwhile; who stands still starts none."""
        while fresh := [process.pid for process in self._attempt.processes() if process.pid not in self._halted]:
            self._pauses.append(Pause(fresh))
            self._halted.update(fresh)


def step_seconds_of(monitor: RunMonitor) -> float | None:
    """Return what a step takes of late; None where too few were seen."""
    passed = monitor.curve.passed_seconds()[1][-_NEWEST_STEPS:]
    return float(np.median(passed)) if passed.size else None


def supply_now() -> Supply:
    """Return where this machine's power comes from."""
    return supply_of(probe_power(Host()))


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
