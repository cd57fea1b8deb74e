"""Which one-line faults in the formulas the tests notice.

Every mutation is applied to a copy of the program, and the tests of the formulas run on it: first those that know what
is right, then the predictions kept as text, which know only what was. Prints what killed each mutation, and the score.

Usage: uv run python benchmarks/mutations.py [name ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("engine", "tui", "profiles", "themes")
PHYSICS = (
    "tests/estimate/test_terms_by_hand.py",
    "tests/estimate/test_formulas.py",
    "tests/estimate/test_training_physics.py",
    "tests/estimate/test_serving.py",
)
KEPT = ("tests/golden",)


@dataclass(frozen=True)
class Mutation:
    """One fault: some text of a file that occurs there once, and what stands in its place."""

    name: str
    file: str
    old: str
    new: str


TRAINING, SERVING = "engine/estimate/transformer", "engine/estimate/serving"
MUTATIONS = (
    Mutation("attention backward costs as much as forward", "engine/estimate/timing/attention.py",
             "FUSED_BACKWARD = counted(", "FUSED_BACKWARD = 0.4 * counted("),
    Mutation("no weight gradients", f"{TRAINING}/operators.py", "    if has_weight_gradient:\n",
             "    if not has_weight_gradient:\n"),
    Mutation("half the all-reduces of a layer", f"{TRAINING}/communication.py",
             "blocks * (2.0 +",
             "blocks * (1.0 +"),
    Mutation("sharded parameters gathered once", f"{TRAINING}/communication.py",
             "full * gather + (full + each) * reduce\n\n", "(full + each) * reduce\n\n"),
    Mutation("a fourth of the all-to-alls", f"{TRAINING}/communication.py", "run.moe_share * (EXPERT_EXCHANGES +",
             "run.moe_share * (1.0 +"),
    Mutation("context parallelism free", f"{TRAINING}/context.py", "layers * count, hidden,",
             "0.0 * layers * count, hidden,"),
    Mutation("optimizer ten times as fast", "engine/estimate/timing/host.py", "* reach.optimizer_stream", "* 6.0"),
    Mutation("half the activations of experts", f"{TRAINING}/activations.py", "routed = active *",
             "routed = 0.5 * active *"),
    Mutation("half the cache read", f"{SERVING}/operators.py", "read = sequences *",
             "read = 0.5 * sequences *"),
    Mutation("busy devices nearly idle", "engine/estimate/money.py", "busy = arithmetic * computing",
             "busy = 0.2 * arithmetic * computing"),
    Mutation("attention not causal", f"{TRAINING}/attention.py", "shape, run.seq_len, run.causal)",
             "shape, run.seq_len, False)"),
    Mutation("nothing recomputed", f"{TRAINING}/operators.py", "    if any_true(recompute > 0):\n",
             "    if any_true(recompute > 1):\n"),
    Mutation("activations between stages one way", f"{TRAINING}/communication.py", "2.0 * run.interleave",
             "1.0 * run.interleave"),
    Mutation("a bubble one micro-batch short", "engine/estimate/timing/schedule.py",
             "return (stages - 1.0) / interleave",
             "return (stages - 2.0) / interleave"),
    Mutation("an all-reduce of one pass", "engine/estimate/timing/collectives.py", "return 2.0 * one_pass",
             "return 1.0 * one_pass"),
    Mutation("network ports shared by no one", "engine/estimate/timing/collectives.py", "np.inf), within * network)",
             "np.inf), network)"),
    Mutation("experts sharded like dense weights", f"{TRAINING}/memory_terms.py", "experts / expert_shard)\n\n",
             "experts / shard)\n\n"),
    Mutation("no master copy of the weights", f"{TRAINING}/memory.py", "((each + run.master_bytes) * trained",
             "((each) * trained"),
    Mutation("optimizer states sharded like gradients", f"{TRAINING}/memory.py",
             "sharded_bytes(inner, held.dense, held.experts, shards[0], expert_shards[0]",
             "sharded_bytes(inner, held.dense, held.experts, shards[1], expert_shards[1]"),
    Mutation("every stage holds one micro-batch", f"{TRAINING}/activations.py",
             "np.minimum(micro_batches, stages - stage)\n", "np.minimum(micro_batches, 1.0)\n"),
    Mutation("logits in two bytes", f"{TRAINING}/loss.py", "np.maximum(held * each +",
             "np.maximum(held * 2.0 +"),
    Mutation("a cache that stages do not share", f"{SERVING}/memory.py", "element_bytes / shards / stages\n",
             "element_bytes / shards\n"),
    Mutation("caches of prompts alone", f"{SERVING}/memory.py", "rounded_up(run.held_length,",
             "rounded_up(run.prompt,"),
    Mutation("one all-reduce a layer in serving", f"{SERVING}/speed.py", "np.where(run.tp > 1, 2.0",
             "np.where(run.tp > 1, 1.0"),
    Mutation("tokens never come back from experts", f"{SERVING}/speed.py", "2.0 * run.counts.moe_layers",
             "1.0 * run.counts.moe_layers"),
    Mutation("all experts read for one token", f"{SERVING}/operators.py", "experts, 1.0)) ** tokens",
             "experts, 1.0)) ** (tokens + 99)"),
    Mutation("decode without its head", f"{SERVING}/operators.py", "step.logit_rows, run.head_weights / run.tp",
             "step.logit_rows, 0.0 * run.head_weights / run.tp"),
    Mutation("prompts at one FLOP a weight", f"{SERVING}/operators.py", "flops = 2.0 * product.rows",
             "flops = 1.0 * product.rows"),
    Mutation("an hour of 60 minutes of 100 seconds", "engine/estimate/money.py", "return seconds / HOUR_SECONDS",
             "return seconds / 6000.0"),
    Mutation("spot capacity never taken back", "engine/estimate/money.py", "(1.0 + surplus)", "(1.0)"),
    Mutation("energy of one device", "engine/estimate/money.py", "return devices * limit * (", "return limit * ("),
    Mutation("price of a million tokens of one", "engine/estimate/money.py", "unit_seconds * MEGA",
             "unit_seconds * 1e3"),
    Mutation("nothing tight", "engine/estimate/result.py", "Verdict.TIGHT: np.greater(self",
             "Verdict.TIGHT: np.greater(0.0 * self"),
    Mutation("memory without what lies outside the allocator", "engine/estimate/assemble.py",
             "interval(allocated + added(outside.values()))", "interval(allocated)"),
)  # fmt: skip


def mutated(text: str, mutation: Mutation) -> str:
    """Return a file's text with a mutation.

    Raises:
        SystemExit: the old text is not there exactly once.
    """
    found = text.count(mutation.old)
    if found != 1:
        raise SystemExit(
            f"{mutation.name}: its text occurs {found} times in {mutation.file}, not once: {mutation.old!r}"
        )
    return text.replace(mutation.old, mutation.new)


def copied(folder: Path) -> None:
    """Copy the program and its tests, so that they import each other from there."""
    ignored = shutil.ignore_patterns("__pycache__", "recordings")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "capacity_tui" / name, ignore=ignored)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)


def passes(folder: Path, tests: tuple[str, ...]) -> bool:
    """Whether tests pass in a copy."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "CI": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"the tests did not run:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def killer(folder: Path, mutation: Mutation) -> str:
    """Return what notices a mutation: ``physics``, ``predictions`` or nothing."""
    path = folder / "capacity_tui" / mutation.file
    text = path.read_text("utf-8")
    path.write_text(mutated(text, mutation), "utf-8")
    try:
        noticed = {"physics": PHYSICS, "predictions": KEPT}
        return next((name for name, tests in noticed.items() if not passes(folder, tests)), "")
    finally:
        path.write_text(text, "utf-8")


def main(names: list[str]) -> None:
    """Apply the mutations whose names contain one of the words, all by default."""
    chosen = [each for each in MUTATIONS if not names or any(name in each.name for name in names)]
    for each in MUTATIONS:
        mutated((ROOT / each.file).read_text("utf-8"), each)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        if not passes(folder, (*PHYSICS, *KEPT)):
            raise SystemExit("the tests fail without any mutation")
        found = []
        for each in chosen:
            found.append(killer(folder, each))
            print(f"{'killed by ' + found[-1] if found[-1] else 'SURVIVED':22} {each.name}", flush=True)
    print(f"killed {sum(map(bool, found))} of {len(found)}, {found.count('physics')} by tests of the physics")


if __name__ == "__main__":
    main(sys.argv[1:])
