"""``mcp``: serves the commands to a coding assistant over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capacity_tui.engine.errors import CapacityError, MissingPartError
from capacity_tui.engine.extras import install_command
from capacity_tui.tui.headless.assistant.calls import Calls, Outcome
from capacity_tui.tui.headless.assistant.reach import Reach, check_words
from capacity_tui.tui.headless.assistant.tools import TOOLS, Tool, command_line, schema_of

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.lowlevel import Server

PROGRAM = "capacity-tui"
EXTRA = "mcp"
LONGEST_SECONDS = 120.0
INSTRUCTIONS = """\
Estimates of machine-learning runs before any GPU-hour is spent: whether a model fits, how long it takes, what it costs.
Say a plan by name, path, line or object; leave open what the program should choose. Each estimated figure is
{value, low, high}: the range holds what was measured in eight of ten comparable runs. Errors say what is allowed.
Begin with `plan`; use `search` or `need` rather than trying values one by one, and `explain` to learn where a figure
comes from.
"""


@click.command()
@click.option("--time-limit", type=click.FloatRange(1), default=LONGEST_SECONDS, show_default=True, metavar="SECONDS",
              help="Longest that one call may take; a search answers with its best so far.")  # fmt: skip
@click.option("--folder", "folders", multiple=True, metavar="DIR",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="A folder whose files may be named, besides the working folder; may be repeated.")  # fmt: skip
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
    asyncio.run(_serve(time_limit, Reach.of(folders)))
    return 0


async def _serve(time_limit: float, reach: Reach) -> None:
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


def server_of(calls: Calls, reach: Reach) -> Server[Any]:
    """Return the server of all tools.

    Args:
        calls: runs their commands.
        reach: which files may be named.
    """
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
