"""What could be changed about a plan; whether it helps is for the estimate to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Instance, Quantization
from capacity_tui.engine.choose.advice.other_accelerators import other_accelerators
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.space.grid import divisors
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.estimate.timing.attention import attention_in_place_of
from capacity_tui.engine.estimate.timing.kernels import why_not_read
from capacity_tui.engine.plan.layout_rules import EQUAL_STAGES, plan_layout
from capacity_tui.engine.units import FP16_BITS, devices_in_words
from capacity_tui.engine.verdict import Verdict

# What the remedies do to the result, for those that do something to it.
ROUNDS_MORE = "Rounds more coarsely: compare losses or answers first."
OTHER_DATA = "The model then sees shorter texts."
OTHER_BATCH = "The optimizer then takes other steps."
ONLY_ADAPTERS = "Only the adapters learn."
DROPS_REQUESTS = "Replicas may vanish at two minutes' notice: only beside others that stay."
WAITS_FOR_CAPACITY = "Interruptions are counted, waiting for capacity is not."
SPOT = "spot"


def remedies(case: EstimatedPlan) -> tuple[Remedy, ...]:
    """Return what could be changed about a plan, apart from fields that the modes chose."""
    if case.resolved.family.kind == "network" and case.plan.task != "infer":
        found = (
            *_numerics(case),
            *_kernels(case),
            *_batches(case),
            *_sharding(case),
            *_devices(case),
            *_instances(case),
        )
    elif case.resolved.shape is None:
        found = (*_one_fit(case), *_devices(case), *_instances(case))
    elif case.plan.task == "infer":
        found = (*_serving(case), *_tensor_parallel(case), *_devices(case), *_instances(case))
    else:
        found = (
            *_numerics(case),
            *_transformer_numerics(case),
            *_kernels(case),
            *_batches(case),
            *_sharding(case),
            *_tensor_parallel(case),
            *_sequence(case),
            *_devices(case),
            *_instances(case),
        )
    found = (*found, *other_accelerators(case), *_spot(case))
    return tuple(remedy for remedy in found if not any(case.is_open(path) for path in remedy.change))


def _one_fit(case: EstimatedPlan) -> Iterator[Remedy]:
    """Remedies for what is fitted in one go: its own parameters."""
    spec, device = case.resolved.spec, case.resolved.cluster.device
    if getattr(spec, "precision", None) == "fp64" and "fp32" in device.peaks:
        yield Remedy("single_precision", "Fit in single precision", {"model.spec.precision": "fp32"}, ROUNDS_MORE)
    cores = getattr(spec, "n_jobs", None)
    if isinstance(cores, int) and device.kind == "cpu" and cores < int(device.units):
        every = int(device.units)
        yield Remedy("cores", f"Use all {every} cores", {"model.spec.n_jobs": every})


def _numerics(case: EstimatedPlan) -> Iterator[Remedy]:
    training, device = case.plan.training, case.resolved.cluster.device
    if training.precision in ("fp32", "tf32"):
        half = "bf16" if device.native("bf16") == "bf16" else "fp16"
        if device.native(half) == half:
            yield Remedy("mixed_precision", f"Train in mixed precision ({half})", {"training.precision": half})
    short = case.estimate.held is False or case.estimate.verdict is Verdict.TIGHT
    lighter = case.catalog.optimizers.find(training.optimizer).eight_bit
    if lighter is not None and short:
        change = {"training.optimizer": lighter}
        yield Remedy("eight_bit_optimizer", "Keep optimizer states in 8 bits", change, ROUNDS_MORE)


def _transformer_numerics(case: EstimatedPlan) -> Iterator[Remedy]:
    training, device = case.plan.training, case.resolved.cluster.device
    if training.adapter is not None:
        return
    if training.precision in ("bf16", "fp16") and device.native("fp8") == "fp8":
        yield Remedy("fp8", "Matrix products in FP8", {"training.precision": "fp8"}, ROUNDS_MORE)
    if case.plan.task == "finetune":
        title = "Train LoRA adapters in place of all weights"
        yield Remedy("adapters", title, {"training.method": "lora"}, ONLY_ADAPTERS)


def _kernels(case: EstimatedPlan) -> Iterator[Remedy]:
    training, parallel = case.plan.training, case.plan.parallelism
    if training.attention == "eager":
        instead = attention_in_place_of("flash", case.resolved.cluster.device, case.catalog)
        kernel = "flash" if instead is None else instead.value
        if kernel != "eager":
            yield Remedy("fused_attention", "Use fused attention", {"training.attention": kernel})
    if not training.compile:
        yield Remedy("compile", "Compile the model", {"training.compile": True})
    partly = ("selective", "selective-ops") if case.resolved.shape is not None else ()
    if training.checkpointing == "none":
        for name in (*partly, "full"):
            yield Remedy("checkpointing", f"Checkpoint activations ({name})", {"training.checkpointing": name})
    else:
        for name in ("none", *partly):
            if name != training.checkpointing:
                title = "Keep all activations" if name == "none" else f"Recompute less ({name})"
                yield Remedy("less_checkpointing", title, {"training.checkpointing": name})
    if case.resolved.shape is not None and training.loss != "fused":
        yield Remedy("fused_loss", "Fuse the loss, so that no logits are held", {"training.loss": "fused"})
    if parallel.offload == "none":
        title = "Keep optimizer states in host memory"
        yield Remedy("offload", title, {"parallelism.offload": "optimizer"})
    else:
        yield Remedy("no_offload", "Keep everything on the device", {"parallelism.offload": "none"})


def _batches(case: EstimatedPlan) -> Iterator[Remedy]:
    training = case.plan.training
    micro_batch, replicas = int(training.micro_batch), int(case.plan.parallelism.dp or 1)
    room = int(training.global_batch or 1) // replicas
    open_batch = not case.gives("training.global_batch")
    for size in (micro_batch * 2, micro_batch * 4):
        if open_batch or size <= room:
            caution = OTHER_BATCH if open_batch else ""
            yield Remedy("micro_batch", f"Raise the micro-batch to {size}", {"training.micro_batch": size}, caution)
    size = micro_batch // 2
    while size >= 1:
        yield Remedy("smaller_micro_batch", f"Lower the micro-batch to {size}", {"training.micro_batch": size})
        size //= 2


def _sharding(case: EstimatedPlan) -> Iterator[Remedy]:
    parallel = case.plan.parallelism
    ranks, stage = int(parallel.dp or 1) * int(parallel.cp), int(parallel.zero or 0)
    words = {
        0: "Replicate the model state",
        1: "Shard optimizer states",
        2: "Shard gradients",
        3: "Shard parameters (FSDP)",
    }
    for other in (0, 1, 2, 3) if ranks > 1 else ():
        if other != stage:
            code = "sharding" if other > stage else "less_sharding"
            yield Remedy(code, f"{words[other]}: ZeRO {other}", {"parallelism.zero": other})
    if int(parallel.tp or 1) > 1 and not parallel.sequence_parallel:
        change: Mapping[str, object] = {"parallelism.sequence_parallel": True}
        yield Remedy("sequence_parallel", "Split norms and dropout along the sequence", change)
    stages, layers = int(parallel.pp or 1), int(case.resolved.shape.layers) if case.resolved.shape else 0
    if stages > 1 and layers % (stages * int(parallel.interleave) * 2) == 0:
        chunks = int(parallel.interleave) * 2
        yield Remedy("interleave", f"Interleave {chunks} chunks a stage", {"parallelism.interleave": chunks})


def _tensor_parallel(case: EstimatedPlan) -> Iterator[Remedy]:
    """Layouts with other tensor- and pipeline-parallel sizes on the same devices."""
    parallel, cluster, shape = case.plan.parallelism, case.resolved.cluster, case.resolved.shape
    if shape is None:
        return
    tensor, stages, devices = int(parallel.tp or 1), int(parallel.pp or 1), int(cluster.devices)
    serving = case.plan.task == "infer"
    inside = int(cluster.direct_devices)
    near = [(tensor // 2, stages), (tensor * 2, stages), (tensor // 2, stages * 2), (tensor * 2, stages // 2)]
    if tensor > inside:
        near.append((inside, stages * tensor // inside))
    every = [(size, most // size) for most in divisors(devices) for size in divisors(most)]
    tried = every if serving else near
    layout = plan_layout(case.plan, shape, case.catalog)
    for size, pipeline in dict.fromkeys(tried):
        # Layouts that cannot be have no estimate; unequal stages have one that software may not reach.
        wanted = 1 <= size <= inside and pipeline >= 1 and (size, pipeline) != (tensor, stages)
        if (
            not wanted
            or devices % (size * pipeline * int(parallel.cp))
            or not EQUAL_STAGES.holds(replace(layout, pp=pipeline))
        ):
            continue
        change = {"parallelism.tp": size, "parallelism.pp": pipeline}
        replicas = devices // (size * pipeline * int(parallel.cp))
        words = f"{replicas} {'replicas' if serving else 'data-parallel replicas'}"
        yield Remedy("layout", f"Lay out as TP {size}, PP {pipeline}, {words}", change)


def _sequence(case: EstimatedPlan) -> Iterator[Remedy]:
    length = int(case.plan.training.seq_len)
    if case.plan.task == "train" and length >= 2048:
        change = {"training.seq_len": length // 2}
        yield Remedy("sequence_length", f"Train on sequences of {length // 2} tokens", change, OTHER_DATA)


def _serving(case: EstimatedPlan) -> Iterator[Remedy]:
    inference, device = case.plan.inference, case.resolved.cluster.device
    formats = case.catalog.quantizations
    bits = formats.find(inference.weights_format).bits_per_weight or 16.0
    engines = case.catalog.engine_rows(inference.engine)
    for name in dict.fromkeys(name for row in engines for name in row.lighter_weights):
        row = formats.find(name)
        runs = not why_not_read(row, inference.engine, device, case.catalog)
        if runs and (row.bits_per_weight or 16.0) < bits and _has_units(row, device):
            change = {"inference.weights": name}
            yield Remedy("quantize_weights", f"Store weights as {name}", change, ROUNDS_MORE)
    cache = next((row.lighter_cache for row in engines if row.lighter_cache), None)
    if cache and (formats.find(inference.kv_cache).bits_per_weight or 0.0) >= FP16_BITS:
        yield Remedy("quantize_cache", f"Keep the KV cache in {cache}", {"inference.kv_cache": cache}, ROUNDS_MORE)
    batch = int(inference.batch)
    for size in (batch * 2, batch * 4):
        yield Remedy("batch", f"Serve {size} sequences at once", {"inference.batch": size})
    size = batch // 2
    while size >= 1:
        yield Remedy("smaller_batch", f"Serve {size} sequences at once", {"inference.batch": size})
        size //= 2
    faster = next((row.faster_engine for row in engines if row.faster_engine), None)
    if faster is not None and device.kind == "gpu":
        name = case.catalog.engine_rows(faster)[0].name
        yield Remedy("engine", f"Serve with {name}", {"inference.engine": faster})
    if inference.gpu_layers is not None:
        yield Remedy("gpu_layers", "Put all layers on the accelerator", {"inference.gpu_layers": None})


def _has_units(row: Quantization, device: Device) -> bool:
    """Whether a device multiplies in a format's own type; formats that are unpacked to 16 bits need none."""
    return not row.own_type or device.native(row.compute) == row.compute


def _devices(case: EstimatedPlan) -> Iterator[Remedy]:
    count = int(case.resolved.cluster.devices)
    if count > 1:
        yield Remedy("fewer_devices", f"Use {devices_in_words(count // 2)}", {"hardware.devices": count // 2})
    if case.plan.hardware.name != "detected" and case.resolved.cluster.device.kind != "cpu":
        yield Remedy("more_devices", f"Use {devices_in_words(count * 2)}", {"hardware.devices": count * 2})
    if case.plan.task == "infer" and case.estimate.held is False and case.plan.hardware.name != "detected":
        tensor = int(case.plan.parallelism.tp or 1)
        for times in (2, 4, 8):
            change = {"hardware.devices": count * times, "parallelism.tp": tensor * times}
            yield Remedy("more_devices", f"Split it over {count * times} devices, TP {tensor * times}", change)


def _instances(case: EstimatedPlan) -> Iterator[Remedy]:
    """Cheaper instances with the same accelerator; an accelerator by its own name is priced at the cheapest."""
    plan, catalog = case.plan, case.catalog
    row_id = catalog.instances.find_id(plan.hardware.name)
    if row_id is None or plan.pricing.usd_per_hour is not None:
        return
    mine = catalog.instances[row_id]
    if mine.accelerator is None:
        return

    def price(row: Instance) -> float:
        return row.usd_per_device_hour or np.inf

    like = [row for row in catalog.instances.where("accelerator", mine.accelerator) if price(row) < price(mine)]
    for row in sorted(like, key=price)[:2]:
        change = {"hardware.name": row.id, "hardware.devices": int(case.resolved.cluster.devices)}
        yield Remedy("cheaper_instance", f"Rent {row.name} ({row.provider})", change)


def _spot(case: EstimatedPlan) -> Iterator[Remedy]:
    """Spot capacity, where a price of it is known; its interruptions are in the estimate."""
    price = case.resolved.cluster.price
    if not price.is_spot and price.spot_usd_per_hour is not None:
        caution = DROPS_REQUESTS if case.plan.task == "infer" else WAITS_FOR_CAPACITY
        yield Remedy(SPOT, "Use spot capacity", {"pricing.spot": True}, f"{caution} Price of {price.spot_source}.")
