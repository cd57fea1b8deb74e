"""``mcp``: what a coding assistant is offered, asked through the protocol's own client and a real process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from capacity_tui.tui.cli import assistant, main
from capacity_tui.tui.cli.assistant import CallError, Calls
from capacity_tui.tui.cli.assistant_tools import (
    TOOLS,
    AllowedFolders,
    ArgumentError,
    CommandLine,
    FolderError,
    command_line,
    schema_of,
)

if TYPE_CHECKING:
    from mcp.types import CallToolResult

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed")
BY_NAME = {tool.name: tool for tool in TOOLS}
PROGRAM = Path(sys.executable).with_name("capacity-tui")
PLAN = "gpt2_rtx_3060"
SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


def test_the_real_client_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "click.py").write_text("raise ImportError('a file of the user was taken for a module')")
    wrong = {"model": {"name": "gpt2"}, "hardware": {"name": "h100"}, "trainin": {}}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("secret:*:words\n")
    work = tmp_path / "work"
    server = StdioServerParameters(command=str(PROGRAM), args=["mcp"], env=dict(os.environ), cwd=work)

    async def asked() -> list[CallToolResult]:
        async with Client(stdio_client(server, errlog=sys.__stderr__)) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == ["detect", "plan", "search", "need", "validate", "explain"]
            return await asyncio.gather(
                client.call_tool("plan", {"plan": PLAN, "set": {"training.micro_batch": 2}}),
                client.call_tool("validate", {"plan": wrong}),
                client.call_tool("plan", {"plan": PLAN, "sett": {}}),
                client.call_tool("nothing", {}),
                client.call_tool("plan", {"plan": str(elsewhere)}),
                client.call_tool("plan", {"plan": "x" * 200_000}),
                client.call_tool("plan", {"plan": "gpt2\0 train"}),
            )

    planned, checked, unknown, lost, *refused = asyncio.run(asyncio.wait_for(asked(), 60))
    assert main(["plan", PLAN, "--set", "training.micro_batch=2", "--format", "json"]) == 0
    assert planned.structured_content["memory"] == json.loads(capsys.readouterr().out)["memory"]
    assert json.loads(planned.content[0].text) == planned.structured_content
    (fault,) = checked.structured_content["files"][0]["faults"]
    assert (fault["field"], fault["hint"]) == ("trainin", "did you mean training?")
    assert unknown.is_error
    assert unknown.content[0].text == "plan has no argument 'sett'; did you mean set?"
    assert lost.is_error
    assert "known: detect, plan," in lost.content[0].text
    for answer, told in zip(refused, ("outside of what may be read", "longer than", "character 0"), strict=True):
        assert answer.is_error
        assert told in answer.content[0].text
        assert "secret" not in answer.content[0].text


@pytest.mark.parametrize(
    "arguments",
    [
        {"plan": "{away}"},
        {"plan": "../away"},
        {"plan": "link"},
        {"plan": "pipe"},
        {"import": ["{away}"]},
        {"plan": {"model": {"config": "{away}"}}},
        {"plan": "model:\n  config: {away}\n"},
        {"plan": 'model:\n  config: "..\\x2faway"\n'},
        {"set": {"model.config": "{away}"}},
        {"set": ["model.config={away}"]},
    ],
)
def test_files_elsewhere_are_not_read(
    arguments: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, away = tmp_path / "work", tmp_path / "away"
    work.mkdir()
    away.write_text("secret\n")
    (work / "link").symlink_to(away)
    os.mkfifo(work / "pipe")
    monkeypatch.chdir(work)
    named = json.loads(json.dumps(arguments).replace("{away}", str(away)))
    with pytest.raises(FolderError):
        AllowedFolders.of(()).check(named)
    if arguments != {"plan": "pipe"}:
        AllowedFolders.of((tmp_path,)).check(named)


@pytest.mark.parametrize(
    "text", ["meta-llama/Llama-3.1-8B lora 2x4090 4k 50M", "plan.yaml", "./plan.yaml", "1/2", "a / b", "http://x/y"]
)
def test_lines_and_files_of_the_working_folder_are_taken(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text("task: train\n")
    AllowedFolders.of(()).check({"plan": text})


@pytest.mark.parametrize(
    ("name", "arguments", "key", "code"),
    [
        ("search", {"plan": PLAN, "vary": {"training.micro_batch": [1, 2]}, "top": 1}, "top", 0),
        ("need", {"plan": PLAN, "solve": "training.micro_batch", "limit": "memory<=50%"}, "solve", 0),
        ("need", {"plan": PLAN, "solve": "training.micro_batch", "limit": ["memory<=1%"]}, "nearest", 1),
        ("validate", {"plan": "model: {name: gpt2}\nhardware: {nam: h100}\n"}, "valid", 2),
        ("explain", {"model": "gpt2", "gpu": "h100", "seq": 1024, "figure": "memory.parts.weights"}, "formula", 0),
        ("detect", {"profile-only": True}, "cpu", 0),
    ],
)
def test_every_tool_is_a_command_that_answers_in_json(
    name: str,
    arguments: dict[str, object],
    key: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = command_line(BY_NAME[name], arguments)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line.given.encode())))
    assert main(line.words) == code
    assert key in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("plan", {"plan": 3}, "plan is a name, a path, a line or an object"),
        ("need", {"plan": PLAN}, "need needs solve"),
        ("search", {"plan": PLAN, "top": {"a": 1}}, "top is a text, a number"),
        ("detect", {"profile-only": "yes"}, "profile-only is true or false"),
    ],
)
def test_what_is_no_argument_of_a_tool_is_refused(name: str, arguments: dict[str, object], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        command_line(BY_NAME[name], arguments)


def test_schemas_have_types_and_choices() -> None:
    schema = schema_of(BY_NAME["search"])
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["top"]["type"] == "integer"
    assert (properties["top"]["minimum"], properties["top"]["maximum"]) == (1, 1000)
    assert "object" in properties["vary"]["type"]
    assert all(entry["description"] for entry in properties.values())
    assert schema_of(BY_NAME["explain"])["required"] == ["figure"]


@pytest.mark.parametrize("value", ["--help", "-o", "--output=/tmp/x", "@file", "; rm"])
def test_no_value_becomes_an_option(value: str) -> None:
    words = command_line(BY_NAME["search"], {"plan": value, "model": value, "limit": [value]}).words
    assert words == ("search", "--format=json", f"--model={value}", f"--limit={value}", "--", value)


def test_a_call_ends_at_its_limit_and_when_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    best_so_far = "import signal, time; signal.signal(2, lambda *_: print('{}') or exit()); time.sleep(60)"
    programs = iter(((sys.executable, "-c", best_so_far), SLEEP, SLEEP))

    async def ended() -> None:
        monkeypatch.setattr(assistant, "_PROGRAM", next(programs))
        found = await Calls(limit_seconds=1).answer(CommandLine(()))
        assert found.notes == ("stopped after 1 s: this is the best so far",)
        monkeypatch.setattr(assistant, "_PROGRAM", next(programs))
        with pytest.raises(CallError, match="took longer than 1 s; ask for less"):
            await Calls(limit_seconds=1).answer(CommandLine(()))
        running = Calls(limit_seconds=60)
        task = asyncio.ensure_future(running.answer(CommandLine(())))
        while not running.processes:
            await asyncio.sleep(0.01)
        (process,) = running.processes
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert process.returncode == -signal.SIGKILL
        assert not running.processes

    asyncio.run(asyncio.wait_for(ended(), 30))


def test_a_terminated_server_ends_at_once() -> None:
    with subprocess.Popen(
        [PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            server.stdin.write(json.dumps(ping).encode() + b"\nnot the protocol\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == 1
            server.send_signal(signal.SIGTERM)
            assert server.wait(10) == 128 + signal.SIGTERM
        finally:
            server.kill()


def test_without_the_package_the_command_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    assert main(["mcp"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert "serving assistants needs the package mcp" in told.err
    assert "install" in told.err
