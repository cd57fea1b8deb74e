"""To the limit: the largest value of one field with which a plan still fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.estimate import Estimate, ResolvedPlan, estimate_resolved, memory_estimate, resolve_plan
from capacity_tui.engine.estimate.serving import (
    SEQUENCES,
    ServingRun,
    claim,
    reserved_bytes,
    serving_memory,
    serving_run,
    serving_work,
)
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import Flags, Number
from capacity_tui.engine.plan import Plan, plan_fields, served_sizes, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import LARGEST_COUNT
from capacity_tui.engine.solve.space.axes import Axis, Floats, Grid
from capacity_tui.engine.solve.space.configurations import TrainingSpace
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

Holds: TypeAlias = Callable[[Floats], Flags]

# Kinds of fields that are whole numbers, and those of them that arrays of values can stand for.
WHOLE = ("integer", "power-of-two")

SERVED = served_sizes()
TRAINED = (Key.TRAINING_MICRO_BATCH, Key.TRAINING_SEQ_LEN)
LARGEST_BATCH, LONGEST_CONTEXT = Figure.INFERENCE_LARGEST_BATCH, Figure.INFERENCE_LONGEST_CONTEXT
POINTS = 32  # Values that one call judges: a range of a million takes four calls


@dataclass(frozen=True, slots=True)
class FieldLimit:
    """How far one field can go."""

    path: str
    value: int | None  # the largest value that fits; None where not even the smallest does
    beyond: int | None  # the next value, which does not fit; None where the field's own range ends first
    verdict: Verdict  # whether the plan fits at ``value``, or is tight there


def largest_that_fits(holds: Holds, low: int, high: int) -> int | None:
    """Return the largest whole number between two that holds, where all below it do; None if the lowest does not.

    Each call asks for many numbers at once, spaced by a constant factor, and goes on between the last that holds and
    the first that does not.
    """
    if not holds(np.array([float(low)]))[0]:
        return None
    while low < high:
        spaced = np.ceil(np.geomspace(low + 1, high, POINTS))
        spaced = spaced[np.diff(spaced, prepend=low) > 0]
        held = np.broadcast_to(holds(spaced), spaced.shape)
        if held.all():
            return high
        first = int(np.argmin(held))
        low, high = int(spaced[first - 1]) if first else low, int(spaced[first]) - 1
    return low


def serving_needs(run: ServingRun) -> tuple[Floats, Flags]:
    """Return the bytes of the fullest device, and whether the engine's share of memory holds the batch."""
    if not run.traffic.comes_singly:
        parts = serving_memory(run)
        room = claim(run, parts).get(SEQUENCES, np.inf)
        return np.asarray(reserved_bytes(run, parts), dtype=np.float64), np.asarray(room >= run.batch)
    work = serving_work(run)
    memory = memory_estimate(work, run.cluster)
    sequences = work.details.get(SEQUENCES, np.inf)
    return np.asarray(memory.reserved_bytes.value, dtype=np.float64), np.asarray(sequences >= run.batch)


def to_the_limit(plan: Plan, path: str, machine: Machine | None = None, catalog: Catalog | None = None) -> FieldLimit:
    """Return the largest value of an integer field with which a plan fits, everything else staying as it is.

    It is looked for from the plan's own value on where that fits, else from the field's smallest.

    Args:
        path: field that is a whole number, such as ``inference.batch`` or ``training.seq_len``.

    Raises:
        PlanError: the field is no whole number, or nothing is known that limits it.
    """
    facts = catalog or load_catalog()
    resolved = resolve_plan(plan, facts, machine)
    field = next((field for field in plan_fields(resolved.plan, resolved.family.kind) if field.path == path), None)
    if field is None or field.knob.kind not in WHOLE or field.knob.maximum is None:
        raise PlanError("only whole numbers go to a limit", place=Place(field=path))
    if resolved.cluster.device.memory_bytes is None:
        raise PlanError("the memory of this hardware is not known", hint="give hardware.spec.memory_mib")
    low, high = int(field.knob.minimum or 1), int(field.knob.maximum)

    def estimated(value: float) -> Estimate | None:
        same = None if path.startswith(("model.", "hardware.")) else resolved
        try:
            changed = resolve_plan(with_values(plan, {path: int(value)}), facts, machine, same)
            return estimate_resolved(changed, facts)
        except CapacityError:
            return None

    def one_by_one(values: Floats) -> Flags:
        estimates = (estimated(value) for value in values)
        return np.array([estimate is not None and bool(estimate.fits) for estimate in estimates], dtype=np.bool_)

    holds = _judge(plan, resolved, path, facts) or one_by_one
    if isinstance(field.value, int) and holds(np.array([float(field.value)]))[0]:
        low = field.value
    value = largest_that_fits(holds, low, high)
    if value is None:
        return FieldLimit(path, None, low, Verdict.DOES_NOT_FIT)
    at_limit = estimated(value)
    verdict = Verdict.DOES_NOT_FIT if at_limit is None else at_limit.verdict
    return FieldLimit(path, value, value + 1 if value < high else None, verdict)


def serving_room(resolved: ResolvedPlan, catalog: Catalog) -> Mapping[str, Number]:
    """Return the largest batch and the longest context that fit, by result key; nothing where nothing limits them.

    Each is looked for with everything else as it is; a context is a prompt and its answer, as long as the model reads.
    Under a load the cache decides how many requests run.
    """
    plan, shape = resolved.plan, resolved.shape
    is_known = shape is not None and resolved.cluster.device.memory_bytes is not None
    loaded = plan.inference.is_load
    if not plan.is_inference or shape is None or not is_known or loaded:
        return {}

    def largest(path: str, most: float) -> float:
        holds = _judge(plan, resolved, path, catalog)
        return 0.0 if holds is None else float(largest_that_fits(holds, 1, int(most)) or 0)

    output = float(plan.inference.output_tokens) if shape.is_decoder else 0.0
    longest = max(float(shape.max_context) or LARGEST_COUNT, output + 1.0)
    prompt = largest(Key.INFERENCE_PROMPT_TOKENS, longest - output)
    return {
        LARGEST_BATCH: largest(Key.INFERENCE_BATCH, LARGEST_COUNT),
        LONGEST_CONTEXT: prompt + output if prompt else 0.0,
    }


def _judge(plan: Plan, resolved: ResolvedPlan, path: str, catalog: Catalog) -> Holds | None:
    """Return what judges many values of a field in one call; None where each needs an estimate of its own."""
    shape, cluster = resolved.shape, resolved.cluster
    capacity = np.max(np.asarray(cluster.device.memory_bytes))
    if shape is None:
        return None
    if resolved.plan.is_inference and path in SERVED:
        served = serving_run(resolved.plan, shape, cluster, catalog)

        def holds_served(values: Floats) -> Flags:
            needed, held = serving_needs(_with_array(served, path, values))
            return np.asarray(held & (needed <= capacity), dtype=np.bool_)

        return holds_served
    if not resolved.plan.is_inference and path in TRAINED:

        def holds_trained(values: Floats) -> Flags:
            grid = Grid((Axis(path, tuple(values.tolist())),))
            fits = TrainingSpace(plan, resolved, shape, catalog, grid, rules=()).block(grid).fits
            return np.ones(values.shape, dtype=np.bool_) if fits is None else fits

        return holds_trained
    return None


def _with_array(run: ServingRun, path: str, values: Floats) -> ServingRun:
    if path == Key.INFERENCE_BATCH:
        return replace(run, batch=values)
    return replace(run, prompt=values) if path == Key.INFERENCE_PROMPT_TOKENS else replace(run, output=values)
