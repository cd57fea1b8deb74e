"""Published runs made ready for repeated estimates with changing constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capacity_tui.engine.accuracy.constants import Constant
from capacity_tui.engine.accuracy.published import Kind, Measurement
from capacity_tui.engine.accuracy.report import scored_measurements
from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster.catalogue_devices import efficiency_of
from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.estimate.transformer.memory import training_memory
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.uncertainty.intervals import EXACT_PARTS


@dataclass(frozen=True)
class CalibrationRun:
    """A measured run with its plan settled.

    Attributes:
        measurement: what was measured.
        settled: its plan with every default filled in.
        generation: hardware generation as the catalogue names it.
        efficiency: row of efficiency.yaml that covers it.
        framework: row of frameworks.yaml.
    """

    measurement: Measurement
    resolved: ResolvedPlan
    generation: str
    efficiency: str
    framework: str

    def touched_by(self, constant: Constant) -> bool:
        """Whether a constant can change this run's estimate."""
        return (self.efficiency if constant.table == "efficiency" else self.framework) in constant.rows

    def cluster(self, catalog: Catalog) -> Cluster:
        """Return the hardware with what another catalogue says it reaches."""
        device = replace(self.resolved.cluster.device, efficiency=efficiency_of(self.generation, catalog))
        return replace(self.resolved.cluster, device=device)

    def run(self, catalog: Catalog) -> TransformerRun:
        """Return the run with another catalogue's constants."""
        shape = self.resolved.shape
        if shape is None:
            raise ValueError(f"{self.measurement.id} is no transformer")
        return transformer_run(self.resolved.plan, shape, self.cluster(catalog), catalog)


def training_cases(kind: Kind, catalog: Catalog) -> tuple[CalibrationRun, ...]:
    """Return the runs of a kind that can be estimated."""
    found = []
    for measurement in scored_measurements(kind):
        try:
            resolved = resolve_plan(Plan.model_validate(measurement.plan), catalog)
        except CapacityError:
            continue
        if resolved.shape is not None:
            found.append(_case(measurement, resolved, catalog))
    return tuple(found)


def _case(measurement: Measurement, resolved: ResolvedPlan, catalog: Catalog) -> CalibrationRun:
    device = resolved.cluster.device
    row = catalog.accelerators.get(device.id)
    generation = "CPU" if row is None else row.generation or ""
    rows = catalog.efficiencies.items()
    efficiency = next((row_id for row_id, found in rows if generation in found.generations), "other")
    return CalibrationRun(measurement, resolved, generation, efficiency, resolved.plan.training.framework or "plain")


def step_seconds(case: CalibrationRun, catalog: Catalog) -> float:
    """Return the predicted step time, s."""
    work = training_work(case.run(catalog), None)
    time = step_time(work)
    return float(time.seconds)


@dataclass(frozen=True)
class CountedMemory:
    """Predicted memory in the way a publisher counted it, bytes.

    Attributes:
        exact: parts that follow from sizes and types alone.
        others: parts that may be off.
    """

    exact: float
    others: float


def memory_bytes(case: CalibrationRun, catalog: Catalog) -> float:
    """Return the predicted memory in the way the publisher counted it, bytes."""
    found = counted_memory(case, catalog)
    return found.exact + found.others


def counted_memory(case: CalibrationRun, catalog: Catalog) -> CountedMemory:
    """Return the predicted memory in the way the publisher counted it.

    ``allocated`` is what tensors took, ``reserved`` what the caching allocator held, ``device`` what the driver
    showed; some publishers report the first or the last pipeline stage only.
    """
    run = case.run(catalog)
    memory = training_memory(run)
    stage = memory.stages.get(case.measurement.tags.get("rank", ""), memory)
    exact = float(sum((bytes_ for part, bytes_ in stage.parts.items() if part in EXACT_PARTS), start=0.0))
    allocated = float(stage.peak)
    counted = case.measurement.quantity.removesuffix("_bytes")
    if counted == "allocated":
        return CountedMemory(exact, allocated - exact)
    reserved = allocated * (1.0 + float(run.software.fragmentation))
    outside = 0.0 if counted == "reserved" else float(training_work(run, None).context_bytes)
    return CountedMemory(exact, reserved + outside - exact)
