"""Layouts a second through the searches of modes and of ``search``: memory, time and verdict of every one, on one core.

Prints the rate over a grid with one array dimension for each field, the same layouts as flat lists, estimates of one
plan at a time, and the whole of a search: with a goal alone, with limits at the far end of ranges, with a front, over
serving, and over all accelerators of the catalogue until the first rows. All of it is time of the processor, the least
of some runs. Run it alone, and on one core: ``taskset -c 0 python benchmarks/plans_per_second.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from figures import Figure, show

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_resolved, memory_estimate, resolve_plan, transformer_work
from capacity_tui.engine.estimate.run import RunData, RunLayout
from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.estimate.transformer.run import Recompute
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.solve.search import Answer, Question, parse_goal, parse_limit, search
from capacity_tui.engine.solve.space import Axis, powers_of_two
from capacity_tui.engine.solve.space.axes import divisors
from capacity_tui.engine.solve.space.configurations import TrainingSpace, training_space
from capacity_tui.engine.solve.space.space import Block, best

Record = TypeVar("Record", RunLayout, RunData, Recompute)
WANTED, PER_SECOND = 2_000_000, "a second"
REPEATS = 5
DEVICES = 512
PLAN = {
    "model": {"name": "llama-3.1-70b"},
    "training": {"global_batch": 1024, "framework": "megatron", "tokens": 1e9},
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
# Of a search, whose own preparations do not grow with the space: the same with more sequence lengths.
LENGTHS = Axis("training.seq_len", tuple(range(1024, 60 * 1024 + 1, 1024)))
MANY = tuple(LENGTHS if axis.path == LENGTHS.path else axis for axis in AXES)
SERVED = {
    "task": "infer",
    "model": {"name": "llama-3.1-70b"},
    "inference": {"engine": "vllm"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 8},
}
SERVED_AXES = (
    Axis("inference.kv_cache", ("fp16", "fp8")),
    Axis("inference.prompt_tokens", tuple(range(256, 8192, 256))),
    Axis("inference.output_tokens", (64, 128, 256, 512)),
    Axis("inference.batch", tuple(range(1, 257))),
    Axis("parallelism.tp", powers_of_two(8)),
    Axis("parallelism.pp", powers_of_two(8)),
)
# Under a load the number of requests at work is what is looked for, with each combination.
LOADED = {**SERVED, "inference": {"engine": "vllm", "request_rate": 2.0, "output_tokens_stddev": 128.0}}
LOADED_AXES = tuple(axis for axis in SERVED_AXES if axis.path != "inference.batch")
WANTED_LOADED = 20_000
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TIME, MEMORY = "computation.estimated_train_time_seconds", "memory.utilization_percent"


def seconds_of(work: Callable[[], object]) -> float:
    """Return the least processor time of some work, s: what else the machine does only adds to it."""
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def searches() -> Iterator[tuple[str, Question]]:
    """Yield questions with their names."""
    trained, served = Plan.model_validate(PLAN), Plan.model_validate(SERVED)
    limits = (parse_limit("time<=24h"), parse_limit("memory<=95%"))
    yield "search, goal", Question(trained, MANY, goal=parse_goal("time"))
    yield "search, limits", Question(trained, MANY, goal=parse_goal("time"), limits=limits)
    yield "search, front", Question(trained, MANY, goal=parse_goal("time"), pareto=(TIME, MEMORY))
    waits = (parse_limit("ttft<=2s", "infer"), parse_limit("tpot<=50ms", "infer"))
    yield "search, serving", Question(served, SERVED_AXES, goal=parse_goal("usd", "infer"))
    yield "search, serving, limits", Question(served, SERVED_AXES, goal=parse_goal("usd", "infer"), limits=waits)
    loaded = Plan.model_validate(LOADED)
    yield "search, load", Question(loaded, LOADED_AXES, goal=parse_goal("usd", "infer"))
    yield "search, load, limits", Question(loaded, LOADED_AXES, goal=parse_goal("usd", "infer"), limits=waits)


def catalogue() -> Iterator[Figure]:
    """Yield how long all accelerators of the catalogue take, in all counts and layouts, and the first rows of them."""
    started, first = time.process_time(), list[float]()

    def told(answer: Answer) -> None:
        if answer.top and not first:
            first.append(time.process_time() - started)

    plan = Plan.model_validate({**PLAN, "hardware": {"name": "h100-sxm-80gb", "devices": 8}})
    found = search(Question(plan, hardware=("any",), devices=COUNTS, goal=parse_goal("usd")), callback=told)
    whole = time.process_time() - started
    yield Figure(f"any hardware, {len(COUNTS)} counts: {found.evaluated:,} layouts", whole, "s")
    yield from (Figure("any hardware: first rows", seconds, "s") for seconds in first)


def time_of_what_fits(block: Block) -> tuple[Number, ...]:
    """Return what modes choose by, in short: whether it fits, then the time of a step."""
    fits, seconds = block.fits, block.value("computation.step_seconds")
    assert fits is not None and seconds is not None
    return np.where(fits, 0.0, np.inf), seconds


def flat(space: TrainingSpace) -> None:
    """Evaluate every combination of the grid as flat lists, by the same equations."""
    for block in space.grid.blocks(2**16):
        part = space.grid.part(block)
        run = space.run(part)

        def whole(number: object, shape: tuple[int, ...] = part.shape) -> Number:
            return np.broadcast_to(np.asarray(number), shape).ravel()

        def flattened(record: Record, *names: str) -> Record:
            return replace(record, **{name: whole(getattr(record, name)) for name in names or record.__slots__})

        run = replace(
            run,
            layout=flattened(run.layout),
            data=flattened(run.data, "seq_len", "micro_batch"),
            recompute=flattened(run.recompute),
        )
        work = transformer_work(run, space.resolved.plan)
        _ = memory_estimate(work, run.cluster).fits, step_time(work).seconds


def figures() -> Iterator[Figure]:
    """Yield rates of searches, of the bare grid, and of one plan at a time."""
    catalog, plan = load_catalog(), Plan.model_validate(PLAN)
    resolved = resolve_plan(plan, catalog)
    assert resolved.shape is not None
    for name, question in searches():
        size = search(question, catalog).evaluated
        wanted = WANTED_LOADED if "load" in name else WANTED
        yield Figure(name, size / seconds_of(partial(search, question, catalog)), PER_SECOND, wanted, is_least=True)
    space = training_space(plan, resolved, resolved.shape, catalog, AXES)
    searched = seconds_of(lambda: best((piece() for piece in space.lazy_blocks()), time_of_what_fits))
    yield Figure("grid of the modes, all combinations", space.grid.size / searched, PER_SECOND)
    yield Figure("grid of the modes, possible layouts", space.count / searched, PER_SECOND)
    yield Figure("flat lists in its place", space.grid.size / seconds_of(lambda: flat(space)), PER_SECOND)
    one = seconds_of(lambda: [estimate_resolved(resolved, catalog) for _ in range(20)]) / 20
    yield Figure("one plan at a time", 1.0 / one, PER_SECOND)
    yield from catalogue()
    yield Figure("most memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")


if __name__ == "__main__":
    show(figures())
