"""Published runs made ready for repeated estimates with changing constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capacity_tui.engine.calibrate.accuracy import scored_measurements
from capacity_tui.engine.calibrate.constants import Constant
from capacity_tui.engine.calibrate.published import Kind, Measurement
from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.assemble import memory_estimate
from capacity_tui.engine.estimate.resolve import Settled, settle
from capacity_tui.engine.estimate.schedule import step_time
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.estimate.work import Work
from capacity_tui.engine.hardware.cluster import Cluster
from capacity_tui.engine.hardware.resolve import reach_of
from capacity_tui.engine.workload.plan import Plan


@dataclass(frozen=True)
class Case:
    """A measured run with its plan settled.

    Attributes:
        measurement: what was measured.
        settled: its plan with every default filled in.
        generation: hardware generation as the catalogue names it.
        efficiency: row of efficiency.yaml that covers it.
        framework: row of frameworks.yaml.
    """

    measurement: Measurement
    settled: Settled
    generation: str
    efficiency: str
    framework: str

    def touched_by(self, constant: Constant) -> bool:
        """Whether a constant can change this run's estimate."""
        return (self.efficiency if constant.table == "efficiency" else self.framework) in constant.rows

    def cluster(self, catalog: Catalog) -> Cluster:
        """Return the hardware with what another catalogue says it reaches."""
        device = replace(self.settled.cluster.device, reach=reach_of(self.generation, catalog))
        return replace(self.settled.cluster, device=device)

    def work(self, catalog: Catalog) -> Work:
        """Return the run as work, with another catalogue's constants."""
        shape = self.settled.shape
        if shape is None:
            raise ValueError(f"{self.measurement.id} is no transformer")
        return training_work(transformer_run(self.settled.plan, shape, self.cluster(catalog), catalog), None)


def training_cases(kind: Kind, catalog: Catalog) -> tuple[Case, ...]:
    """Return the runs of a kind that can be estimated."""
    found = []
    for measurement in scored_measurements(kind):
        try:
            settled = settle(Plan.model_validate(measurement.plan), catalog)
        except CapacityError:
            continue
        if settled.shape is not None:
            found.append(_case(measurement, settled, catalog))
    return tuple(found)


def _case(measurement: Measurement, settled: Settled, catalog: Catalog) -> Case:
    device = settled.cluster.device
    row = catalog.accelerators.get(device.id)
    generation = "CPU" if row is None else row.generation or ""
    rows = catalog.efficiencies.items()
    efficiency = next((row_id for row_id, found in rows if generation in found.generations), "other")
    return Case(measurement, settled, generation, efficiency, settled.plan.training.framework or "plain")


def step_seconds(case: Case, catalog: Catalog) -> float:
    """Return the predicted step time, s."""
    work = case.work(catalog)
    time = step_time(
        work.operators,
        work.collectives,
        work.schedule,
        launch_seconds=work.launch_seconds,
        fixed_seconds=work.fixed_seconds,
    )
    return float(time.seconds)


def memory_bytes(case: Case, catalog: Catalog) -> float:
    """Return the predicted memory in the way the publisher counted it, bytes."""
    memory = memory_estimate(case.work(catalog), case.cluster(catalog))
    allocated = case.measurement.quantity == "allocated_bytes"
    return float((memory.per_device_bytes if allocated else memory.reserved_bytes).value)
