"""Nodes of a Ray cluster: a task pinned to each of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event

from capacity_tui.engine.nodes.launchers.launcher import NodeAnswer, Order
from capacity_tui.engine.nodes.launchers.ray_session import connect, load_ray

_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 10.0
"""What a task may take to be placed, beyond the seconds of its command."""


@dataclass(frozen=True, slots=True)
class RayNodes:
    """The nodes of a running cluster.

    Attributes:
        address: where its head listens, ``auto`` for the one this machine belongs to.
    """

    address: str = "auto"

    @property
    def name(self) -> str:
        """What reaches the nodes."""
        return "Ray"

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes that are alive, by address; equal addresses are distinguished by the node's id.

        Raises:
            LauncherError: no cluster answers at the address.
            MissingPartError: Ray is not installed.
        """
        return tuple(self._alive())

    def run(self, order: Order, nodes: Sequence[str], cancelled: Event | None = None) -> Iterator[NodeAnswer]:
        """Run a command as a task on each of some nodes."""
        ray, alive = load_ray(), self._alive()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 - an optional extra

        task = ray.remote(num_cpus=0, max_retries=0)(_run_here)
        waiting = {}
        for node in nodes:
            if node not in alive:
                yield NodeAnswer(node, failure="not part of the Ray cluster any more")
                continue
            pinned = task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(alive[node], soft=False))
            waiting[pinned.remote(order.words, order.text, order.seconds)] = node
        left = order.seconds + _GRACE_SECONDS
        try:
            while waiting and left > 0 and not (cancelled is not None and cancelled.is_set()):
                done, _ = ray.wait(list(waiting), num_returns=1, timeout=_LOOK_SECONDS)
                left -= 0 if done else _LOOK_SECONDS
                for reference in done:
                    yield _answer(waiting.pop(reference), reference)
            why = (
                "cancelled" if cancelled is not None and cancelled.is_set() else f"no answer within {order.seconds:g} s"
            )
            yield from (NodeAnswer(node, failure=why) for node in waiting.values())
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _alive(self) -> dict[str, str]:
        """Return the ids of the nodes that are alive by their names."""
        ray = connect(self.address)
        addresses: dict[str, str] = {}
        for node in sorted(ray.nodes(), key=lambda node: str(node["NodeID"])):
            if node["Alive"]:
                address, number = str(node["NodeManagerAddress"]), str(node["NodeID"])
                addresses[f"{address}-{number[:6]}" if address in addresses else address] = number
        return addresses


def _run_here(words: tuple[str, ...], text: str, seconds: float) -> tuple[int | None, str, str]:
    """Run a command on the node of the task; return its exit code, output and errors."""
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603 - the caller's command
    except subprocess.TimeoutExpired:
        return None, "", f"no answer within {seconds:g} s"
    except OSError as error:
        return None, "", f"{words[0]} cannot be started: {error.strerror}"
    return done.returncode, done.stdout, done.stderr


def _answer(node: str, task: object) -> NodeAnswer:
    ray = load_ray()
    try:
        exit_code, output, error = ray.get(task)
    except ray.exceptions.RayError as failure:
        return NodeAnswer(node, failure=f"the task was lost: {' '.join(str(failure).split())[:200]}")
    if exit_code is None:
        return NodeAnswer(node, failure=error)
    last = error.strip().splitlines()
    failed = f"exit code {exit_code}{f': {last[-1][:200]}' if last else ''}" if exit_code else ""
    return NodeAnswer(node, output, failed, exit_code, error)
