"""From neutral work to an estimate: the same for every kind of model, trained, served or fitted."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.bottleneck import (
    Balance,
    balance,
    bottleneck,
    kernel_seconds,
    model_flops_utilization,
)
from capacity_tui.engine.estimate.figures.readers import job_seconds
from capacity_tui.engine.estimate.memory_estimate import MemoryEstimate, StageBytes, kept_reserve, reserve_bytes
from capacity_tui.engine.estimate.money import cost, energy
from capacity_tui.engine.estimate.ranges import Ranges
from capacity_tui.engine.estimate.result import (
    Basis,
    Bottleneck,
    ComputationEstimate,
    CostEstimate,
    EnergyEstimate,
    Estimate,
    InferenceSpeed,
    Iteration,
)
from capacity_tui.engine.estimate.serving.rates import inference_speed
from capacity_tui.engine.estimate.timing.reliability import ReliabilityEstimate, reliability
from capacity_tui.engine.estimate.timing.schedule import StepTime, step_time
from capacity_tui.engine.estimate.work import Work
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number, OnDemand, added
from capacity_tui.engine.plan import PricingSection
from capacity_tui.engine.uncertainty import Interval


def memory_estimate(work: Work, cluster: Cluster, ranges: Ranges | None = None) -> MemoryEstimate:
    """Add what lies outside the allocator and return memory with its intervals.

    Args:
        ranges: of measured to estimated memory, by how it is counted; None for none.
    """
    allocated = added(work.memory.values()) if work.allocated is None else work.allocated
    capacity = cluster.device.memory_bytes

    def reserved(bytes_: Number) -> Number:
        wanted = reserve_bytes(bytes_, work.fragmentation, work.stranded)
        if capacity is None:
            return wanted
        return kept_reserve(wanted, capacity, bytes_, work.context_bytes, work.fragmentation)

    reserve = reserved(allocated)
    outside = {"context": work.context_bytes, "reserve": reserve}
    parts = OnDemand((*work.memory, *outside), lambda part: outside[part] if part in outside else work.memory[part])

    def stage(name: str) -> StageBytes:
        bytes_ = work.stages[name]
        return StageBytes(bytes_, bytes_ + reserved(bytes_) + work.context_bytes)

    def interval(key: str, bytes_: Number) -> Interval:
        if ranges is None:
            return Interval.exactly(bytes_)
        return ranges.of(key).around(bytes_).at_least(work.memory.get("weights", 0.0))

    return MemoryEstimate(
        per_device_bytes=interval(Figure.MEMORY_PER_DEVICE_BYTES, allocated),
        allocator_bytes=interval(Figure.MEMORY_ALLOCATOR_BYTES, allocated + reserve),
        reserved_bytes=interval(Figure.MEMORY_RESERVED_BYTES, allocated + added(outside.values())),
        parts=parts,
        capacity_bytes=capacity,
        host_bytes=work.host_bytes,
        places=work.places,
        stages=OnDemand(work.stages, stage),
        timeline=work.timeline,
        host_capacity_bytes=cluster.host_memory_bytes,
        host_devices=np.minimum(cluster.per_node, cluster.devices),
        host_source=f"{cluster.host_memory_known.origin}: {cluster.host_memory_known.source}",
        host_holds=work.host_holds,
    )


class Assembled:
    """The figures of a run, each group of them worked out when it is first asked for: a search asks for few.

    Args:
        work: what the run does; without evidence no figure has a range.
        time: the time of its phases, where it is known already.
    """

    def __init__(
        self,
        work: Work,
        cluster: Cluster,
        pricing: PricingSection,
        iteration: Iteration = "step",
        time: StepTime | None = None,
    ) -> None:
        self.work, self.details, self.model = work, work.details, work.facts
        self._cluster, self._pricing, self._iteration, self._time = cluster, pricing, iteration, time

    @cached_property
    def time(self) -> StepTime:
        """Time of a step, with that of its phases."""
        return self._time or step_time(self.work)

    @cached_property
    def ranges(self) -> Ranges:
        """Ratios of measured to estimated, by figure."""
        return Ranges(self.work, self.time.phases)

    @cached_property
    def memory(self) -> MemoryEstimate:
        """Bytes on the fullest device."""
        return memory_estimate(self.work, self._cluster, self.ranges if self.work.evidence.rows else None)

    @cached_property
    def computation(self) -> ComputationEstimate:
        """Time of a step and of the whole job."""
        work, time = self.work, self.time
        return ComputationEstimate(
            step_seconds=self.ranges["step"].around(time.seconds),
            parts=time.parts,
            units_per_step=work.units_per_step,
            steps=work.steps,
            devices=self._cluster.devices,
            model_flops_per_step=work.model_flops_per_step,
            mfu=model_flops_utilization(
                work.model_flops_per_step * (1.0 - work.share_on_host),
                time.seconds,
                work.peak_flops,
                self._cluster.devices,
            ),
            phases=time.phases,
            infer=_speed(work, time, self.ranges),
            unit=work.facts.unit,
            units_per_sample=work.units_per_sample,
            iteration=self._iteration,
            device_kind=self._cluster.device.kind,
        )

    @cached_property
    def bottleneck(self) -> Bottleneck:
        """Which resource limits."""
        work = self.work
        return bottleneck(self._balance, self.time.parts, self._cluster, work.peak_flops, self.memory.fits)

    @cached_property
    def cost(self) -> CostEstimate:
        """Money for the job."""
        work, time = self.work, self.time
        return cost(
            self._cluster,
            None if self._seconds is None else self.ranges["step"].around(self._seconds),
            time.seconds / work.units_per_step,
            keeps_state=work.served is None,
            state_bytes=None if work.state_bytes is None else work.state_bytes(),
        )

    @cached_property
    def energy(self) -> EnergyEstimate:
        """Electricity of the whole job."""
        computing, moving = kernel_seconds(self._balance, self.time.parts)
        whole = self.time.seconds
        return energy(self._cluster, self._seconds, computing / whole, moving / whole, self._pricing)

    @cached_property
    def reliability(self) -> ReliabilityEstimate | None:
        """What failures make of a training; None where nothing is trained, or its length is open."""
        if self.work.state_bytes is None or self._seconds is None:
            return None
        seconds = self.ranges["step"].around(self._seconds)
        return reliability(self._cluster, seconds, self.work.state_bytes(), self.cost.usd_per_hour)

    @cached_property
    def _seconds(self) -> Number | None:
        return None if self.work.steps is None else job_seconds(self.work.steps, self.time.seconds)

    @cached_property
    def _balance(self) -> Balance:
        return balance(self.work.phases)


def assemble(work: Work, cluster: Cluster, pricing: PricingSection, iteration: Iteration = "step") -> Estimate:
    """Return the estimate of a run: memory, time, bottleneck, cost, energy and what they rest on."""
    assembled = Assembled(work, cluster, pricing, iteration)
    return Estimate(
        work=work,
        ranges=assembled.ranges,
        memory=assembled.memory,
        computation=assembled.computation,
        bottleneck=assembled.bottleneck,
        cost=assembled.cost,
        energy=assembled.energy,
        reliability=assembled.reliability,
        basis=Basis(
            work.method,
            work.calibration or cluster.device.efficiency.source,
            cluster.device.checked,
            (*work.assumed, *assembled.ranges.beyond),
            cluster.figures(),
            cluster.words,
            levels=cluster.levels,
            ranges=assembled.ranges.sentences,
        ),
        warnings=work.warnings,
        details=work.details,
    )


def _speed(work: Work, time: StepTime, ranges: Ranges) -> InferenceSpeed | None:
    """Return the speeds of what is served; None for what is not."""
    if work.served is None:
        return None
    phases: dict[str, Number] = {
        phase.name: phase_time.seconds for phase, phase_time in zip(work.phases, time.phases, strict=True)
    }
    return inference_speed(work.served, phases, time.seconds, ranges)
