"""Sampling collectives: real processes that pass messages through torch.distributed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine import end_group
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.sampling.kernel_samples import Progress
from capacity_tui.engine.runs.sampling.rank import RANK_MODULE, Task
from capacity_tui.engine.runs.sampling.samples import Sample, Timing, append, open_samples, sample_path, today
from capacity_tui.engine.runs.sampling.torch_kernels import load_torch

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
# From what latency rules to what bandwidth rules (bytes, the whole buffer).
SIZES = tuple(2**power for power in range(12, 30, 2))
QUICK_SIZES = (2**13, 2**17, 2**21, 2**24)
TIMEOUT_SECONDS = 120.0
LIFE_SECONDS = 3600.0
_UNTIMED = Timing(0.0, 0.0, 0.0, 0)
_POLL_SECONDS, _GRACE_SECONDS = 0.05, 3.0


@dataclass(frozen=True, slots=True)
class Group:
    """Processes that pass messages."""

    size: int
    backend: str  # ``nccl`` on GPUs, ``gloo`` on CPUs
    nodes: int = 1


def collective_groups(where: str, largest: int) -> tuple[Group, ...]:
    """Return the groups to time: powers of two up to the number of devices."""
    backend = "nccl" if where == "gpu" else "gloo"
    sizes = [2**power for power in range(1, 11) if 2**power <= largest]
    return tuple(Group(size, backend) for size in sizes)


def sample_collectives(
    device: str,
    groups: tuple[Group, ...],
    sizes: tuple[int, ...] = SIZES,
    *,
    folder: Path | None = None,
    cancelled: threading.Event | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Iterator[Progress]:
    """Time collectives over group and message sizes; what was timed before is left out.

    Args:
        device: key of the device, which names the file.
        sizes: bytes of the whole buffer.
        folder: the program's data, the user's own by default.
        cancelled: ends the iteration and every process when set.
        timeout_seconds: the longest a group may stay silent.

    Raises:
        MissingPartError: torch is not installed.
        HardwareError: a group failed or hung; what was timed before stays.
        StorageError: the file cannot be written.
    """
    torch = load_torch()
    total, done = len(groups) * len(sizes) * len(COLLECTIVES), 0
    for group in groups:
        software = {"collectives": group.backend, "torch": str(torch.__version__)}
        opened = open_samples(sample_path(device, software, folder), software)
        known = {sample.key for sample in opened.samples}
        wanted = [(name, size) for name in COLLECTIVES for size in sizes]
        missing = [(name, size) for name, size in wanted if sample_of(name, size, group, _UNTIMED).key not in known]
        done += len(wanted) - len(missing)
        for name, size, timing in _run(group, missing, cancelled, timeout_seconds):
            sample = None if timing is None else sample_of(name, size, group, timing)
            if sample is not None:
                append(opened.path, sample)
            done += 1
            yield Progress(done, total, f"{name} {size} B, {group.size} {group.backend} ranks", sample)


def sample_of(name: str, size: int, group: Group, timing: Timing) -> Sample:
    """Return the sample of a collective that a group timed."""
    return Sample(
        name=name,
        step="forward",
        dtype="fp32",
        shape={"bytes": size, "group": group.size, **({"nodes": group.nodes} if group.nodes > 1 else {})},
        seconds=timing.seconds,
        best=timing.best,
        spread=timing.spread,
        runs=timing.runs,
        date=today(),
    )


def _run(
    group: Group, cases: list[tuple[str, int]], cancelled: threading.Event | None, timeout_seconds: float
) -> Iterator[tuple[str, int, Timing | None]]:
    """Start one process a rank and yield the timings of the first one; none outlives this call."""
    if not cases:
        return
    with tempfile.TemporaryDirectory(prefix="capacity-tui-") as folder:
        timings = Path(folder) / "timings.jsonl"
        ranks = [_start(group, rank, cases, Path(folder), timings) for rank in range(group.size)]
        try:
            yield from _follow(ranks, timings, len(cases), cancelled, timeout_seconds)
        finally:
            _end(ranks)


def _start(
    group: Group, rank: int, cases: list[tuple[str, int]], folder: Path, timings: Path
) -> subprocess.Popen[bytes]:
    task = Task(
        backend=group.backend,
        rank=rank,
        size=group.size,
        device=rank,
        meeting=f"file://{folder / 'meeting'}",
        cases=cases,
        target=str(timings) if rank == 0 else None,
        seconds=LIFE_SECONDS,
    )
    # One thread a rank: ranks on one machine share its cores.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"rank-{rank}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - this interpreter, with a module of our own
            [sys.executable, "-m", RANK_MODULE, json.dumps([task])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def _follow(
    ranks: list[subprocess.Popen[bytes]],
    timings: Path,
    expected: int,
    cancelled: threading.Event | None,
    timeout_seconds: float,
) -> Iterator[tuple[str, int, Timing | None]]:
    read, heard = 0, time.monotonic()
    while read < expected:
        lines = timings.read_text().split("\n")[:-1] if timings.exists() else []
        for line in lines[read:]:
            name, size, timing = json.loads(line)
            read, heard = read + 1, time.monotonic()
            yield str(name), int(size), None if timing is None else Timing(**timing)
        if cancelled is not None and cancelled.is_set():
            return
        if len(lines) < expected and any(rank.poll() not in (None, 0) for rank in ranks):
            raise HardwareError("a rank of the group failed", _last_words(timings.parent), "see the group's software")
        if time.monotonic() - heard > timeout_seconds:
            hint = "check that the ranks reach each other, or ask for smaller groups"
            raise HardwareError("the group fell silent", f"for {timeout_seconds:g} s", hint)
        time.sleep(_POLL_SECONDS)


def _last_words(folder: Path) -> str:
    texts = (log.read_text(errors="replace").strip().splitlines() for log in sorted(folder.glob("rank-*.log")))
    return next((lines[-1][:200] for lines in texts if lines), "without a word")


def _end(ranks: list[subprocess.Popen[bytes]]) -> None:
    """End every process that still runs, with all it started."""
    for rank in ranks:
        if rank.poll() is None:
            end_group(rank, gently=True)
    deadline = time.monotonic() + _GRACE_SECONDS
    for rank in ranks:
        try:
            rank.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            end_group(rank)
            rank.wait()
