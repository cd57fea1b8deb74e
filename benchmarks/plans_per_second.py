"""Full estimates a second of the search: memory and step time of random layouts, on one core.

Prints plans a second for several batch sizes and the ratio to estimating one plan at a time.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate.resolve import resolve_plan
from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.plan.plan import Plan

DEVICES = 512
PLAN = {
    "model": {"name": "llama-3.1-70b"},
    "training": {"seq_len": 8192, "global_batch": 1024, "framework": "megatron"},
    "parallelism": {"tp": 8, "pp": 4},
    "hardware": {"name": "h100-sxm-80gb", "devices": DEVICES},
}


def layouts(run: TransformerRun, count: int) -> TransformerRun:
    """Return the run with ``count`` random layouts as arrays."""
    random = np.random.default_rng(0)
    tp, pp = random.choice([1.0, 2.0, 4.0, 8.0], count), random.choice([1.0, 2.0, 4.0, 8.0], count)
    dp = DEVICES / (tp * pp)
    return replace(
        run,
        micro_batch=random.choice([1.0, 2.0, 4.0, 8.0], count),
        tp=tp,
        pp=pp,
        dp=dp,
        shard=dp,
        etp=tp,
        zero=random.choice([0.0, 1.0, 3.0], count),
        sequence_parallel=(tp > 1) * 1.0,
    )


def evaluate(run: TransformerRun) -> None:
    """Compute memory and step time of everything in the run."""
    step_time(training_work(run, None))


def main() -> None:
    catalog = load_catalog()
    resolved = resolve_plan(Plan.model_validate(PLAN), catalog)
    assert resolved.shape is not None
    run = transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
    rates = {}
    for count in (1, 1024, 4096, 16384, 131072):
        varied = layouts(run, count)
        seconds = []
        for _ in range(7):
            start = time.process_time()
            evaluate(varied)
            seconds.append(time.process_time() - start)
        rates[count] = count / sorted(seconds)[len(seconds) // 2]
        ratio = rates[count] / rates[1]
        print(f"{count:>8,} layouts in one call: {rates[count]:>12,.0f} plans/s, {ratio:>8,.0f} x one by one")


if __name__ == "__main__":
    main()
