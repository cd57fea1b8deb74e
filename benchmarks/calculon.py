"""GPT-3 175B on 4,096 A100: the executions that Calculon searches, beside our search, in one run on one core.

Calculon is on no index of packages; PATH is a checkout of https://github.com/calculon-ai/calculon (Apache 2.0):

    taskset -c 0 uv run --with pandas --with psutil python benchmarks/calculon.py PATH

Prints the executions of its space by its own enumeration, its rate on a sample of them, ours on the same decisions and
on all that we have beyond them, and the best of both. Which network each group of devices uses and what of its
communication is hidden are decisions there, eight times six of each layout; here hardware and software decide them.
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.solve.search import Question, parse_goal, search
from capacity_tui.engine.solve.space import Axis, powers_of_two
from capacity_tui.engine.solve.space.axes import divisors

DEVICES = BATCH = 4096
LAYERS, LARGEST_TP = 96, 32
# Seconds in which the other tool evaluates a sample, and the seed of the sample.
SAMPLED_SECONDS, SEED = 20.0, 175
PLAN = {
    "model": {"name": "gpt3-175b"},
    "training": {
        "seq_len": 2048, "global_batch": BATCH, "precision": "fp16", "framework": "megatron", "tokens": 3e11,
    },
    "hardware": {"name": "a100-sxm-80gb", "devices": DEVICES},
}  # fmt: skip
# The decisions that both have.
SHARED = {
    "training.checkpointing": ("none", "selective", "full"),
    "training.micro_batch": powers_of_two(BATCH),
    "parallelism.tp": powers_of_two(LARGEST_TP),
    "parallelism.pp": powers_of_two(LAYERS),
    "parallelism.interleave": divisors(LAYERS),
    "parallelism.sequence_parallel": (False, True),
    "parallelism.zero": (0, 1),
    "parallelism.offload": ("none", "optimizer", "activations"),
}
BEYOND = SHARED | {
    "training.checkpointing": ("none", "selective", "selective-ops", "every-2", "full"),
    "parallelism.cp": powers_of_two(8),
    "parallelism.zero": (0, 1, 2, 3),
    "parallelism.offload": ("none", "optimizer", "parameters", "activations"),
}
# Its words for what a layout recomputes, in ours.
RECOMPUTED = {"full": "full", "attn_only": "selective", "none": "none"}


def groups(llm: Any, app: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the groups of executions that the other tool searches one after the other, as its command does."""
    for tp in llm.get_all_tensor_parallelisms(DEVICES, app.hidden, app.attn_heads):
        for pp in llm.get_all_pipeline_parallelisms(DEVICES, tp, app.num_blocks):
            dp = llm.get_data_parallelism(DEVICES, tp, pp)
            for interleave in llm.get_valid_pipeline_interleavings(app.num_blocks, pp):
                for recomputed in RECOMPUTED:
                    for shared in (True, False) if dp > 1 else (False,):
                        for exchange in ("ar", "p2p_rs_ag", "rs_ag"):
                            yield tp, pp, dp, interleave, BATCH // dp * dp, recomputed, shared, exchange


def theirs(path: Path) -> dict[str, Any]:
    """Measure the other tool; return the best execution of its sample."""
    sys.path.insert(0, str(path))
    calculon = importlib.import_module("calculon")
    module = importlib.import_module("calculon.llm")
    llm, optimal = module.Llm, module.OptimalExecution
    app = llm.Application(calculon.io.read_json_file(f"{path}/models/gpt3-175B.json"))
    system = calculon.System(calculon.io.read_json_file(f"{path}/systems/a100_80g.json"))
    every = list(groups(llm, app))

    def searched(group: tuple[Any, ...], *, counts: bool) -> tuple[list[Any], int]:
        found = optimal.search(
            counts, 1, False, DEVICES, BATCH, "float16", app, system, *group, [True], False, True, True
        )
        return found[0], found[1]

    print(f"its executions: {sum(searched(group, counts=True)[1] for group in every):,}")
    random.Random(SEED).shuffle(every)
    started, count, best = time.process_time(), 0, []
    for group in every:
        found, executions = searched(group, counts=False)
        count, best = count + executions, sorted([*best, *found], key=lambda each: -each[0])[:1]
        if (taken := time.process_time() - started) > SAMPLED_SECONDS:
            break
    print(f"its rate: {count / taken:,.0f} a second, on a sample of {count:,}")
    return {"rate": count / taken, "samples": best[0][0], "execution": best[0][1]}


def ours(name: str, axes: dict[str, tuple[object, ...]], rate: float) -> None:
    """Measure our search over some axes, and print the best that it finds."""
    catalog = load_catalog()
    question = Question(Plan.model_validate(PLAN), tuple(Axis(*each) for each in axes.items()), goal=parse_goal("step"))
    started = time.process_time()
    found = search(question, catalog)
    taken = time.process_time() - started
    own = found.evaluated / taken
    print(f"{name}: {found.evaluated:,} in {taken:.2f} s, {own:,.0f} a second, {own / rate:,.0f} times its rate")
    best = found.top[0]
    print(f"  best: {best.figures['computation.step_seconds'].value:.1f} s a step, {dict(best.set)}")


def main() -> None:
    """Measure both, and print what each finds best."""
    its = theirs(Path(sys.argv[1]))
    ours("the same decisions here", SHARED, its["rate"])
    ours("with all decisions here", BEYOND, its["rate"])
    execution = its["execution"]
    change = {
        "parallelism.tp": execution["tensor_par"],
        "parallelism.pp": execution["pipeline_par"],
        "parallelism.interleave": execution["pipeline_interleaving"],
        "parallelism.sequence_parallel": execution["tensor_par_comm_type"] == "rs_ag",
        "parallelism.zero": int(execution["optimizer_sharding"]),
        "parallelism.offload": "optimizer" if execution["optimizer_offload"] else "none",
        "training.micro_batch": execution["microbatch_size"],
        "training.checkpointing": RECOMPUTED[execution["activation_recompute"]],
    }
    seconds = estimate_plan(edited(Plan.model_validate(PLAN), change).plan).estimate.computation.step_seconds.value
    print(f"its best of the sample: {BATCH / its['samples']:.1f} s a step there, {seconds:.1f} s here, {change}")


if __name__ == "__main__":
    main()
