"""Nodes of a Ray cluster: a task pinned to each of them."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.extras import importing
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order, failure_of
from capacity_tui.engine.record import dataclass

_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 10.0  # What a task may take to be placed, beyond the seconds of its command


@dataclass(frozen=True, slots=True)
class RayNodes:
    """The nodes of a running cluster."""

    address: str = "auto"  # where its head listens, ``auto`` for the one this machine belongs to

    @property
    def name(self) -> str:
        return "Ray"

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes that are alive, by address; equal addresses are distinguished by the node's id.

        Raises:
            LauncherError: no cluster answers at the address.
            MissingPartError: Ray is not installed.
        """
        return tuple(self._alive())

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        ray, alive = load_ray(), self._alive()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 - an optional extra

        task = ray.remote(num_cpus=0, max_retries=0)(_run_command)
        waiting = {}
        for node in nodes:
            if node not in alive:
                yield NodeAnswer(node, failure="not part of the Ray cluster any more")
                continue
            pinned = task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(alive[node], soft=False))
            waiting[pinned.remote(order.words, order.text, order.seconds)] = node
        seconds_left = order.seconds + _GRACE_SECONDS
        try:
            while waiting and seconds_left > 0:
                done, _ = ray.wait(list(waiting), num_returns=1, timeout=_LOOK_SECONDS)
                seconds_left -= 0 if done else _LOOK_SECONDS
                for reference in done:
                    yield _answer(waiting.pop(reference), reference)
            why = f"no answer within {order.seconds:g} s"
            yield from (NodeAnswer(node, failure=why) for node in waiting.values())
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _alive(self) -> dict[str, str]:
        ray = connect(self.address)
        addresses: dict[str, str] = {}
        for node in sorted(ray.nodes(), key=lambda node: str(node["NodeID"])):
            if node["Alive"]:
                address, number = str(node["NodeManagerAddress"]), str(node["NodeID"])
                addresses[f"{address}-{number[:6]}" if address in addresses else address] = number
        return addresses


def _run_command(words: tuple[str, ...], text: str, seconds: float) -> tuple[int | None, str, str]:
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
    return NodeAnswer(node, output, failure_of(exit_code, error), exit_code, error)


LOCAL = "local"
NAMESPACE = "capacity-tui"  # Where the workers that searches leave for each other have their names
ANSWER_SECONDS = 5.0  # How long a cluster has to take a connection
_EXAMPLE = "give HOST:PORT, auto for the cluster of this node, or local:4 for four workers here"

# Ray reports no usage, and prints nothing unasked. Under `uv run` it would take the whole folder to
# each worker and make an environment there, over the network, before a task begins.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


def load_ray() -> Any:
    """Return the ray module; raises MissingPartError if it is not installed, or broken."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    with importing("ray", "Ray is not installed"):
        import ray  # noqa: PLC0415 - an optional extra
    return ray


@contextmanager
def ray_session(address: str) -> Iterator[Any]:
    """Connect to a Ray cluster, and yield the ray module; what is started here ends at the end."""
    ray = connect(address)
    try:
        yield ray
    finally:
        ray.shutdown()


def connect(address: str) -> Any:
    """Connect to a Ray cluster, unless this process already is, and return the ray module.

    Args:
        address: ``HOST:PORT`` or ``ray://HOST:PORT`` of a cluster, ``auto`` for that of this node, ``local`` or
            ``local:N`` for one with as many workers as processors, or N, that is started here.

    Raises:
        MissingPartError: Ray is not installed.
        LauncherError: the address is invalid, or no cluster answers there.
    """
    workers = _local_workers(address)
    if workers is not None:
        # No other user of this machine may use what is started here, and no token for it is left behind.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray = load_ray()
    if ray.is_initialized():
        return ray
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        if workers is not None:
            ray.init(num_cpus=workers or None, include_dashboard=False, **quiet)
        else:
            _knock(address)
            ray.init(address=address, namespace=NAMESPACE, **quiet)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError, OSError) as error:
        words = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "`ray status` shows whether one runs there; versions of Ray and Python must be those of the cluster"
        raise LauncherError(f"no Ray cluster answers at {address}", words, hint) from error
    return ray


def is_local(address: str) -> bool:
    """Return whether an address means workers on this machine that are started for it."""
    return address.partition(":")[0] == LOCAL


def _local_workers(address: str) -> int | None:
    """Return how many workers are to be started here, 0 for one a processor; None where a cluster is named."""
    if not is_local(address):
        if address != "auto" and not _port(address):
            raise LauncherError("not an address of a Ray cluster", repr(address)[:80], _EXAMPLE)
        return None
    _, colon, count = address.partition(":")
    if colon and not (count.isdecimal() and 0 < int(count) <= 1024):
        raise LauncherError("not a number of workers", repr(count)[:40], _EXAMPLE)
    return int(count) if colon else 0


def _port(address: str) -> int:
    port = address.rpartition(":")[2]
    return int(port) if port.isdecimal() and int(port) < 2**16 else 0


def _knock(address: str) -> None:
    """Check that a connection is accepted, else raise OSError: Ray itself waits minutes for an answer."""
    if address != "auto":
        host = address.removeprefix("ray://").rpartition(":")[0].strip("[]")
        socket.create_connection((host, _port(address)), ANSWER_SECONDS).close()
