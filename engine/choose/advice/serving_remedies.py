"""What could be changed about how a model is served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import Quantization
from capacity_tui.engine.choose.advice.remedy import ROUNDS_MORE, Remedy
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.space.grid import divisors
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.timing import why_not_read
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import EQUAL_STAGES, plan_layout
from capacity_tui.engine.units import FP16_BITS
from capacity_tui.engine.verdict import Verdict

FURTHER = "quantize_weights_further"
_BYTE = 8.0


def serving_remedies(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield other formats, batches, engines and layouts."""
    yield from _formats(case)
    inference, device = case.plan.inference, case.resolved.cluster.device
    engines = case.catalog.engine_rows(inference.engine)
    batch = int(inference.batch)
    larger, smaller = (batch * 2, batch * 4), [batch >> power for power in range(1, batch.bit_length())]
    for code, sizes in (("batch", larger), ("smaller_batch", smaller)):
        for size in sizes:
            words = f"Serve {size} sequence{'' if size == 1 else 's'} at once"
            yield Remedy(code, words, {Key.INFERENCE_BATCH: size})
    faster = next((row.faster_engine for row in engines if row.faster_engine), None)
    if faster is not None and device.kind == "gpu":
        name = case.catalog.engine_rows(faster)[0].name
        yield Remedy("engine", f"Serve with {name}", {Key.INFERENCE_ENGINE: faster})
    if inference.gpu_layers is not None:
        yield Remedy("gpu_layers", "Put all layers on the accelerator", {Key.INFERENCE_GPU_LAYERS: None})
    yield from _layouts(case)


def _formats(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield lighter formats that the engine reads on the device.

    Where memory is short, those of a byte are told apart from those below, which cost more of the answers.
    """
    inference, device, formats = case.plan.inference, case.resolved.cluster.device, case.catalog.quantizations
    bits = formats.find(inference.weights_format).bits_per_weight or FP16_BITS
    short = case.estimate.verdict is Verdict.DOES_NOT_FIT
    engines = case.catalog.engine_rows(inference.engine)
    for name in dict.fromkeys(name for row in engines for name in row.lighter_weights):
        row = formats.find(name)
        runs = not why_not_read(row, inference.engine, device, case.catalog)
        if runs and (row.bits_per_weight or FP16_BITS) < bits and _has_units(row, device):
            is_byte = not short or (row.body_bits or FP16_BITS) >= _BYTE
            code = "quantize_weights" if is_byte else FURTHER
            yield Remedy(code, f"Store weights as {name}", {Key.INFERENCE_WEIGHTS: name}, ROUNDS_MORE)
    cache = next((row.lighter_cache for row in engines if row.lighter_cache), None)
    if cache and (formats.find(inference.kv_cache).bits_per_weight or 0.0) >= FP16_BITS:
        yield Remedy("quantize_cache", f"Keep the KV cache in {cache}", {Key.INFERENCE_KV_CACHE: cache}, ROUNDS_MORE)


def _has_units(row: Quantization, device: Device) -> bool:
    """Whether a device multiplies in a format's own type; formats that are unpacked to 16 bits need none."""
    return not row.own_type or device.native(row.compute) == row.compute


def _layouts(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield every other layout of replicas over the same devices, tensor parallelism inside the fast links."""
    parallel, cluster, shape = case.plan.parallelism, case.resolved.cluster, case.resolved.shape
    if shape is None:
        return
    layout = plan_layout(case.plan, shape, case.catalog)
    devices, inside = int(cluster.devices), int(cluster.direct_devices)
    for model in divisors(devices):
        for size in divisors(model):
            stages, replicas = model // size, devices // model
            other = (size, stages) != (int(parallel.tp or 1), int(parallel.pp or 1))
            if other and size <= inside and EQUAL_STAGES.holds(replace(layout, pp=stages)):
                change: dict[str, object] = {Key.PARALLELISM_TP: size, Key.PARALLELISM_PP: stages}
                words = f"{replicas} replica{'' if replicas == 1 else 's'}"
                yield Remedy("layout", f"Lay out as TP {size}, PP {stages}, {words}", change)
