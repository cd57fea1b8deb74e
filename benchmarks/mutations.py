"""Which one-line faults the tests notice, room by room.

Every mutation is applied to a copy of the program, and the tests that should know what is right there run on it; then,
for formulas of estimates, the predictions kept as text, which know only what was. Prints what killed each mutation, and
the score of each room.

Usage: uv run python benchmarks/mutations.py [room or part of a name ...]
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
MONTHS = ("tests/fleet/test_month_figures.py",)
STORED = ("tests/storage/test_nodes_of_a_training.py", "tests/storage/test_storage_plan.py")
LADDER = ("tests/runs/test_recovery_policy.py",)
SEARCH = "tests/solve/test_search.py::"
PASSES = ("tests/estimate/test_attention_kernels.py", "tests/estimate/test_loads.py")


@dataclass(frozen=True)
class Mutation:
    """One fault."""

    name: str  # what is wrong
    file: str  # where
    old: str  # some text that occurs there once
    new: str  # what stands in its place
    tests: tuple[str, ...] = PHYSICS  # those that should know; they know of formulas where nothing else is said
    room: str = "estimate"  # part of the program

    @property
    def noticed_by(self) -> dict[str, tuple[str, ...]]:
        """Tests by what they are, in the order in which they run."""
        kept = {"predictions": KEPT} if self.room == "estimate" else {}
        return {"tests": self.tests, **kept}


TRAINING, SERVING = "engine/estimate/transformer", "engine/estimate/serving"
FORMULAS = (
    Mutation("attention backward costs as much as forward", "engine/estimate/timing/roofline.py",
             "FUSED_BACKWARD = counted(", "FUSED_BACKWARD = 0.4 * counted("),
    Mutation("no weight gradients", f"{TRAINING}/operators.py", "    if has_weight_gradient:\n",
             "    if not has_weight_gradient:\n"),
    Mutation("half the all-reduces of a layer", f"{TRAINING}/communication.py",
             "blocks * (2.0 +",
             "blocks * (1.0 +"),
    Mutation("sharded parameters gathered once", "profiles/formulas/estimate_transformer.yaml",
             "= full · gather + scattered · reduce", "= scattered · reduce"),
    Mutation("a fourth of the all-to-alls", f"{TRAINING}/communication.py",
             "run.shape.moe_share * (EXPERT_EXCHANGES +", "run.shape.moe_share * (1.0 +"),
    Mutation("context parallelism free", f"{TRAINING}/attention.py", "            layers * count,\n            hidden,",
             "            0.0 * layers * count,\n            hidden,"),
    Mutation("optimizer ten times as fast", "engine/estimate/timing/roofline.py", "* reach.optimizer_stream", "* 6.0"),
    Mutation("half the activations of experts", "profiles/formulas/estimate_transformer.yaml", "= (active · (",
             "= (0.5 · active · ("),
    Mutation("half the cache read", f"{SERVING}/operators.py", "read = sequences *",
             "read = 0.5 * sequences *"),
    Mutation("busy devices nearly idle", "engine/estimate/money.py", "busy = arithmetic * computing",
             "busy = 0.2 * arithmetic * computing"),
    Mutation("attention not causal", f"{TRAINING}/attention.py", "shape, data.seq_len, run.causal, run.target)",
             "shape, data.seq_len, False, run.target)"),
    Mutation("nothing recomputed", f"{TRAINING}/operators.py", "    if any_true(recompute > 0):\n",
             "    if any_true(recompute > 1):\n"),
    Mutation("activations between stages one way", f"{TRAINING}/communication.py", "2.0 * layout.interleave",
             "1.0 * layout.interleave"),
    Mutation("a bubble one micro-batch short", "engine/estimate/timing/schedule.py",
             "return (stages - 1.0) / interleave",
             "return (stages - 2.0) / interleave"),
    Mutation("an all-reduce of one pass", "profiles/formulas/estimate_timing.yaml", "= 2 · one_pass",
             "= one_pass"),
    Mutation("network ports shared by no one", "engine/estimate/timing/collectives.py", "np.inf), within * network)",
             "np.inf), network)"),
    Mutation("experts sharded like dense weights", "profiles/formulas/estimate_transformer.yaml",
             "experts / expert_shard)\n", "experts / shard)\n"),
    Mutation("no master copy of the weights", f"{TRAINING}/memory_phases.py",
             "inner = (optimizer.state_bytes + numerics.master_bytes)", "inner = (optimizer.state_bytes)"),
    Mutation("optimizer states sharded like gradients", f"{TRAINING}/memory_phases.py",
             "sharded_bytes(inner, inside, experts, shards[0], expert_shards[0]",
             "sharded_bytes(inner, inside, experts, shards[1], expert_shards[1]"),
    Mutation("every stage holds one micro-batch", f"{TRAINING}/activations.py",
             "np.minimum(micro_batches, stages - stage)\n", "np.minimum(micro_batches, 1.0)\n"),
    Mutation("logits in two bytes", "profiles/formulas/estimate_transformer.yaml", "max(elements · logit +",
             "max(elements · 2 +"),
    Mutation("a cache that stages do not share", "profiles/formulas/estimate_serving.yaml",
             "element_bytes / shards / stages", "element_bytes / shards"),
    Mutation("caches of prompts alone", f"{SERVING}/memory.py", "rounded_up(run.held_length,",
             "rounded_up(run.prompt,"),
    Mutation("one all-reduce a layer in serving", f"{SERVING}/speed.py", "np.where(layout.tp > 1, 2.0",
             "np.where(layout.tp > 1, 1.0"),
    Mutation("tokens never come back from experts", f"{SERVING}/speed.py", "2.0 * run.counts.moe_layers",
             "1.0 * run.counts.moe_layers"),
    Mutation("all experts read for one token", f"{SERVING}/operators.py", "experts, 1.0)) ** tokens",
             "experts, 1.0)) ** (tokens + 99)"),
    Mutation("decode without its head", f"{SERVING}/operators.py", "step.logit_rows, run.head_weights / run.layout.tp",
             "step.logit_rows, 0.0 * run.head_weights / run.layout.tp"),
    Mutation("prompts at one FLOP a weight", f"{SERVING}/operators.py", "flops = 2.0 * product.rows",
             "flops = 1.0 * product.rows"),
    Mutation("an hour of 60 minutes of 100 seconds", "profiles/formulas/estimate.yaml", "usd = seconds / 3600",
             "usd = seconds / 6000"),
    Mutation("spot capacity never taken back", "profiles/formulas/estimate.yaml", "(1 + surplus)", "1"),
    Mutation("energy of one device", "engine/estimate/money.py", "return devices * limit * (", "return limit * ("),
    Mutation("price of a million tokens of one", "engine/estimate/money.py", "unit_seconds * MEGA",
             "unit_seconds * 1e3"),
    Mutation("nothing tight", "engine/estimate/memory_estimate.py", "self._inside(self.reached.low, self.reached.high)",
             "self._inside(self.reached.value, self.reached.value)", ("tests/estimate/test_constraints.py",)),
    Mutation("memory without what lies outside the allocator", "engine/estimate/assemble.py",
             "allocated + added(outside.values()))", "allocated)"),
)  # fmt: skip
ROOMS = (
    Mutation("a ratio's low end from two low ends", "engine/fleet/migration/priced.py",
             "np.hypot(below, own_above)", "np.hypot(below, own_below)", MONTHS, "fleet"),
    Mutation("errors of one device count twice", "engine/fleet/migration/priced.py",
             "abs(below - own_below)", "abs(below + own_below)", MONTHS, "fleet"),
    Mutation("moving has paid in months, not hours", "profiles/formulas/fleet_migration.yaml",
             "once / saving · hours", "once / saving", MONTHS, "fleet"),
    Mutation("a job of many machines is the work of one", "engine/fleet/schedule_problem.py",
             "enumerate(task.seconds)) * task.machines for task", "enumerate(task.seconds)) for task",
             ("tests/fleet/test_schedules.py::test_a_job_of_two_machines_waits_for_both_and_others_fill_the_gap",),
             "fleet"),
    Mutation("every node writes what is not sharded", "engine/storage/checkpoints.py",
             "min(nodes, float(np.ceil(model / mean(cluster.per_node))))", "nodes", STORED, "storage"),
    Mutation("a cluster fails as rarely as a device", "engine/estimate/timing/reliability.py",
             "return HOUR_SECONDS / (devices / device_hours", "return HOUR_SECONDS / (1.0 / device_hours",
             ("tests/estimate/test_reliability.py",), "storage"),
    Mutation("a node holds what one device offloads", "engine/storage/checkpoints.py",
             "offloaded=devices * mean(", "offloaded=mean(", STORED, "storage"),
    Mutation("kinds without half a rank", "engine/storage/zipf.py", "return -(kinds + 0.5) * np", "return -kinds * np",
             ("tests/storage/test_zipf_law.py",), "storage"),
    Mutation("memory that ran out is what was estimated", "engine/runs/guard/recovery_policy.py",
             "return share * _figure(case.estimate, key) / estimated",
             "return share * float(np.max(np.asarray(capacity)))", LADDER, "guard"),
    Mutation("a batch that replicas do not share", "engine/runs/guard/recovery_policy.py",
             "int(training.micro_batch) * int(parallel.dp or 1)", "int(training.micro_batch)", LADDER, "guard"),
    Mutation("a doubled batch keeps its steps", "engine/runs/guard/recovery_policy.py",
             "max(1, value // 2)", "value", LADDER, "guard"),
    Mutation("a processor computes in what it has no units for", "engine/runs/guard/recovery_policy.py",
             "    while precision in runs_as:\n        precision = runs_as[precision]\n", "", LADDER, "guard"),
    Mutation("memory grows without its swing", "engine/runs/monitor/anomalies.py",
             "capacity - grows.level - grows.swing", "capacity - grows.level",
             ("tests/runs/test_foresight.py",), "guard"),
    Mutation("a command's exit code is what the disk says", "engine/runs/guard/attempt.py",
             " if self._reaped_exit_code is None else self._reaped_exit_code", "",
             ("tests/runs/test_guard_output.py",), "guard"),
    Mutation("a record of output that only grows", "engine/runs/guard/keeper.py",
             "self._size + len(data) > PART_BYTES", "self._size < 0", ("tests/runs/test_guard_output.py",), "guard"),
    Mutation("copies of files by their name alone", "engine/runs/guard/placeholders.py",
             "folder / _FOLDER / str(number) / Path(source).name", "folder / _FOLDER / Path(source).name",
             ("tests/runs/test_guard_placeholders.py",), "guard"),
    Mutation("limits hold by the estimate alone", "engine/solve/search/search.py",
             "with_range=True).kept_surely", "with_range=True).kept",
             (f"{SEARCH}test_limits_hold_at_the_far_end_of_the_range",), "search"),
    Mutation("a front keeps equals", "engine/solve/search/results.py", "second < before", "second <= before",
             (f"{SEARCH}test_a_front_is_the_same_however_its_points_come",), "search"),
    Mutation("waiting for a slot twice as long", f"{SERVING}/queueing.py",
             "(1.0 + spread**2) / 2.0 * full**power", "(1.0 + spread**2) * full**power", PASSES, "loads"),
    Mutation("what is cached of a prompt is attended to for nothing", f"{SERVING}/operators.py",
             "known = cached * forward_attention_flops(", "known = 2.0 * cached * forward_attention_flops(",
             PASSES, "loads"),
    Mutation("stored scores of a quarter", f"{SERVING}/operators.py",
             "SCORE_BYTES = FP32_BYTES", "SCORE_BYTES = FP32_BYTES / 4.0", PASSES, "loads"),
)  # fmt: skip
MUTATIONS = (*FORMULAS, *ROOMS)


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


def failures(folder: Path, tests: tuple[str, ...]) -> str:
    """Return what pytest prints where one of the tests fails in a copy; nothing where all pass."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "CI": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"the tests did not run:\n{done.stdout}{done.stderr}")
    return done.stdout if done.returncode else ""


def killer(folder: Path, mutation: Mutation) -> str:
    """Return what notices a mutation: ``tests``, ``predictions`` or nothing."""
    path = folder / "capacity_tui" / mutation.file
    text = path.read_text("utf-8")
    path.write_text(mutated(text, mutation), "utf-8")
    try:
        return next((name for name, tests in mutation.noticed_by.items() if failures(folder, tests)), "")
    finally:
        path.write_text(text, "utf-8")


def main(names: list[str]) -> None:
    """Apply the mutations of the named rooms, and those whose names contain one of the words; all by default."""
    chosen = [each for each in MUTATIONS if not names or each.room in names or any(name in each.name for name in names)]
    for each in MUTATIONS:
        mutated((ROOT / each.file).read_text("utf-8"), each)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        needed = dict.fromkeys(test for each in chosen for tests in each.noticed_by.values() for test in tests)
        if before := failures(folder, tuple(needed)):
            raise SystemExit(f"the tests fail without any mutation:\n{before}")
        found: dict[str, list[str]] = {}
        for each in chosen:
            by = killer(folder, each)
            found.setdefault(each.room, []).append(by)
            print(f"{each.room:9} {'killed by ' + by if by else 'SURVIVED':22} {each.name}", flush=True)
    for room, killers in found.items():
        print(f"{room}: killed {sum(map(bool, killers))} of {len(killers)}, {killers.count('tests')} by its tests")


if __name__ == "__main__":
    main(sys.argv[1:])
