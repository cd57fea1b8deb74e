"""From neutral work to an estimate, the same for every kind of model, trained, served or fitted; and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.figures.table import job_seconds
from capacity_tui.engine.estimate.memory_estimate import MemoryEstimate, StageBytes, kept_reserve, reserve_bytes
from capacity_tui.engine.estimate.money import cost, energy
from capacity_tui.engine.estimate.ranges import Ranges
from capacity_tui.engine.estimate.result import (
    Basis,
    Bottleneck,
    BottleneckKind,
    ComputationEstimate,
    CostEstimate,
    EnergyEstimate,
    Estimate,
    InferenceSpeed,
    Iteration,
)
from capacity_tui.engine.estimate.serving.rates import inference_speed
from capacity_tui.engine.estimate.timing.reliability import ReliabilityEstimate, reliability
from capacity_tui.engine.estimate.timing.schedule import SHORTEST, StepTime, step_time
from capacity_tui.engine.estimate.work import Phase, Work
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Flags, Number, OnDemand, added, any_true, first_label, where
from capacity_tui.engine.plan import PricingSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval

# Other parts of a step are named from this share on.
LEAST_REPORTED = 0.01
LAYERS = ("compute", "attention")
OPTIMIZER = "optimizer"
NETWORK = ("tensor_parallel", "context_parallel", "expert_parallel", "data_parallel", "pipeline_bubble")


@dataclass(frozen=True, slots=True)
class Balance:
    """Arithmetic against memory over all kernels of a micro-batch, or of all phases."""

    flops: Number
    bytes: Number  # device memory traffic
    compute_bound: Number  # seconds in operators limited by arithmetic
    memory_bound: Number  # seconds in operators limited by memory


def balance(phases: tuple[Phase, ...]) -> Balance:
    """Add up arithmetic, traffic and time of the kernels of a micro-batch; of several phases, of all their runs."""
    sums: dict[str, list[Number]] = {"flops": [], "bytes": [], "arithmetic": [], "memory": []}
    for phase in phases:
        here: dict[str, list[Number]] = {name: [] for name in sums}
        for operator in phase.operators:
            if operator.where == "step":
                continue
            compute_seconds = operator.flops / operator.rate
            memory_seconds = operator.bytes / operator.bandwidth
            bound = compute_seconds >= memory_seconds
            here["flops"].append(operator.flops * operator.count)
            here["bytes"].append(operator.bytes * operator.count)
            here["arithmetic"].append(where(bound, compute_seconds, 0.0) * operator.count)
            here["memory"].append(where(bound, 0.0, memory_seconds) * operator.count)
        runs = phase.schedule.repeats * phase.runs if len(phases) > 1 else 1.0
        for name, numbers in here.items():
            sums[name].append(added(numbers) * runs)
    return Balance(*(added(numbers) for numbers in sums.values()))


arithmetic_intensity = formula()
ridge_point = formula()  # Arithmetic intensity above which arithmetic limits a device
model_flops_utilization = formula()


@equation
def arithmetic_share(arithmetic: Number, memory: Number) -> Number:
    """Share of the kernels' time that arithmetic bounds."""
    return arithmetic / np.maximum(arithmetic + memory, SHORTEST)


def kernel_seconds(totals: Balance, parts: Mapping[str, Number]) -> tuple[Number, Number]:
    """Return the seconds of a step in kernels bound by arithmetic, and in kernels bound by memory."""
    arithmetic = arithmetic_share(totals.compute_bound, totals.memory_bound)
    layers = parts.get("compute", 0.0) + parts.get("attention", 0.0)
    return layers * arithmetic, layers * (1.0 - arithmetic) + parts.get(OPTIMIZER, 0.0)


def bottleneck(
    totals: Balance, parts: Mapping[str, Number], cluster: Cluster, peak_flops: Number, fits: Flags | None
) -> Bottleneck:
    """Return what limits each run: memory capacity, or what most of a step goes to.

    That is the arrival of data, communication, the host that launches kernels, or the kernels themselves: then the
    optimizer, or of the others their arithmetic or their memory traffic.

    Args:
        totals: arithmetic and memory of the kernels.
        parts: seconds of a step by part.
        peak_flops: dense peak of one device in the type used, FLOP/s.
        fits: which runs memory holds; None where its size is unknown.
    """
    computing, moving = kernel_seconds(totals, parts)
    network = added(parts.get(part, 0.0) for part in NETWORK)
    overhead = parts.get("overhead", 0.0)
    late = parts.get("input", 0.0)
    waits_outside = np.maximum(network, overhead) > computing + moving
    update = parts.get(OPTIMIZER, 0.0)
    kinds: dict[BottleneckKind, object] = {
        "capacity": False if fits is None else ~fits,
        # The devices wait for data as soon as these take longer than all the rest: nothing else then sets the pace.
        "input": np.greater(late, LEAST_REPORTED * (computing + moving + network + overhead)),
        "network": waits_outside & np.greater_equal(network, overhead),
        "overhead": waits_outside,
        # On a processor that keeps the states, or after few tokens, updating the weights may take the most.
        "optimizer": np.greater(update, np.maximum(computing, moving - update)),
        "compute": np.greater_equal(computing, moving),
    }
    return Bottleneck(
        kinds=first_label(kinds, "memory_bandwidth"),
        arithmetic_intensity=arithmetic_intensity(totals.flops, totals.bytes),
        ridge_point=ridge_point(peak_flops, cluster.device.bandwidth),
        parts=parts,
        memory_bound=moving / np.maximum(computing + moving, SHORTEST),
    )


def bottleneck_text(bottleneck: Bottleneck) -> str:
    """Say how the step of a single plan divides: kernels by what limits them, and what takes most beside the layers."""
    if not bottleneck.parts:
        return ""
    step = max(float(added(bottleneck.parts.values())), SHORTEST)
    shares = {part: float(seconds) / step for part, seconds in bottleneck.parts.items()}
    inside = sum(share for part, share in shares.items() if part in (*LAYERS, OPTIMIZER))
    words = f"kernels {inside:.0%} of the step, {float(bottleneck.memory_bound):.0%} of that memory-bound"
    others = {part: share for part, share in shares.items() if part not in LAYERS}
    largest = max(others, key=lambda part: others[part], default="")
    if not largest or others[largest] < LEAST_REPORTED:
        return words
    return f"{words}; {largest.replace('_', ' ')} {others[largest]:.0%}"


def memory_estimate(work: Work, cluster: Cluster, ranges: Ranges | None = None) -> MemoryEstimate:
    """Add what lies outside the allocator and return memory with its intervals; without ``ranges`` there are none."""
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
        range_ = ranges.of(key)
        reached = range_.around(bytes_).at_least(work.memory.get("weights", 0.0))
        if capacity is None or not any_true(work.yielding > 0):
            return reached
        return reached.at_most(np.maximum(range_.around(bytes_ - work.yielding).high, capacity))

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
