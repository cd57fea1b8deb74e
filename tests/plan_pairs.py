"""Pairs of plans of which one has more of one thing, and what must not get better by that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, estimate_plan, figures_of, resolve_plan
from capacity_tui.engine.estimate.serving import serving_run
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.edit import with_values

Changed = Callable[[Plan], dict[str, object]]

# A figure that gets better by less than this share is taken for equal: tiles, buckets and rounds of requests are whole.
TOLERANCE = 0.03

# What every stage of ZeRO spreads. The whole memory is no law: what a stage spreads is gathered into buffers that are
# counted in elements, not in shares of the model (DeepSpeed's allgather_bucket_size, stage3_prefetch_bucket_size and
# stage3_max_live_parameters), which can be more than the stage saves where tensor and pipeline parallel left a device
# little, or where adapters train little.
SPREAD = (Figure.MEMORY_WEIGHTS, Figure.MEMORY_GRADIENTS, Figure.MEMORY_OPTIMIZER)
STEP, MEMORY = Figure.STEP_SECONDS, Figure.MEMORY_RESERVED_BYTES
TTFT, REQUEST = Figure.TIME_TO_FIRST_TOKEN_SECONDS, Figure.REQUEST_SECONDS


def _batch(plan: Plan) -> dict[str, object]:
    training = plan.training
    return {
        Key.TRAINING_MICRO_BATCH: 2 * int(training.micro_batch),
        Key.TRAINING_GLOBAL_BATCH: 2 * int(training.global_batch or 1),
    }


def _sequence(plan: Plan) -> dict[str, object]:
    return {Key.TRAINING_SEQ_LEN: 2 * int(plan.training.seq_len)}


def _replicas(plan: Plan) -> dict[str, object]:
    """Twice the replicas and the work, where there are several: the second brings the buffers of their exchanges."""
    if int(plan.parallelism.dp or 1) == 1:
        return {}
    return {
        Key.HARDWARE_DEVICES: 2 * int(plan.hardware.devices or 1),
        Key.PARALLELISM_DP: 2 * int(plan.parallelism.dp or 1),
        Key.TRAINING_GLOBAL_BATCH: 2 * int(plan.training.global_batch or 1),
    }


def _sharding(plan: Plan) -> dict[str, object]:
    return {Key.PARALLELISM_ZERO: int(plan.parallelism.zero or 0) + 1}


def _served_batch(plan: Plan) -> dict[str, object]:
    return {Key.INFERENCE_BATCH: 2 * int(plan.inference.batch or 1)}


def _is_closed(plan: Plan) -> bool:
    return plan.inference.concurrency is not None or plan.inference.users is not None


def _prompt(plan: Plan) -> dict[str, object]:
    """Twice the prompt, where each is read as soon as it can be.

    It is no law for a batch that goes through stages: a full pass of longer prompts has fewer of them, each of which
    has a tile to fill and a state to keep, and passes follow each other a stage apart.
    """
    in_stages = int(plan.parallelism.pp or 1) > 1 and int(plan.inference.batch or 1) > 1
    if _is_closed(plan) or in_stages:
        return {}
    return {Key.INFERENCE_PROMPT_TOKENS: 2 * int(plan.inference.prompt_tokens)}


def _prompt_of_users(plan: Plan) -> dict[str, object]:
    """Twice the prompt, where each follows an answer.

    The whole request is no shorter. Its first token may come sooner: fewer answers end while one is at the host, since
    passes take longer, and so fewer prompts are before the next (``tests/estimate/scheduler.py`` shows it too).
    """
    return {Key.INFERENCE_PROMPT_TOKENS: 2 * int(plan.inference.prompt_tokens)} if _is_closed(plan) else {}


def _reads_first(plan: Plan, catalog: Catalog) -> bool:
    """Return whether answers stand still while prompts are read.

    The first token is no law there under a load: what comes meets answers less often the more there is to read, and a
    pass of many answers may take longer than one that reads.
    """
    resolved = resolve_plan(plan, catalog)
    assert resolved.shape is not None
    runtime = serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog).runtime
    return plan.inference.is_load and not runtime.mixes_prefill


# What has more of something, whether it trains, the figures that may not fall by it, and those that may not rise.
PAIRS: tuple[tuple[str, bool, Changed, tuple[str, ...], tuple[str, ...]], ...] = (
    ("twice the batch", True, _batch, (STEP, MEMORY), ()),
    ("twice the sequence", True, _sequence, (STEP, MEMORY), ()),
    ("twice the replicas", True, _replicas, (STEP,), (MEMORY,)),
    ("the next stage of ZeRO", True, _sharding, (), SPREAD),
    ("twice the served batch", False, _served_batch, (STEP, MEMORY), ()),
    ("twice the prompt", False, _prompt, (TTFT, REQUEST), ()),
    ("twice the prompt of users", False, _prompt_of_users, (REQUEST,), ()),
)


def broken_pairs(plan: Plan, estimate: Estimate, catalog: Catalog) -> Iterator[str]:
    """Yield what gets better though a settled plan is asked for more, or worse though more shares the work.

    Args:
        plan: with nothing open.
        estimate: of it.
    """
    if estimate.model is None or (plan.task != "infer" and not isinstance(plan.training.micro_batch, int)):
        return
    before = figures_of(estimate)
    for name, trains, change, falls, rises in PAIRS:
        if trains != (plan.task != "infer") or not (changed := change(plan)):
            continue
        try:
            after = figures_of(estimate_plan(with_values(plan, changed), None, catalog).estimate)
        except (CapacityError, ValueError):
            continue
        for key in (*falls, *rises):
            if key not in before or key not in after or not float(before[key].value):
                continue
            ratio = float(after[key].value) / float(before[key].value)
            if key == TTFT and ratio < 1.0 - TOLERANCE and _reads_first(plan, catalog):
                continue
            if (key in falls and ratio < 1.0 - TOLERANCE) or (key in rises and ratio > 1.0 + TOLERANCE):
                yield f"{name}: {key} times {ratio:.3g}"
