"""Published runs made ready for repeated estimates with changing constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, ResolvedPlan, estimate_resolved, resolve_plan
from capacity_tui.engine.estimate.serving.resolve import engine_row, kernel_id, published_in_blocks, vendor_of
from capacity_tui.engine.estimate.timing.roofline import attention_kernel
from capacity_tui.engine.estimate.transformer.resolve import framework_row
from capacity_tui.engine.keys import SERVING, Key
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.runs.accuracy import Kind
from capacity_tui.engine.runs.accuracy.predictions import answered, measured_figure
from capacity_tui.engine.runs.accuracy.published import Measurement, field
from capacity_tui.engine.runs.accuracy.scoring import scored_measurements
from capacity_tui.engine.uncertainty import FigureName, Interval
from tools.calibrate.constants import Constant, software_families


@dataclass(frozen=True)
class Run:
    """A measured run and the catalogue rows its estimate reads."""

    measurement: Measurement  # what was measured
    rows: Mapping[str, str]  # row by table; of coefficients, which all training reads, none is named
    resolved: ResolvedPlan  # its plan with every default filled in

    takes_arrays = True

    @property
    def measured(self) -> float:
        """What was measured, in its unit."""
        return self.measurement.value

    @property
    def publisher(self) -> str:
        """Who measured it."""
        return self.measurement.source_key

    @property
    def software(self) -> str:
        """Family of the software that ran it: rows that share kernels or code are one."""
        row = self.rows.get("frameworks") or self.rows["engines"]
        return software_families().get(row, row)

    @property
    def hardware(self) -> str:
        """Generation of the hardware, as a row of efficiency.yaml."""
        return self.rows["efficiency"]

    def reads(self, constant: Constant) -> bool:
        """Whether a constant may change the run's estimate."""
        if constant.table == "coefficients":
            return "frameworks" in self.rows
        if constant.table == "attention_kernels" and self.rows["efficiency"] != constant.field.partition(".")[2]:
            return False
        return self.rows.get(constant.table) in constant.rows

    def figure(self, catalog: Catalog) -> Number:
        """Return the measured figure as estimated with a catalogue, in the unit of the measurement."""
        return estimated_figure(self.measurement, catalog).value


def published_runs(kinds: Iterable[Kind], catalog: Catalog, every: int = 1, *, named: bool = True) -> tuple[Run, ...]:
    """Return the runs of some kinds that can be estimated, or one in so many of each kind.

    Args:
        kinds: kinds of figures.
        catalog: facts.
        every: one in so many runs of each kind.
        named: whether plans name their training software.
    """
    found = []
    for row in (row for kind in kinds for row in scored_measurements(kind)[::every]):
        measurement = row if named else without_framework(row)
        try:
            run = _run(measurement, catalog)
            measured_figure(estimate_resolved(run.resolved, catalog), measurement)
        except CapacityError:
            continue
        found.append(run)
    return tuple(found)


def _run(measurement: Measurement, catalog: Catalog) -> Run:
    resolved = resolve_plan(Plan.model_validate(measurement.plan), catalog)
    plan, cluster = resolved.plan, resolved.cluster
    rows = {"efficiency": cluster.device.efficiency.row}
    if plan.task == "infer" and resolved.shape is not None:
        engine = engine_row(plan.inference.engine, cluster.device, catalog)
        rows["engines"] = engine.id
        weights = catalog.quantizations.find(plan.inference.weights_format)
        in_blocks = published_in_blocks(plan.model, weights, catalog)
        rows["weight_kernels"] = kernel_id(engine, weights, vendor_of(cluster.device, catalog), in_blocks=in_blocks)
    else:
        software = framework_row(plan, catalog)
        rows["frameworks"] = software.id
        rows["attention_kernels"] = attention_kernel(plan.training.attention, cluster.device, software, catalog).id
    return Run(measurement, rows, resolved)


def estimated_figure(measurement: Measurement, catalog: Catalog) -> Interval:
    """Return the figure that was measured as a catalogue estimates it; an array where its constants are arrays.

    Raises:
        PlanError: the figure is none that an estimate gives, or the run cannot be.
    """
    return measured_figure(answered(measurement, catalog).estimate, measurement)


def figure_name(estimate: Estimate, quantity: str) -> FigureName:
    """Return which of an estimate's ranges a measured quantity has."""
    if quantity.endswith("_bytes"):
        return "memory"
    return "step" if estimate.ranges is None else estimate.ranges.figure(f"{SERVING}.{quantity}")


def sign_of(quantity: str) -> int:
    """Return 1 for a time or for bytes, -1 for a rate, which has the inverse range of its time."""
    return -1 if quantity.endswith("_per_second") else 1


NAME = Key.TRAINING_FRAMEWORK
TRAINED: tuple[Kind, ...] = ("train_time", "finetune_time", "train_memory", "finetune_memory")
"""Kinds of figures that training software decides."""


def without_framework(measurement: Measurement) -> Measurement:
    """Return a measurement whose plan does not name its training software; all else stays as it was written down."""
    if field(measurement.plan, NAME) is None:
        return measurement
    section, _, key = NAME.partition(".")
    named = cast("Mapping[str, object]", measurement.plan[section])
    unnamed = {name: value for name, value in named.items() if name != key}
    tags = {**measurement.tags, "framework": ""}
    return replace(measurement, plan={**measurement.plan, section: unnamed}, tags=tags)
