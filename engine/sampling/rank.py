"""One process of a group: times collectives and, if it is the first, writes down how long they took."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from capacity_tui.engine.sampling.timing import Timing, summary
from capacity_tui.engine.sampling.torch_kernels import load_torch

WARM_UPS, FEWEST, MOST = 2, 5, 50
# Every case gets about this long.
CASE_SECONDS = 0.3
ELEMENT_BYTES = 4


class Task(TypedDict):
    """What a rank is started with; see ``collectives``."""

    backend: str
    rank: int
    size: int
    meeting: str
    cases: list[tuple[str, int]]
    told: str | None


def main(task: Task) -> None:
    """Meet the other ranks, time every case, and part."""
    torch = load_torch()
    gpu = task["backend"] == "nccl"
    if gpu:
        torch.cuda.set_device(task["rank"])
    group = torch.distributed
    group.init_process_group(
        task["backend"], init_method=f"file://{task['meeting']}", rank=task["rank"], world_size=task["size"]
    )
    for name, size in task["cases"]:
        timing = _timed(torch, name, size, task, gpu)
        if task["told"] is not None:
            _tell(Path(task["told"]), (name, size, None if timing is None else asdict(timing)))
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


def _tell(path: Path, line: tuple[str, int, dict[str, float] | None]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
