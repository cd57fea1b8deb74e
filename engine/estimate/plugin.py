"""A model of another package as neutral work: its FLOPs and bytes by roofline, on one device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.non_allocator_memory import context_bytes
from capacity_tui.engine.estimate.note import Note
from capacity_tui.engine.estimate.work import ModelFacts, Operator, Phase, Work
from capacity_tui.engine.models import Calculated, ModelPlugin, Spec
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import FP16_BYTES, FP32_BYTES, FP64_BYTES, format_number

METHOD = "FLOPs and bytes of the plug-in by roofline"
WIDTHS = {
    "fp64": FP64_BYTES,
    "fp32": FP32_BYTES,
    "tf32": FP32_BYTES,
    "bf16": FP16_BYTES,
    "fp16": FP16_BYTES,
    "fp8": 1.0,
    "int8": 1.0,
}


def plugin_work(plan: Plan, spec: Spec, plugin: ModelPlugin, cluster: Cluster) -> Work:
    """Return one training of a plug-in's model; the whole training is one step.

    Raises:
        PlanError: the plug-in failed.
    """
    found = plugin.calculated(spec)
    device = cluster.device
    precision = device.native(str(getattr(spec, "precision", "fp32")))
    precision = precision if precision in device.peaks else "fp32"
    reach = plan.hardware.efficiency or device.gemm_reach(precision)
    memory = _memory(found, WIDTHS.get(precision, FP32_BYTES))
    peak = sum(memory.values())
    traffic = peak if found.traffic_bytes is None else found.traffic_bytes
    training = Operator(
        name=found.algorithm or plugin.name,
        part="compute",
        phase="forward",
        where="layer",
        flops=found.train_flops,
        bytes=traffic,
        rate=device.peak(precision) * reach,
        bandwidth=device.bandwidth * device.efficiency.stream,
    )
    on_cpu = device.kind == "cpu"
    return Work(
        facts=ModelFacts(found.params, found.params, found.infer_flops_per_sample, "sample", found.complexity_class),
        memory=memory,
        host_bytes=0.0,
        places={"while it trains": peak},
        fragmentation=0.0,
        context_bytes=context_bytes(0.0 if on_cpu else device.efficiency.context_bytes, 0.0, 0.0),
        phases=(Phase("step", (training,), fixed_seconds=device.efficiency.kernel_launch_seconds),),
        units_per_step=_samples(spec),
        units_per_sample=1.0,
        steps=1.0,
        model_flops_per_step=found.train_flops,
        peak_flops=device.peak(precision),
        method=f"{METHOD} {plugin.package}",
        assumed=(*cluster.assumed, *_assumed(found)),
        warnings=tuple(_warnings(cluster)),
    )


def _memory(found: Calculated, element_bytes: float) -> dict[str, float]:
    model = found.params * element_bytes
    if found.memory_bytes is None:
        return {"model": model}
    return {"model": min(model, found.memory_bytes), "work": max(0.0, found.memory_bytes - model)}


def _samples(spec: Spec) -> float:
    """Return how many samples one training passes: ``n`` where the plug-in has such a number, else one."""
    samples = getattr(spec, "n", 1)
    return float(samples) if isinstance(samples, int | float) else 1.0


def _assumed(found: Calculated) -> Iterator[str]:
    if found.memory_bytes is None:
        yield "memory of the parameters alone"
    if found.traffic_bytes is None:
        yield "memory passed through once"


def _warnings(cluster: Cluster) -> Iterator[Note]:
    devices = float(np.max(cluster.devices))
    if devices > 1:
        detail = f"A model of a plug-in trains on one of {format_number(devices)} devices; the others wait and cost."
        yield Note("one_device", "One device does the work", detail)
