"""What could be changed about a plan on its hardware; whether it helps is for planning it to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache

from capacity_tui.engine.catalog import Quantization, parse_shipped
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.serving import why_not_read
from capacity_tui.engine.estimate.timing import attention_in_place_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import EQUAL_STAGES, plan_layout
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import TRAINED
from capacity_tui.engine.solve.advice.hardware_remedies import (
    OTHER_BATCH,
    OTHER_DATA,
    ROUNDS_MORE,
    Remedy,
    hardware_remedies,
)
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.modes.model_choice import named_change
from capacity_tui.engine.solve.space.axes import divisors, offered
from capacity_tui.engine.units import FP16_BITS
from capacity_tui.engine.verdict import Verdict

MOST_CHUNKS = 16  # Pipeline chunks of a stage that are tried at the most


def remedies(case: EstimatedPlan) -> tuple[Remedy, ...]:
    """Return what could be changed about a plan that its software has, apart from fields that the modes chose."""
    complete = (
        replace(remedy, change=case.same_batch(remedy.change))
        for remedy in (*_on_same_hardware(case), *hardware_remedies(case))
    )
    has = {} if case.plan.is_inference else offered(case.plan, case.catalog)
    return tuple(
        remedy
        for remedy in complete
        if all(value in has.get(path, (value,)) for path, value in remedy.change.items())
        and (remedy.replaces_choice or not any(case.is_open(path) for path in remedy.change))
    )


def _on_same_hardware(case: EstimatedPlan) -> Iterator[Remedy]:
    if case.resolved.shape is None and not case.resolved.family.is_network:
        yield from _one_fit(case)
    elif case.resolved.shape is None and case.plan.is_inference:
        yield from _formats(case)
        yield from _settings(case)
    elif case.plan.is_inference:
        yield from serving_remedies(case)
    else:
        yield from _attention(case)
        yield from _settings(case)
        yield from _batches(case)
        yield from _sharding(case)
        yield from _layouts(case)
        yield from _sequence(case)


def _one_fit(case: EstimatedPlan) -> Iterator[Remedy]:
    """Remedies for what is fitted in one go: its own parameters."""
    spec, device = case.resolved.spec, case.resolved.cluster.device
    if getattr(spec, "precision", None) == "fp64" and "fp32" in device.peaks:
        yield Remedy(
            "single_precision", "Fit in single precision", {f"{Key.MODEL_SPEC}.precision": "fp32"}, ROUNDS_MORE
        )
    cores = getattr(spec, "n_jobs", None)
    if isinstance(cores, int) and device.is_processor and cores < int(device.units):
        every = int(device.units)
        yield Remedy("cores", f"Use all {every} cores", {f"{Key.MODEL_SPEC}.n_jobs": every})


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """A row of ``profiles/remedies.yaml``: a change of plan fields, and when it is tried."""

    code: str
    title: str
    change: Mapping[str, object]
    caution: str = ""
    when: Mapping[str, Sequence[object]] = field(default_factory=dict)
    unless: Mapping[str, Sequence[object]] = field(default_factory=dict)
    models: Sequence[str] = ()
    native: str = ""
    emulated: str = ""
    short: bool = False

    def applies(self, case: EstimatedPlan) -> bool:
        """Whether it is tried for a plan."""
        plan, device = case.plan, case.resolved.cluster.device
        return (
            case.resolved.plan.task in self.when.get(Key.TASK, TRAINED)
            and all(plan.value(path) in values for path, values in self.when.items())
            and not any(plan.value(path) in values for path, values in self.unless.items())
            and (not self.models or case.resolved.family.kind in self.models)
            and (not self.native or device.native(self.native) == self.native)
            and (not self.emulated or device.native(self.emulated) != self.emulated)
            and (not self.short or case.estimate.verdict in (Verdict.TIGHT, Verdict.DOES_NOT_FIT))
        )


@cache
def remedy_rows() -> tuple[RemedyRow, ...]:
    """Return the changes of plan fields that are tried on the same hardware."""
    rows = parse_shipped("remedies.yaml")["remedies"]
    return tuple(RemedyRow(**row) for row in rows)


def _settings(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield the rows that apply."""
    for row in remedy_rows():
        if row.applies(case):
            change = named_change(row.change, case.plan.training.optimizer, case.catalog)
            if change is not None:
                yield Remedy(row.code, row.title, change, row.caution)


def _attention(case: EstimatedPlan) -> Iterator[Remedy]:
    if case.plan.training.attention == "eager":
        instead = attention_in_place_of("flash", case.resolved.cluster.device, case.catalog)
        kernel = "flash" if instead is None else instead.value
        if kernel != "eager":
            yield Remedy("fused_attention", "Use fused attention", {Key.TRAINING_ATTENTION: kernel})


def _batches(case: EstimatedPlan) -> Iterator[Remedy]:
    training = case.plan.training
    micro_batch, replicas = int(training.micro_batch), int(case.plan.parallelism.dp or 1)
    room = int(training.global_batch or 1) // replicas
    # Modes stop at the batches that every network learns with: beyond that it is for the user to say.
    beyond = case.resolved.shape is None
    sizes = tuple(micro_batch << power for power in range(1, 5 if beyond else 3))
    for size in sizes:
        if size <= room or not case.gives(Key.TRAINING_GLOBAL_BATCH):
            caution = OTHER_BATCH if size > room else ""
            change: dict[str, object] = {Key.TRAINING_MICRO_BATCH: size}
            if size > room and case.is_open(Key.TRAINING_GLOBAL_BATCH):
                change[Key.TRAINING_GLOBAL_BATCH] = size * replicas
            yield Remedy("micro_batch", f"Raise the micro-batch to {size}", change, caution, beyond)
    for size in (micro_batch >> power for power in range(1, micro_batch.bit_length())):
        yield Remedy("smaller_micro_batch", f"Lower the micro-batch to {size}", {Key.TRAINING_MICRO_BATCH: size})


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
            yield Remedy(code, f"{words[other]}: ZeRO {other}", {Key.PARALLELISM_ZERO: other})
    if int(parallel.tp or 1) > 1 and not parallel.sequence_parallel:
        change: Mapping[str, object] = {Key.PARALLELISM_SEQUENCE_PARALLEL: True}
        yield Remedy("sequence_parallel", "Split norms and dropout along the sequence", change)


def _layouts(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield neighbouring tensor- and pipeline-parallel sizes on the same devices, and other chunks of stages."""
    parallel, cluster, shape = case.plan.parallelism, case.resolved.cluster, case.resolved.shape
    if shape is None:
        return
    tensor, stages, devices = int(parallel.tp or 1), int(parallel.pp or 1), int(cluster.devices)
    inside, chunks = int(cluster.direct_devices), int(parallel.interleave)
    near = [(tensor // 2, stages), (tensor * 2, stages), (tensor // 2, stages * 2), (tensor * 2, stages // 2)]
    if tensor > inside:
        near.append((inside, stages * tensor // inside))
    layout = plan_layout(case.plan, shape, case.catalog)
    for size, pipeline in near:
        model = size * pipeline * int(parallel.cp)
        # Layouts that cannot be have no estimate; unequal stages have one that software may not reach.
        if not model or size > inside or devices % model or not EQUAL_STAGES.holds(replace(layout, pp=pipeline)):
            continue
        words = f"{devices // model} data-parallel replica{'' if devices == model else 's'}"
        change: dict[str, object] = {Key.PARALLELISM_TP: size, Key.PARALLELISM_PP: pipeline}
        yield Remedy("layout", f"Lay out as TP {size}, PP {pipeline}, {words}", change)
    most = min(-(-int(shape.layers) // stages), MOST_CHUNKS)
    for other in range(1, most + 1) if stages > 1 else ():
        if other != chunks and EQUAL_STAGES.holds(replace(layout, interleave=other)):
            title = f"Interleave {other} chunks a stage" if other > 1 else "Keep each stage in one chunk"
            yield Remedy("interleave", title, {Key.PARALLELISM_INTERLEAVE: other})


def _sequence(case: EstimatedPlan) -> Iterator[Remedy]:
    length = int(case.plan.training.seq_len)
    if case.violations and case.plan.task == "train" and length >= 2048:
        change: dict[str, object] = {Key.TRAINING_SEQ_LEN: length // 2}
        yield Remedy("sequence_length", f"Train on sequences of {length // 2} tokens", change, OTHER_DATA)


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
    yield from _settings(case)
    yield from _serving_layouts(case)


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
    if (formats.find(inference.kv_cache).bits_per_weight or 0.0) < FP16_BITS or case.resolved.shape is None:
        return
    if cache:
        yield Remedy("quantize_cache", f"Keep the KV cache in {cache}", {Key.INFERENCE_KV_CACHE: cache}, ROUNDS_MORE)


def _has_units(row: Quantization, device: Device) -> bool:
    """Whether a device multiplies in a format's own type; formats that are unpacked to 16 bits need none."""
    return not row.own_type or device.native(row.compute) == row.compute


def _serving_layouts(case: EstimatedPlan) -> Iterator[Remedy]:
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
