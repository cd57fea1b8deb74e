"""The knob that improves a figure most with one step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.estimate import estimate_settled
from capacity_tui.engine.estimate.figures import FIGURES, central, figure
from capacity_tui.engine.estimate.resolve import Settled, settle
from capacity_tui.engine.workload.fields import PlanField, plan_fields
from capacity_tui.engine.workload.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.hardware.machine import Machine

MORE_IS_BETTER = frozenset(
    key
    for key in FIGURES
    if key.endswith(("per_second", "per_second_per_device", "mfu", "tflops_per_device", "arithmetic_intensity"))
)
# What is wanted, which software and network there are, and sizes that follow from others: none of them is a lever.
WANTED = frozenset(
    {
        "training.tokens",
        "training.steps",
        "training.seq_len",
        "training.global_batch",
        "inference.prompt_tokens",
        "inference.output_tokens",
    }
)
GIVEN = frozenset({"training.framework", "inference.engine", "hardware.per_node", "hardware.ports_per_node"})
NOT_LEVERS = WANTED | GIVEN | {"parallelism.dp", "parallelism.etp"}
# A utilization is measured against what the precision could reach: another precision moves the measure itself.
MEASURES = frozenset({"computation.mfu", "bottleneck.arithmetic_intensity", "bottleneck.ridge_point"})
# Host memory is slower than a device's, and another optimizer learns something else: only want of memory asks for them.
MEMORY_ALONE = frozenset(
    {"parallelism.offload", "inference.gpu_layers", "training.optimizer", "training.master_weights"}
)
# Sizes that follow from the number of devices and the layout are settled again.
FOLLOWING = {"dp": None, "shard": None, "etp": None}
# A smaller change is no lever.
LEAST_CHANGE = 0.005


@dataclass(frozen=True, slots=True)
class Lever:
    """The knob that would improve a number most with one step.

    Attributes:
        field: plan path.
        label: its name.
        before: value now.
        after: value one step away.
        change: relative change of the number, -0.5 for half.
    """

    field: str
    label: str
    before: str
    after: str
    change: float


def strongest_lever(
    settled: Settled, key: str, value: float, catalog: Catalog, machine: Machine | None = None
) -> Lever | None:
    """Estimate again with each knob one step away, and return the one that improves a figure most.

    Args:
        settled: the plan with nothing open.
        key: result key of the figure.
        value: its value.
        catalog: facts.
        machine: the detected machine, for plans that run on it.
    """
    # A model's size is what it is, and what a device offers is no setting.
    if value == 0 or key.startswith("model.") or key in {"memory.capacity_bytes", "cost.usd_per_hour"}:
        return None
    strongest: Lever | None = None
    better = 1.0 if key in MORE_IS_BETTER else -1.0
    for field, after in neighbours(settled):
        if not _concerns(field.path, key):
            continue
        moved = _figure_with(settled, field.path, after, key, catalog, machine)
        if moved is None:
            continue
        change = moved / value - 1.0
        if change * better > (strongest.change * better if strongest else LEAST_CHANGE):
            strongest = Lever(field.path, field.knob.label, str(field.value), str(after), change)
    return strongest


def _concerns(path: str, key: str) -> bool:
    """Whether a knob may be the lever of a figure."""
    if path in MEMORY_ALONE:
        return key.startswith("memory.")
    return path != "training.precision" or key not in MEASURES


def with_neighbour(plan: Plan, path: str, value: object) -> Plan:
    """Return a plan with one knob changed, and with the sizes open that follow from it."""
    section, _, name = path.partition(".")
    update: dict[str, object] = {}
    if section == "model":
        name = name.removeprefix("spec.")
        update["model"] = plan.model.model_copy(update={"spec": {**plan.model.spec, name: value}})
    else:
        update[section] = getattr(plan, section).model_copy(update={name: value})
    if section in {"parallelism", "hardware"}:
        update["parallelism"] = plan.parallelism.model_copy(
            update={**FOLLOWING, **({name: value} if section == "parallelism" else {})}
        )
    return plan.model_copy(update=update)


def _figure_with(
    settled: Settled, path: str, value: object, key: str, catalog: Catalog, machine: Machine | None
) -> float | None:
    """Return a figure with one knob changed; None where the plan makes no sense then, or has no such figure."""
    same_facts = path.startswith(("training.", "inference.", "parallelism."))
    try:
        changed = settle(with_neighbour(settled.plan, path, value), catalog, machine, settled if same_facts else None)
        moved = central(figure(estimate_settled(changed, catalog), key)[2])
    except CapacityError:
        return None
    number = None if moved is None else float(np.mean(moved))
    return number if number is not None and np.isfinite(number) else None


def neighbours(settled: Settled) -> Iterator[tuple[PlanField, object]]:
    """Yield every knob that can be stepped, with each value one step away."""
    for field in plan_fields(settled.plan, settled.family.kind):
        if _is_lever(field):
            for value in _steps(field):
                # A type the device has no units for runs as another one, which is tried itself.
                if field.path != "training.precision" or value in settled.cluster.device.peaks:
                    yield field, value


def _is_lever(field: PlanField) -> bool:
    """Whether a field is a choice of how to run: not what to run, nor its price."""
    if field.path in NOT_LEVERS or field.value is None or isinstance(field.value, bool):
        return False
    if field.path.startswith("model."):
        return field.path.startswith("model.spec.") and field.knob.automatic
    return field.path.count(".") == 1 and not field.path.startswith("pricing.")


def _steps(field: PlanField) -> Iterator[object]:
    knob, value = field.knob, field.value
    if knob.kind == "power-of-two" and isinstance(value, int):
        for neighbour in (value // 2, value * 2):
            if max(1.0, knob.minimum or 1.0) <= neighbour <= (knob.maximum or np.inf):
                yield neighbour
    elif knob.kind == "choice":
        for choice in knob.choices:
            if choice != str(value):
                yield int(choice) if choice.isdigit() else choice
