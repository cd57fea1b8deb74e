"""How much faster workers of a Ray cluster on this machine search: ratios to a search in one process, same run.

    uv run python -m benchmarks.ray_search [WORKERS ...]
    uv run python -m benchmarks.ray_search --simulate 1536 1e9

Starting Ray is told apart: a cluster that is there already is not started. Workers share this machine's cores, so that
more workers than cores cannot be faster. ``--simulate`` has one process do the work of all, times what a worker does of
it and what the machine that asks does, and tells how long so many workers would take for so many configurations.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.nodes import search_on_ray
from capacity_tui.engine.nodes.chunks import (
    Chunk,
    Cutting,
    Evaluator,
    outcomes_as_text,
    outcomes_from_text,
    search_environment,
)
from capacity_tui.engine.nodes.shared_search import Filled, Outcomes, SharedSearch, journal_of
from capacity_tui.engine.solve.search import Question, answerable, search
from tests.plans import TRAINING, plan_of

QUESTION = Question(
    plan_of(TRAINING, {"model.name": "llama-3.1-70b", "training.global_batch": 1024, "training.tokens": 1e9}),
    hardware=("nvidia",),
    devices=(64, 128, 192, 256, 384, 512, 768, 1024),
    pareto=("cost.usd", "computation.step_seconds"),
)


class TimedWorkers:
    """Workers that are this process: how long their chunks take is told apart from all else."""

    room = 64

    def __init__(self, question: Question) -> None:
        self._evaluator = Evaluator(answerable(question), load_catalog(), None, Cutting())
        self._given: list[tuple[Chunk, Filled]] = []
        self.seconds, self.chunks, self.characters = 0.0, 0, 0

    def give(self, chunk: Chunk, filled: Filled) -> None:
        """Have a chunk evaluated."""
        self._given.append((chunk, filled))

    def finished(self) -> Iterator[tuple[Chunk, Outcomes]]:
        """Yield the chunks that were given, as text that is read again: that is the part of who asks."""
        given, self._given = self._given, []
        for chunk, filled in given:
            started = time.perf_counter()
            text = outcomes_as_text(self._evaluator.evaluated(chunk, filled))
            self.seconds += time.perf_counter() - started
            self.chunks, self.characters = self.chunks + 1, self.characters + len(text)
            yield chunk, outcomes_from_text(text)


def simulate(workers: int, configurations: float) -> None:
    """Tell what workers and the machine that asks do of a question, and how long a larger one would take."""
    catalog = load_catalog()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAPACITY_TUI_STATE"] = folder
        journal = journal_of(QUESTION, None, search_environment(QUESTION), {}, Cutting())
        timed, shared = TimedWorkers(QUESTION), SharedSearch(QUESTION, catalog, None, journal, Cutting())
        started = time.perf_counter()
        answer = shared.run(timed)
        asking = time.perf_counter() - started - timed.seconds
    each, chunk = timed.seconds / answer.evaluated, answer.evaluated / timed.chunks
    print(
        f"{answer.evaluated:,} configurations in {timed.chunks:,} chunks: {timed.seconds:.1f} s at workers, "
        f"{asking:.2f} s where it is asked ({1e3 * asking / timed.chunks:.2f} ms and "
        f"{timed.characters / timed.chunks / 1e3:.1f} kB a chunk)"
    )
    at_work, asked = configurations * each / workers, configurations / chunk * asking / timed.chunks
    print(
        f"{configurations:,.0f} on {workers:,} workers: {at_work:.1f} s at each, {asked:.1f} s where it is asked, "
        f"{configurations / chunk * timed.characters / timed.chunks / 1e6:,.0f} MB of answers"
    )
    print(f"workers that one machine keeps busy: {timed.seconds / asking:,.0f}")


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
    if sys.argv[1:2] == ["--simulate"]:
        simulate(int(sys.argv[2]), float(sys.argv[3]))
    else:
        main([int(word) for word in sys.argv[1:]] or [1, 2])
