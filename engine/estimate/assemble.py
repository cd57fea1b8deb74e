"""From neutral work to an estimate: the same for every kind of model."""

from __future__ import annotations

from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.estimate.bottleneck import balance, bottleneck, kernel_seconds, model_flops_utilization
from capacity_tui.engine.estimate.derived import job_seconds
from capacity_tui.engine.estimate.money import cost, energy
from capacity_tui.engine.estimate.non_allocator_memory import reserve_bytes
from capacity_tui.engine.estimate.result import (
    Basis,
    ComputationEstimate,
    Estimate,
    Iteration,
    MemoryEstimate,
    StageBytes,
)
from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.estimate.work import Work
from capacity_tui.engine.numeric import added
from capacity_tui.engine.plan.plan import PricingSection
from capacity_tui.engine.uncertainty.intervals import interval, memory_interval


def memory_estimate(work: Work, cluster: Cluster) -> MemoryEstimate:
    """Add what lies outside the allocator and return memory with its intervals."""
    allocated = added(work.memory.values())
    reserve = reserve_bytes(allocated, work.fragmentation)
    parts = {**work.memory, "context": work.context_bytes, "reserve": reserve}
    return MemoryEstimate(
        per_device_bytes=memory_interval(work.memory, work.memory_range),
        reserved_bytes=memory_interval(parts, work.memory_range),
        parts=parts,
        capacity_bytes=cluster.device.memory_bytes,
        host_bytes=work.host_bytes,
        places=work.places,
        stages={
            name: StageBytes(bytes_, bytes_ + reserve_bytes(bytes_, work.fragmentation) + work.context_bytes)
            for name, bytes_ in work.stages.items()
        },
        timeline=work.timeline,
        host_capacity_bytes=cluster.host_memory_bytes,
    )


def assemble(work: Work, cluster: Cluster, pricing: PricingSection, iteration: Iteration = "step") -> Estimate:
    """Return the estimate of a run: memory, time, bottleneck, cost, energy and what they rest on.

    Args:
        work: what the run does.
        cluster: what it runs on.
        pricing: prices the plan gives.
        iteration: what the work is one of.
    """
    memory = memory_estimate(work, cluster)
    time = step_time(work)
    computation = ComputationEstimate(
        step_seconds=interval(time.seconds, work.step_range),
        parts=time.parts,
        units_per_step=work.units_per_step,
        steps=work.steps,
        devices=cluster.devices,
        model_flops_per_step=work.model_flops_per_step,
        mfu=model_flops_utilization(work.model_flops_per_step, time.seconds, work.peak_flops, cluster.devices),
        unit=work.facts.unit,
        units_per_sample=work.units_per_sample,
        iteration=iteration,
    )
    seconds = None if work.steps is None else job_seconds(work.steps, time.seconds)
    totals = balance(work.operators)
    computing, moving = kernel_seconds(totals, time.parts)
    job = None if seconds is None else interval(seconds, work.step_range)
    return Estimate(
        model=work.facts,
        memory=memory,
        computation=computation,
        bottleneck=bottleneck(totals, time.parts, cluster, work.peak_flops, memory.held),
        cost=cost(cluster, job, time.seconds / work.units_per_step, state_bytes=work.state_bytes),
        energy=energy(cluster, seconds, computing / time.seconds, moving / time.seconds, pricing.usd_per_kwh),
        basis=Basis(
            work.method,
            cluster.device.efficiency.source,
            cluster.device.checked,
            work.assumed,
            cluster.figures(),
            cluster.words,
            levels=cluster.levels,
        ),
        warnings=work.warnings,
    )
