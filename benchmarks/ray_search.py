"""How much faster workers of a Ray cluster on this machine search: ratios to a search in one process, same run.

    uv run python -m benchmarks.ray_search [WORKERS ...]

Starting Ray is told apart: a cluster that is there already is not started. Workers share this machine's cores, so that
more workers than cores cannot be faster.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace

from capacity_tui.engine.nodes import search_on_ray
from capacity_tui.engine.solve.search import Question, search
from tests.plans import TRAINING, plan_of

QUESTION = Question(
    plan_of(TRAINING, {"model.name": "llama-3.1-70b", "training.global_batch": 1024, "training.tokens": 1e9}),
    hardware=("nvidia",),
    devices=(64, 128, 192, 256, 384, 512, 768, 1024),
    pareto=("cost.usd", "computation.step_seconds"),
)


def main(workers: list[int]) -> None:
    here = search(QUESTION)
    print(f"one process: {here.evaluated:,} configurations in {here.seconds:.1f} s; {os.cpu_count()} cores")
    for count in workers:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CAPACITY_TUI_STATE"] = folder
            started = time.monotonic()
            answer = search_on_ray(f"local:{count}", QUESTION).answer
            whole = time.monotonic() - started
        same = "the same answer" if replace(answer, seconds=0.0) == replace(here, seconds=0.0) else "ANOTHER ANSWER"
        print(
            f"{count} workers: {here.seconds / answer.seconds:.2f} times as fast, {same}; "
            f"{whole - answer.seconds:.1f} s more to start and end Ray"
        )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, 2])
