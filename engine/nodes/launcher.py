"""What every way to reach nodes has in common: their names, and one command run on each of them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from threading import Event, Thread
from typing import IO, Protocol

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import LauncherError, Place
from capacity_tui.engine.files import reading
from capacity_tui.engine.machine import end_group
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

NODE_SECONDS = 60.0  # Default seconds that a node has for its command


@dataclass(frozen=True, slots=True)
class Order:
    """What is run on nodes."""

    words: tuple[str, ...]  # the command and its arguments, found on the search path of the node
    text: str = ""  # what the command reads from its standard input
    seconds: float = NODE_SECONDS  # how long each node has, from its start


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """How the command went on one node."""

    node: str
    output: str = ""
    failure: str = ""  # why there is no answer, in words; empty where the command ended well
    exit_code: int | None = None  # exit code of the command; None where it did not end
    error: str = ""  # what it wrote to standard error


class Launcher(Protocol):
    """Reaches the nodes of a cluster."""

    @property
    def name(self) -> str:
        """What reaches them: Slurm, Ray or SSH."""

    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes; raises LauncherError where what knows them does not answer."""

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        """Run a command on each of some nodes, side by side; yield the answers as they come, one for each node.

        A node that hangs, dies or refuses answers with a failure, and holds up no other. When the iterator is closed,
        what still runs is ended.
        """


AT_ONCE = 32  # Nodes queried in parallel: enough to be quick, few enough for a login node
MOST_BYTES = 2**26  # More than any answer of a node: what writes on and on is ended there
_PIECE = 2**16
_LOOK_SECONDS = 0.2
_ENDING_SECONDS = 0.5
_LAST_WORDS = 200


def run_on_nodes(order: Order, nodes: Sequence[str], words_for: Callable[[str], Sequence[str]]) -> Iterator[NodeAnswer]:
    """Run a process for each node by the local command for it, and yield the answers as they come."""
    stopped = Event()

    def answer_of(node: str) -> NodeAnswer:
        return run_here(order, node, words_for(node), stopped.is_set)

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(nodes))), "nodes") as threads:
        waiting: set[Future[NodeAnswer]] = {threads.submit(answer_of, node) for node in nodes}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            stopped.set()


def run_here(
    order: Order, node: str, words: Sequence[str], is_stopped: Callable[[], bool], most_bytes: int = MOST_BYTES
) -> NodeAnswer:
    """Run the local command that runs an order on a node, and return its answer; one of too many bytes is ended."""
    if is_stopped():
        return NodeAnswer(node, failure="not asked: cancelled")
    try:
        process = subprocess.Popen(  # noqa: S603 - the launcher's program, and the caller's command for the node
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return NodeAnswer(node, failure=f"{words[0]} cannot be started: {error.strerror}")
    talk, until = _Talk(process, order.text.encode(), most_bytes), time.monotonic() + order.seconds
    while not talk.is_over(min(_LOOK_SECONDS, max(until - time.monotonic(), 0.0))):
        failure = (
            "cancelled" if is_stopped()
            else f"more than {format_bytes(most_bytes)} were written" if talk.floods
            else _with_last_words(f"no answer within {order.seconds:g} s", talk.errors.decode(errors="replace"))
            if time.monotonic() >= until
            else ""
        )  # fmt: skip
        if failure:
            _end(process)
            return NodeAnswer(node, failure=failure)
    exit_code = process.wait()
    output, errors = talk.output.decode(errors="replace"), talk.errors.decode(errors="replace")
    return NodeAnswer(node, output, failure_of(exit_code, errors), exit_code, errors)


class _Talk:
    """What is written to a process and read from it, of which no more is kept than an answer can have."""

    def __init__(self, process: subprocess.Popen[bytes], text: bytes, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.output, self.errors, self.floods = bytearray(), bytearray(), False
        self._threads = (
            Thread(target=self._write, args=(process.stdin, text), daemon=True),
            Thread(target=self._read, args=(process.stdout, self.output), daemon=True),
            Thread(target=self._read, args=(process.stderr, self.errors), daemon=True),
        )
        for thread in self._threads:
            thread.start()

    def is_over(self, seconds: float) -> bool:
        """Wait for some seconds at most, and return whether the process has closed all that it writes to."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        return not self.floods and not any(thread.is_alive() for thread in self._threads)

    def _write(self, pipe: IO[bytes], text: bytes) -> None:
        with suppress(OSError), pipe:
            pipe.write(text)

    def _read(self, pipe: IO[bytes], kept: bytearray) -> None:
        with pipe:
            while piece := os.read(pipe.fileno(), _PIECE):
                if len(kept) + len(piece) > self._most_bytes:
                    self.floods = True
                    return
                kept += piece


def failure_of(exit_code: int, errors: str) -> str:
    """Return why a process failed; nothing where it ended well."""
    if exit_code == 0:
        return ""
    return _with_last_words(f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}", errors)


def _with_last_words(failure: str, errors: str) -> str:
    """Return how a process failed, and the last line that it wrote to standard error."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f"{failure}: {lines[-1][:_LAST_WORDS]}" if lines else failure


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started: by SIGTERM first, so that it ends what runs on the node."""
    for gently in (True, False):
        end_group(process, gently=gently)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_ENDING_SECONDS)
            return


_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-T")
"""Never prompts, gives up on hosts that do not answer, and notices those that die."""

_PAIR, _RACK = "=", "rack"


@dataclass(frozen=True, slots=True)
class Ssh:
    """The hosts of a file."""

    hosts: tuple[str, ...]  # how ``ssh`` knows them
    racks: Mapping[str, str] = field(default_factory=dict)  # racks that the file gives, by host
    program: str = "ssh"

    @property
    def name(self) -> str:
        return "SSH"

    def nodes(self) -> tuple[str, ...]:
        """Return the hosts; raises LauncherError if there is no ssh."""
        if shutil.which(self.program) is None:
            raise LauncherError(f"{self.program} is not installed", hint="install OpenSSH's client")
        return self.hosts

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        words = shlex.join(order.words)
        yield from run_on_nodes(order, nodes, lambda node: (self.program, *_OPTIONS, "--", node, words))


def read_hosts(path: Path) -> Ssh:
    """Return the hosts of a file: one a line, as ``ssh`` knows it, with ``rack=NAME`` behind it where that is known.

    Text after a ``#`` is a comment; other words after a host (``slots=8`` of MPI) are left alone.

    Raises:
        LauncherError: there is none in it, or one that cannot be a host.
        CapacityError: the file cannot be read.
    """
    with reading(path):
        lines = path.read_text("utf-8").splitlines()
    hosts: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        host, *options = words
        if host.startswith("-") or not host.isprintable():
            hint = "write one host a line, as ssh knows it"
            raise LauncherError(f"{host[:60]!r} is no host", hint=hint, place=Place(str(path), number))
        named = dict(option.split(_PAIR, 1) for option in options if _PAIR in option)
        for key in named:
            if key != _RACK and nearest(key, (_RACK,)):
                raise LauncherError(
                    f"unknown word {key!r:.60}", hint="did you mean rack?", place=Place(str(path), number)
                )
        hosts.setdefault(host, named.get(_RACK, ""))
    if not hosts:
        raise LauncherError(
            "no host in the file", hint="write one host a line, as ssh knows it", place=Place(str(path))
        )
    return Ssh(tuple(hosts), {host: rack for host, rack in hosts.items() if rack})
