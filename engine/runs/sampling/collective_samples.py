"""Sampling collectives: real processes, of which the first reports, pass messages through torch.distributed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine import end_group
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.sampling.kernel_samples import Progress, load_torch
from capacity_tui.engine.runs.sampling.samples import Sample, Timing, append, open_samples, sample_path, summary, today

WARM_UPS, FEWEST, MOST = 2, 5, 50
# Every case gets about this long.
CASE_SECONDS = 0.3
# How long a rank waits for the others before it says which are missing, and how long a group may stay silent.
TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.05
ELEMENT_BYTES = 4
STDOUT = "-"
RANK_MODULE = "capacity_tui.engine.runs.sampling.collective_samples"


class Task(TypedDict):
    """What a rank is started with; see ``collectives``."""

    backend: str
    rank: int  # its number, from 0
    size: int
    device: int  # its device among those of its node
    meeting: str
    cases: list[tuple[str, int]]  # collectives and bytes
    target: str | None  # file for what they took, or standard output; None for all but the first rank
    seconds: float  # how long it may live


def main(task: Task) -> None:
    """Meet the other ranks, time every case, and part; its parent may be gone, so it ends by itself."""
    signal.alarm(max(1, round(task["seconds"])))
    torch = load_torch()
    gpu = task["backend"] == "nccl"
    if gpu:
        torch.cuda.set_device(task["device"])
    group = torch.distributed
    group.init_process_group(
        task["backend"],
        init_method=task["meeting"],
        rank=task["rank"],
        world_size=task["size"],
        timeout=timedelta(seconds=min(TIMEOUT_SECONDS, task["seconds"])),
    )
    for name, size in task["cases"]:
        timing = _timed(torch, name, size, task, gpu)
        if task["target"] is not None:
            _tell(task["target"], (name, size, None if timing is None else asdict(timing)))
    group.destroy_process_group()


def _timed(torch: Any, name: str, size: int, task: Task, gpu: bool) -> Timing | None:
    """Return how long a collective takes; None where the backend lacks it."""
    try:
        run = _prepared(torch, name, size, task, "cuda" if gpu else "cpu")
        once = _seconds(torch, run, gpu, WARM_UPS)
    except (RuntimeError, NotImplementedError):
        return None
    # All ranks must run equally often: the first one's warm-up decides for all.
    shared = torch.tensor([once], device="cuda" if gpu else "cpu")
    torch.distributed.broadcast(shared, 0)
    runs = max(FEWEST, min(MOST, int(CASE_SECONDS / max(float(shared.item()), 1e-9))))
    return summary([_seconds(torch, run, gpu, 1) for _ in range(runs)], runs)


def _seconds(torch: Any, run: Callable[[], object], gpu: bool, repeats: int) -> float:
    torch.distributed.barrier()
    if gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    if gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def _prepared(torch: Any, name: str, size: int, task: Task, device: str) -> Callable[[], object]:
    group, members, rank = torch.distributed, task["size"], task["rank"]
    elements = max(members, size // ELEMENT_BYTES // members * members)
    whole = torch.ones(elements, device=device)
    part = torch.ones(elements // members, device=device)
    if name == "all_reduce":
        return lambda: group.all_reduce(whole)
    if name == "all_gather":
        return lambda: group.all_gather_into_tensor(whole, part)
    if name == "reduce_scatter":
        return lambda: group.reduce_scatter_tensor(part, whole)
    if name == "all_to_all":
        received = torch.empty_like(whole)
        return lambda: group.all_to_all_single(received, whole)
    return lambda: _pass_on(group, whole, rank)


def _pass_on(group: Any, whole: Any, rank: int) -> None:
    """Send from the first rank to the second; the others look on."""
    if rank == 0:
        group.send(whole, 1)
    elif rank == 1:
        group.recv(whole, 0)


def run_node_ranks(tasks: list[Task]) -> int:
    """Run the ranks of one node, a process each, and return the first exit code that is not 0; then all are ended."""
    words = ([sys.executable, "-m", RANK_MODULE, json.dumps([task])] for task in tasks)
    ranks = [subprocess.Popen(command) for command in words]  # noqa: S603 - this interpreter, with this very module
    try:
        while not (failed := [code for rank in ranks if (code := rank.poll())]):
            if all(rank.poll() == 0 for rank in ranks):
                return 0
            time.sleep(POLL_SECONDS)
        return failed[0]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def _tell(target: str, line: tuple[str, int, dict[str, float] | None]) -> None:
    if target == STDOUT:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        return
    path = Path(target)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    given: list[Task] = json.loads(sys.argv[1])
    if len(given) == 1:
        main(given[0])
    else:
        sys.exit(run_node_ranks(given))


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
# From what latency rules to what bandwidth rules (bytes, the whole buffer).
SIZES = tuple(2**power for power in range(12, 30, 2))
QUICK_SIZES = (2**13, 2**17, 2**21, 2**24)
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
    return Sample(
        name=name,
        step="forward",
        dtype="fp32",
        shape={"bytes": size, "group": group.size, **({"nodes": group.nodes} if group.nodes > 1 else {})},
        **asdict(timing),
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
