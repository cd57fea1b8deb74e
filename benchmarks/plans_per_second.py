"""Layouts a second through the search that modes use: memory, step time and verdict of every one, on one core.

Prints the rate over a grid with one array dimension for each field, the same layouts as flat lists, and the ratio to
estimating one plan at a time. Run it alone, and on one core: ``taskset -c 0 python benchmarks/plans_per_second.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.space.grid import Axis, divisors, powers_of_two
from capacity_tui.engine.choose.space.ranking import top
from capacity_tui.engine.choose.space.training import Evaluated, TrainingSpace, training_space
from capacity_tui.engine.estimate.assemble import memory_estimate
from capacity_tui.engine.estimate.estimate import estimate_resolved, transformer_work
from capacity_tui.engine.estimate.resolve import resolve_plan
from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan.plan import Plan

WANTED = 2_000_000
REPEATS = 5
DEVICES = 512
PLAN = {
    "model": {"name": "llama-3.1-70b"},
    "training": {"global_batch": 1024, "framework": "megatron"},
    "hardware": {"name": "h100-sxm-80gb", "devices": DEVICES},
}
AXES = (
    Axis("training.checkpointing", ("none", "selective", "selective-ops", "every-2", "full")),
    Axis("parallelism.offload", ("none", "optimizer")),
    Axis("parallelism.zero", (0, 1, 2, 3)),
    Axis("training.seq_len", tuple(1024 * thousands for thousands in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64))),
    Axis("training.micro_batch", powers_of_two(64)),
    Axis("parallelism.cp", powers_of_two(8)),
    Axis("parallelism.tp", powers_of_two(8)),
    Axis("parallelism.pp", tuple(size for size in divisors(DEVICES) if size <= 64)),
)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the median processor time of some work, s."""
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return sorted(taken)[REPEATS // 2]


def speed_of_what_fits(block: Evaluated, capacity: float) -> Number:
    """Return what a search ranks by, on devices of so many bytes."""
    return np.where(np.less_equal(block.reserved_bytes, capacity), block.units_per_second, -np.inf)


def flat(space: TrainingSpace) -> None:
    """Evaluate every combination of the grid as flat lists, by the same equations."""
    for block in space.grid.blocks(2**16):
        part = space.grid.part(block)
        run = space.run(part)

        def whole(number: object, shape: tuple[int, ...] = part.shape) -> Number:
            return np.broadcast_to(np.asarray(number), shape).ravel()

        sizes = {name: whole(getattr(run, name)) for name in ("dp", "tp", "pp", "cp", "etp", "shard", "zero")}
        others = ("seq_len", "micro_batch", "sequence_parallel", "offload_optimizer", "interleave")
        recompute = {name: whole(getattr(run.recompute, name)) for name in run.recompute.__slots__}
        run = replace(
            run,
            **sizes,
            **{name: whole(getattr(run, name)) for name in others},
            recompute=replace(run.recompute, **recompute),
        )
        work = transformer_work(run, space.resolved.plan)
        _ = memory_estimate(work, run.cluster).held, step_time(work).seconds


def main() -> None:
    catalog, plan = load_catalog(), Plan.model_validate(PLAN)
    resolved = resolve_plan(plan, catalog)
    assert resolved.shape is not None
    space = training_space(plan, resolved, resolved.shape, catalog, AXES)
    print(f"{space.size:,} combinations of {len(AXES)} fields; rules exclude {space.size - space.count:,}:")
    for excluded in space.excluded:
        print(f"  {excluded.count:>9,}  {excluded.words}")
    ranked = partial(speed_of_what_fits, capacity=float(resolved.cluster.device.memory_bytes or np.inf))
    searched = seconds_of(lambda: top(space.blocks(), ranked, 10))
    listed = seconds_of(lambda: flat(space))
    one = seconds_of(lambda: [estimate_resolved(resolved, catalog) for _ in range(20)]) / 20
    rates = {
        "grid, all combinations": space.grid.size / searched,
        "grid, possible layouts": space.count / searched,
        "flat lists": space.grid.size / listed,
        "one plan at a time": 1.0 / one,
    }
    for name, rate in rates.items():
        print(f"{name:<24}{rate:>14,.0f} a second")
    print(f"wanted{WANTED:>32,} a second")


if __name__ == "__main__":
    main()
