"""Commands run for an assistant: each a process of its own, so that it can be stopped and writes nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless.assistant.tools import CommandLine

GRACE_SECONDS = 5.0
"""Time that a command has to tell its best so far once it was asked to stop."""
_PROGRAM = (sys.executable, "-P", "-m", "capacity_tui.tui")
"""Without the working directory on the path, where files may be called as modules are."""
_LESS = "ask for less, or start `capacity-tui mcp` with a larger --time-limit"
_OWN_NAME = "capacity-tui: "


class CallError(CapacityError):
    """A command that gave no answer; its text is what the command said."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command answered.

    Attributes:
        data: its JSON.
        notes: what it said beside it.
    """

    data: dict[str, object]
    notes: tuple[str, ...] = ()


class Calls:
    """Runs commands, a few at once, each within a time limit.

    Args:
        limit_seconds: longest that one command may take; what it found until then is its answer, where it has any.
        at_once: how many run at the same time; others wait for their turn.

    Attributes:
        processes: what runs now.
    """

    def __init__(self, limit_seconds: float, at_once: int | None = None) -> None:
        self._limit = limit_seconds
        self._turn = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self.processes: set[asyncio.subprocess.Process] = set()

    async def answer(self, line: CommandLine) -> Outcome:
        """Run a command and return what it answered; cancelled, the command ends at once.

        Raises:
            CallError: it refused, or took too long.
        """
        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *_PROGRAM, *line.words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            self.processes.add(process)
            try:
                return await self._outcome(process, line)
            finally:
                self.processes.discard(process)
                await _end(process)

    async def _outcome(self, process: asyncio.subprocess.Process, line: CommandLine) -> Outcome:
        told = asyncio.ensure_future(process.communicate(line.given.encode()))
        try:
            finished, _ = await asyncio.wait({told}, timeout=self._limit)
            if not finished:
                process.send_signal(signal.SIGINT)
                finished, _ = await asyncio.wait({told}, timeout=GRACE_SECONDS)
                if not finished:
                    raise CallError(f"took longer than {self._limit:g} s", hint=_LESS)
                return self._read(await told, stopped=True)
            return self._read(await told, stopped=False)
        finally:
            told.cancel()

    def _read(self, told: tuple[bytes, bytes], *, stopped: bool) -> Outcome:
        """Return the answer in what a command wrote; what it said beside it are notes."""
        out, beside = (text.decode(errors="replace") for text in told)
        notes = tuple(line.removeprefix(_OWN_NAME) for line in beside.splitlines() if line.strip())
        with suppress(json.JSONDecodeError):
            data = json.loads(out)
            if isinstance(data, dict):
                late = (f"stopped after {self._limit:g} s: this is the best so far",) if stopped else ()
                return Outcome(data, (*notes, *late))
        if stopped:
            raise CallError(f"took longer than {self._limit:g} s", hint=_LESS)
        raise CallError("; ".join(notes) or "no answer")

    def end_all(self) -> None:
        """End all that runs, at once."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command that runs still, and wait until it has."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
