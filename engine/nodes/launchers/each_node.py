"""One local process for each node, which reaches it: side by side, with a time limit each."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Event

from capacity_tui.engine.nodes.launchers.launcher import NodeAnswer, Order

AT_ONCE = 32
"""Nodes queried in parallel: enough to be quick, few enough for a login node."""
_LOOK_SECONDS = 0.2
_ENDING_SECONDS = 0.5
_LAST_WORDS = 200


def on_each_node(
    order: Order, nodes: Sequence[str], words_for: Callable[[str], Sequence[str]], cancelled: Event | None = None
) -> Iterator[NodeAnswer]:
    """Run a process for each node, and yield the answers as they come.

    Args:
        words_for: the local command that runs it on a node.
        cancelled: when set, what still runs is ended, and answers so.
    """
    stopped = Event()

    def asked(node: str) -> NodeAnswer:
        return _answer(
            order, node, words_for(node), lambda: stopped.is_set() or (cancelled is not None and cancelled.is_set())
        )

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(nodes))), "nodes") as threads:
        waiting: set[Future[NodeAnswer]] = {threads.submit(asked, node) for node in nodes}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            stopped.set()


def _answer(order: Order, node: str, words: Sequence[str], is_stopped: Callable[[], bool]) -> NodeAnswer:
    if is_stopped():
        return NodeAnswer(node, failure="not asked: cancelled")
    try:
        process = subprocess.Popen(  # noqa: S603 - the launcher's program, and the caller's command for the node
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return NodeAnswer(node, failure=f"{words[0]} cannot be started: {error.strerror}")
    text: bytes | None = order.text.encode()
    left = order.seconds
    while True:
        try:
            output, error_text = process.communicate(text, timeout=min(_LOOK_SECONDS, max(left, 0.0)))
        except subprocess.TimeoutExpired:
            text, left = None, left - _LOOK_SECONDS
            if is_stopped():
                _end(process)
                return NodeAnswer(node, failure="cancelled")
            if left <= 0:
                _end(process)
                return NodeAnswer(node, failure=f"no answer within {order.seconds:g} s")
            continue
        output_text, errors = output.decode(errors="replace"), error_text.decode(errors="replace")
        return NodeAnswer(node, output_text, _failure(process.returncode, errors), process.returncode, errors)


def _failure(exit_code: int, errors: str) -> str:
    """Return why a process failed, in its own last words; nothing where it ended well."""
    if exit_code == 0:
        return ""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    ended = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    return f"{ended}: {lines[-1][:_LAST_WORDS]}" if lines else ended


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started: by SIGTERM first, so that it ends what runs on the node."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_ENDING_SECONDS)
            return
