"""``mcp``: serves the commands to a coding assistant over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capacity_tui.engine.errors import CapacityError, MissingPartError
from capacity_tui.engine.extras import install_command
from capacity_tui.engine.record import dataclass
from capacity_tui.tui.cli.assistant_tools import (
    TOOLS,
    AllowedFolders,
    CommandLine,
    Tool,
    check_words,
    command_line,
    schema_of,
)
from capacity_tui.tui.cli.options import options

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.lowlevel import Server

PROGRAM = "capacity-tui"
EXTRA = "mcp"

INSTRUCTIONS = """\
Estimates of machine-learning runs before any GPU-hour is spent: whether a model fits, how long it takes, what it costs.
Say a plan by name, path, line or object; leave open what the program should choose. Each estimated figure is
{value, low, high}: the range holds what was measured in eight of ten comparable runs. Errors say what is allowed.
Begin with `plan`; use `search` or `need` rather than trying values one by one, and `explain` to learn where a figure
comes from.
"""


@click.command()
@options("mcp")
def mcp(time_limit: float, folders: tuple[Path, ...]) -> int:
    """Serve this program to a coding assistant, by the Model Context Protocol on standard input and output.

    Offers detect, plan, search, need, validate and explain as tools. The assistant starts this command itself;
    it ends when its input does.
    """
    try:
        import_module("mcp.server.stdio")
    except ImportError as error:
        hint = f"install it: {install_command(EXTRA)}"
        raise MissingPartError("serving assistants needs the package mcp", str(error), hint) from error
    asyncio.run(_serve(time_limit, AllowedFolders.of(folders)))
    return 0


async def _serve(time_limit: float, reach: AllowedFolders) -> None:
    """Answer until the input ends."""
    from mcp.server.stdio import stdio_server

    calls = Calls(time_limit)
    _end_on_signals(calls)
    server = server_of(calls, reach)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _end_on_signals(calls: Calls) -> None:
    """Let the signals that end a program end what it runs too: reading the input cannot be interrupted."""

    def end(number: int) -> None:
        calls.end_all()
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)


def server_of(calls: Calls, reach: AllowedFolders) -> Server[Any]:
    """Return the server of all tools, which may name the files within reach."""
    from mcp import types
    from mcp.server.lowlevel import Server

    known = {tool.name: tool for tool in TOOLS}

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_offered(tool) for tool in TOOLS])

    async def call_tool(_: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            tool = known.get(asked.name)
            if tool is None:
                raise CapacityError(f"no tool is called {asked.name[:100]!r}", hint=f"known: {', '.join(known)}")
            line = command_line(tool, asked.arguments or {})
            reach.check(asked.arguments or {})
            check_words(line.words)
            return _result(await calls.answer(line))
        except CapacityError as error:
            return types.CallToolResult(content=[types.TextContent(text=error.one_line())], is_error=True)

    return Server(
        PROGRAM, version=version(PROGRAM), instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _offered(tool: Tool) -> types.Tool:
    """Return a tool as it is offered; none changes anything."""
    from mcp import types

    hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=schema_of(tool),
        output_schema={"type": "object"},
        annotations=hints,
    )


def _result(outcome: Outcome) -> types.CallToolResult:
    """Return what a command answered, as data and as the text of it."""
    from mcp import types

    data = outcome.data | ({"notes": list(outcome.notes)} if outcome.notes else {})
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=data)


GRACE_SECONDS = 5.0  # Time that a command has to tell its best so far once it was asked to stop
_PROGRAM = (sys.executable, "-P", "-m", "capacity_tui.tui")
"""Without the working directory on the path, where files may be called as modules are."""

_LESS = "ask for less, or start `capacity-tui mcp` with a larger --time-limit"
_OWN_NAME = "capacity-tui: "


class CallError(CapacityError):
    """A command that gave no answer; its text is what the command said."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command answered."""

    data: dict[str, object]  # its JSON
    notes: tuple[str, ...] = ()  # what it said beside it


class Calls:
    """Runs commands, a few at once, each within a time limit.

    Args:
        limit_seconds: longest that one command may take; what it found until then is its answer, where it has any.
        at_once: how many run at the same time; others wait for their turn.
    """

    def __init__(self, limit_seconds: float, at_once: int | None = None) -> None:
        self._limit = limit_seconds
        self._turn = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self.processes: set[asyncio.subprocess.Process] = set()  # what runs now

    async def answer(self, line: CommandLine) -> Outcome:
        """Run a command and return what it answered; cancelled, the command ends at once."""
        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *_PROGRAM,
                *line.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            self.processes.add(process)
            try:
                return await self._outcome(process, line)
            finally:
                self.processes.discard(process)
                await _end(process)

    async def _outcome(self, process: asyncio.subprocess.Process, line: CommandLine) -> Outcome:
        output = asyncio.ensure_future(process.communicate(line.given.encode()))
        try:
            finished, _ = await asyncio.wait({output}, timeout=self._limit)
            if not finished:
                process.send_signal(signal.SIGINT)
                finished, _ = await asyncio.wait({output}, timeout=GRACE_SECONDS)
                if not finished:
                    raise CallError(f"took longer than {self._limit:g} s", hint=_LESS)
                return self._read(await output, stopped=True)
            return self._read(await output, stopped=False)
        finally:
            output.cancel()

    def _read(self, output: tuple[bytes, bytes], *, stopped: bool) -> Outcome:
        """Return the answer in what a command wrote; what it said beside it are notes."""
        out, errors = (text.decode(errors="replace") for text in output)
        notes = tuple(line.removeprefix(_OWN_NAME) for line in errors.splitlines() if line.strip())
        with suppress(json.JSONDecodeError):
            data = json.loads(out)
            if isinstance(data, dict):
                late = (f"stopped after {self._limit:g} s: this is the best so far",) if stopped else ()
                return Outcome(data, (*notes, *late))
        if stopped:
            raise CallError(f"took longer than {self._limit:g} s", hint=_LESS)
        raise CallError("; ".join(notes) or "no answer")

    def end_all(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command that runs still, and wait until it has."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
