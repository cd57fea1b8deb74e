"""Constants of classical algorithms fitted to fits that were measured.

Loops take the time that ``algorithms.yaml`` gives on one core of the machine its ``source`` names: on another machine
all its ``nanoseconds`` move together. Products and passes over the data do not: they are held against what that
machine's core reached in the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster.catalogue_devices import efficiency_of
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan.files import plan_from_data
from tools.calibrate.classical_measuring import Measured
from tools.calibrate.constants import Constant, Fits
from tools.calibrate.fitting import Problem

MEASURED = Path(__file__).parent / "measured" / "classical.jsonl"
# Row of what all algorithms share; its figures are those of libraries and machines, measured by themselves.
COMMON = "common"
FIELDS: dict[Fits, tuple[str, ...]] = {"time": ("shares", "half_sizes", "nanoseconds", "passes"), "memory": ("bytes",)}
# What is shipped was set on other runs of the same kind: how far it may be off on another machine.
SPREAD = 0.7
PROCESSOR = "cpu-4c-2.5ghz-basic"


@dataclass(frozen=True)
class ClassicalRun:
    """One measured fit, of which either time or memory is estimated."""

    fit: Measured
    fits: Literal["time", "memory"]
    takes_arrays = False

    @property
    def measured(self) -> float:
        """Seconds, or bytes at the peak."""
        return self.fit.seconds if self.fits == "time" else self.fit.bytes

    @property
    def publisher(self) -> str:
        """The algorithm: one is as good a witness as another."""
        return self.fit.algorithm

    def reads(self, constant: Constant) -> bool:
        """Whether a constant is of this algorithm."""
        return constant.table == "algorithms" and self.fit.algorithm in constant.rows

    def figure(self, catalog: Catalog) -> float:
        """Return seconds or bytes as estimated for one core of the machine that was measured."""
        reached, rates = efficiency_of("CPU", catalog), self.fit.rates
        spec = {
            "units": 1,
            "fp64_tflops": rates["fp64"] / reached.gemm["fp64"] / 1e12,
            "fp32_tflops": rates["fp32"] / reached.gemm["fp32"] / 1e12,
            "bandwidth_gbs": rates["stream"] / float(reached.stream) / 1e9,
        }
        plan = plan_from_data(
            {
                "model": {"name": self.fit.algorithm, "spec": dict(self.fit.spec)},
                "hardware": {"name": PROCESSOR, "spec": spec},
            }
        )
        estimate = estimate_plan(plan, None, catalog).estimate
        found = estimate.computation.step_seconds if self.fits == "time" else estimate.memory.per_device_bytes
        return float(found.value)


def classical_constants(fits: Fits, catalog: Catalog) -> tuple[Constant, ...]:
    """Return the constants of every algorithm's time or memory, around what ships."""
    found = []
    for row_id, row in catalog.algorithms.items():
        for field in FIELDS[fits] if row_id != COMMON else ():
            held: dict[str, float] = getattr(row, field)
            found += [
                Constant(
                    id=f"{row_id}.{field}.{key}",
                    fits=fits,
                    table="algorithms",
                    rows=(row_id,),
                    field=f"{field}.{key}",
                    prior=value,
                    spread=SPREAD,
                    low=value / 100.0,
                    high=value * 100.0,
                )
                for key, value in held.items()
                if value > 0
            ]
    return tuple(found)


def classical_problem(
    fits: Literal["time", "memory"], measured: Sequence[Measured], catalog: Catalog
) -> Problem[ClassicalRun]:
    """Return the problem of the time or the memory of measured fits."""
    runs = [ClassicalRun(each, fits) for each in measured]
    read = [each for each in classical_constants(fits, catalog) if any(run.reads(each) for run in runs)]
    return Problem(runs, read, catalog)
