"""A process of a group, or those of one node: time collectives; the first rank reports the timings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

from capacity_tui.engine.runs.sampling.samples import Timing, summary
from capacity_tui.engine.runs.sampling.torch_kernels import load_torch

WARM_UPS, FEWEST, MOST = 2, 5, 50
# Every case gets about this long.
CASE_SECONDS = 0.3
POLL_SECONDS = 0.05
ELEMENT_BYTES = 4
STDOUT = "-"
RANK_MODULE = "capacity_tui.engine.runs.sampling.rank"


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
        timeout=timedelta(seconds=task["seconds"]),
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
