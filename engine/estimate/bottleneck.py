"""Which resource limits a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.result import Bottleneck, BottleneckKind
from capacity_tui.engine.estimate.timing.schedule import SHORTEST
from capacity_tui.engine.estimate.work import Phase
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Flags, Number, added, first_label, where
from capacity_tui.engine.record import dataclass

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


ROOFLINE = "Williams et al. 2009"


@equation(
    "intensity = flops / max(traffic, 1)",
    unit="FLOP/B",
    source=ROOFLINE,
    part=Figure.BOTTLENECK_ARITHMETIC_INTENSITY,
    flops=("FLOPs of all kernels of a micro-batch, or of all phases, on one device", "FLOP"),
    traffic=("bytes they move to and from its memory", "B"),
)
def arithmetic_intensity(flops: Number, traffic: Number) -> Number:
    """FLOPs for each byte of device memory traffic."""
    return flops / np.maximum(traffic, 1.0)


@equation(
    "ridge = peak / bandwidth",
    unit="FLOP/B",
    source=ROOFLINE,
    part=Figure.BOTTLENECK_RIDGE_POINT,
    peak=("dense peak in the type used, FLOP/s", "FLOP/s", "hardware.peaks"),
    bandwidth=("memory bandwidth, B/s", "B/s", ("hardware.host_bandwidth", "hardware.bandwidth")),
)
def ridge_point(peak: Number, bandwidth: Number) -> Number:
    """Arithmetic intensity above which arithmetic limits a device."""
    return peak / bandwidth


@equation(
    "mfu = model_flops / (step_seconds · peak · devices)",
    unit="share",
    source="Chowdhery et al. 2022: FLOPs of the model itself, none of recomputation",
    part=Figure.MFU,
    model_flops=("FLOPs of the model in a step, over all devices", "FLOP", "step_flops"),
    step_seconds=("seconds of a step", "s", "held_step_seconds"),
    peak=("dense peak of one device in the type used, FLOP/s", "FLOP/s", "hardware.peaks"),
    devices="how many there are",
)
def model_flops_utilization(model_flops: Number, step_seconds: Number, peak: Number, devices: Number) -> Number:
    """Share of the dense peak that the model's own arithmetic uses."""
    return model_flops / (step_seconds * peak * devices)


@equation(
    "share = arithmetic / (arithmetic + memory)",
    unit="share",
    source=ROOFLINE,
    arithmetic=("seconds of kernels bound by arithmetic", "s"),
    memory=("seconds of kernels bound by memory", "s"),
)
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
