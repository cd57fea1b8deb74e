"""From a settled plan to the numbers of a serving run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from capacity_tui.engine.catalog import Catalog, Quantization, counted, format_in_name, named_release
from capacity_tui.engine.catalog.rows import OTHER, InferenceEngine, WeightKernel
from capacity_tui.engine.cluster import CLOCK_OF_POWER, Cluster, Device, boosted, processor_device
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.run import KernelRates, run_layout
from capacity_tui.engine.estimate.serving.run import (
    Guessing,
    Host,
    Reading,
    ServedAdapters,
    ServingNumerics,
    ServingRun,
    Traffic,
    on_host,
    passes_of_prompts,
    runtime,
)
from capacity_tui.engine.estimate.timing.roofline import attention_rates, fastest_kernel
from capacity_tui.engine.estimate.transformer.finetuning import EXPERTS_APART, EXPERTS_TOO, adapter_parameters
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import ParameterCounts, TransformerShape, count_parameters, generates
from capacity_tui.engine.numeric import Number, any_true, largest, present
from capacity_tui.engine.plan import UNQUANTIZED, Adapter, InferenceSection, ModelSection, Plan
from capacity_tui.engine.printable import printable
from capacity_tui.engine.units import BITS_PER_BYTE, FP16_BITS, FP32_BYTES, GIGA, MICRO, PERCENT

# The square of half the width of a uniform spread, over its variance.
UNIFORM = counted("uniform-square")

# The processor that runs what an accelerator does not hold, where the plan does not say which it is.
HOST_PROCESSOR = "cpu-8c-3.5ghz-baseline"


def engine_row(name: str, device: Device, catalog: Catalog) -> InferenceEngine:
    """Return the back end of an engine for a device; raises PlanError if the engine has none."""
    return choose_engine(catalog.engine_rows(name), name, vendor_of(device, catalog))


def vendor_of(device: Device, catalog: Catalog) -> str:
    """Return the maker of an accelerator, or ``CPU``."""
    return "CPU" if device.is_processor else catalog.accelerators[device.id].vendor


def choose_engine(rows: Iterable[InferenceEngine], name: str, vendor: str) -> InferenceEngine:
    """Return the row of an engine that fits a vendor best; raises PlanError where none runs on its devices."""
    rows = tuple(rows)
    fitting = [row for row in rows if vendor in (row.vendors or (vendor,))]
    if not fitting:
        makers = sorted({maker for row in rows for maker in row.vendors})
        where = f"{name} runs on devices of {', '.join(makers)}; this one is of {vendor}"
        place = Place(field=Key.INFERENCE_ENGINE)
        raise PlanError("this engine does not run on this hardware", where, "choose another engine", place)
    return max(fitting, key=lambda row: bool(row.vendors))


def kernel_id(engine: InferenceEngine, weights: Quantization, vendor: str = "", *, in_blocks: bool = False) -> str:
    """Return the row of kernels with which an engine reads a format of weights, ``in_blocks`` with scales of each."""
    own = f"{weights.id}-{vendor.lower()}"
    names = (*((f"{weights.id}-blocks",) if in_blocks else ()), own, weights.id, weights.family)
    return next((row for name in names if (row := engine.kernels.get(name))), engine.kernels["packed"])


def published_in_blocks(model: ModelSection, weights: Quantization, catalog: Catalog) -> bool:
    """Return whether a model of the catalogue is published in a format of narrow floats: its scales are of blocks."""
    row = None if model.config or model.spec else catalog.architectures.known(model.name)
    return weights.own_type and row is not None and row.weights == weights.id


def serving_run(plan: Plan, shape: TransformerShape, cluster: Cluster, catalog: Catalog) -> ServingRun:
    """Return the run of a settled plan."""
    inference, device = plan.inference, cluster.device
    _check_spread(inference, shape)
    quantization = catalog.quantizations.find(inference.weights_format)
    engine = engine_row(inference.engine, device, catalog)
    in_blocks = published_in_blocks(plan.model, quantization, catalog)
    kernel = catalog.weight_kernels[kernel_id(engine, quantization, vendor_of(device, catalog), in_blocks=in_blocks)]
    in_layers, in_head = readings(engine, quantization, kernel, catalog)
    counts = count_parameters(shape)
    body, embedding, head = _widths(quantization)
    exact = _exact(plan.model, quantization, counts, shape, (body, embedding, head), catalog)
    half = max(("fp16", "bf16"), key=device.peak)
    compute = quantization.compute if quantization.own_type and quantization.compute != "fp16" else half
    # Weights of four bytes come with activations of four bytes; everything narrower attends in 16 bits.
    attention = compute if catalog.precisions[compute].activation_bytes == FP32_BYTES else half
    efficiency = plan.hardware.efficiency
    peak, reach = _linear(device, compute, kernel, catalog)
    cached = catalog.quantizations.find(inference.kv_cache)
    return ServingRun(
        shape=shape,
        counts=counts,
        cluster=cluster,
        numerics=ServingNumerics(
            element_bytes=engine.activation_bytes,
            body_bytes=body * exact,
            embedding_bytes=embedding * exact,
            head_bytes=head * exact,
            cache_bytes=(cached.base_bits or cached.bits_per_weight or FP16_BITS) / BITS_PER_BYTE,
        ),
        layout=replace(run_layout(plan.parallelism, device), cp=1.0, zero=0.0),
        kernels=KernelRates(
            peak=peak,
            gemm_reach=reach if efficiency is None else efficiency,
            attention_peak=device.peak(attention),
            attention_reach=device.gemm_reach(attention),
            vector_peak=device.peaks.get("fp32", min(device.peaks.values())),
            attention=attention_rates(fastest_kernel(device, catalog), device, catalog),
            absorbed_reach=engine.absorbed_reach.get(device.efficiency.row, engine.absorbed_reach.get(OTHER, 0.0)),
        ),
        runtime=on_host(
            replace(
                runtime(engine, catalog, inference.gpu_memory_utilization),
                **passes_of_prompts(inference, engine, shape, device),
            ),
            plan.hardware.host_speed or cluster.host.core_speed,
        ),
        body=in_layers,
        head=in_head,
        host=_host(inference, plan.hardware.host or HOST_PROCESSOR, shape, device, catalog),
        prompt=float(inference.prompt_tokens),
        output=float(inference.output_tokens) if generates(shape) else 0.0,
        batch=float(inference.batch),
        calibration=f"{engine.name}: {engine.source} ({engine.confidence}); {device.efficiency.source}",
        assumed=(*cluster.assumed, *shape.assumed, *_assumed(plan, shape, device, catalog)),
        traffic=traffic_of(inference),
        guessing=Guessing(
            float(inference.num_speculative_tokens),
            inference.acceptance_rate,
            # A guess of a draft model takes the share of its weights at least.
            np.maximum(inference.draft_cost, (inference.draft_parameters or 0.0) / counts.active),
            float(inference.draft_parameters or 0.0) if inference.num_speculative_tokens else 0.0,
        ),
        adapters=ServedAdapters(
            float(inference.adapters), *adapter_parameters(shape, Adapter(rank=inference.adapter_rank))
        ),
    )


def traffic_of(inference: InferenceSection) -> Traffic:
    """Return how requests come, and how they differ."""
    percentile, longest = inference.percentile / PERCENT, float(inference.longest_output_tokens or 0)
    return Traffic(
        comes_singly=inference.is_load,
        arrives=inference.arrival_rate is not None,
        rate=float(inference.arrival_rate or 0.0),
        concurrency=np.inf if inference.requests_at_once is None else float(inference.requests_at_once),
        requests=np.inf if inference.requests is None else float(inference.requests),
        prompt_deviation=inference.prompt_tokens_stddev,
        output_deviation=inference.output_tokens_stddev or _deviation_below(longest, float(inference.output_tokens)),
        longest_output=longest or np.inf,
        cached=inference.prefix_cache_hit_rate,
        beyond=1.0 - percentile,
        deviations=NormalDist().inv_cdf(percentile),
    )


def _check_spread(inference: InferenceSection, shape: TransformerShape) -> None:
    """Check that lengths of at least one token, inside the model's context, can spread as the plan says.

    Bhatia and Davis 2000: between two ends a variance is at most (mean - least) · (most - mean).
    """
    context, answer = largest(shape.max_context) or np.inf, float(inference.output_tokens)
    if answer <= 1.0 < float(inference.longest_output_tokens or 0):
        place = Place(field=Key.INFERENCE_LONGEST_OUTPUT_TOKENS)
        raise PlanError("no answer is longer than 1 token where that is their mean", hint="give the mean", place=place)
    for section, mean, deviation in (
        (Key.INFERENCE_PROMPT_TOKENS_STDDEV, float(inference.prompt_tokens), inference.prompt_tokens_stddev),
        (Key.INFERENCE_OUTPUT_TOKENS_STDDEV, answer, inference.output_tokens_stddev),
    ):
        most = math.sqrt((mean - 1.0) * (context - mean)) if 1.0 < mean < context else 0.0 if mean <= 1.0 else np.inf
        if deviation > most:
            spread = f"{deviation:,.0f} tokens around a mean of {mean:,.0f}"
            ends = "of at least 1 token" if mean <= 1.0 else f"of 1 to {context:,.0f} tokens"
            hint = f"set it to {most:,.0f} at most, or give the mean of the lengths themselves"
            raise PlanError(f"no lengths {ends} spread so far", spread, hint, Place(field=section))


def _deviation_below(longest: float, mean: float) -> float:
    """Return the standard deviation of lengths as far below their mean as the longest lies above it, all alike."""
    return max(longest - mean, 0.0) / math.sqrt(UNIFORM)


def readings(
    engine: InferenceEngine, quantization: Quantization, kernel: WeightKernel, catalog: Catalog
) -> tuple[Reading, Reading]:
    """Return what an engine's kernels do with weights of a format, in the layers and in the output head."""
    plain = catalog.weight_kernels[engine.kernels["plain"]]
    packed = not quantization.own_type
    wide = _widths(quantization)[-1] * BITS_PER_BYTE >= FP16_BITS
    return reading(kernel, float(packed)), reading(plain if wide else kernel, float(packed and not wide))


def reading(kernel: WeightKernel, packed: float) -> Reading:
    """Return a row of kernels in bytes a second; ``packed`` is 1 where they unpack weights."""
    return Reading(
        bandwidth=kernel.bandwidth,
        matrix=kernel.matrix,
        grouped=kernel.grouped,
        unit_bandwidth=np.inf if kernel.unit_gbs is None else kernel.unit_gbs * GIGA,
        unpack_flops=kernel.unpack_flops * packed,
        unpack_rows=float(kernel.unpack_rows or np.inf) if packed else np.inf,
        half_rows=kernel.half_rows,
        launches=kernel.launches,
    )


def _linear(device: Device, compute: str, kernel: WeightKernel, catalog: Catalog) -> tuple[float, float]:
    """Return the dense peak of the linear layers, and the share of it that large products sustain.

    GeForce parts double the peak where kernels accumulate in 16 bits, which takes more power.
    """
    if kernel.fp32_rate is not None:
        return device.peak("fp32") * kernel.fp32_rate, device.gemm_reach("fp32")
    peak, reach = device.peak(compute), device.gemm_reach(compute)
    makers = kernel.half_accumulation_vendors
    if kernel.half_accumulation is None or vendor_of(device, catalog) not in makers or "bf16" not in device.peaks:
        return peak, reach
    half = kernel.half_accumulation * device.peak("fp32")
    if compute != "fp16" or half <= peak:
        return peak, reach
    known = device.efficiency
    room = known.power_room * (peak / half) ** CLOCK_OF_POWER
    return half, reach * boosted(room, known.boost) / boosted(known.power_room, known.boost)


def _assumed(plan: Plan, shape: TransformerShape, device: Device, catalog: Catalog) -> Iterator[str]:
    """Say which choices were made for the plan."""
    name, _ = named_release(plan.inference.engine)
    if catalog.engines.find_id(name) is None:
        yield f"engine {printable(name)}: not known, counted as the average of serving software"
    elif not catalog.names_release(plan.inference.engine):
        yield f"{plan.inference.engine}: current release assumed"
    if plan.inference.draft_parameters is not None and plan.inference.num_speculative_tokens:
        yield "draft model in 16 bits; its keys and values are not counted"
    if plan.inference.adapters:
        yield f"adapters of rank {plan.inference.adapter_rank} beside all matrices, in 16 bits"
        if any_true(shape.experts > 0):
            yield EXPERTS_APART if shape.fused_experts else EXPERTS_TOO
    host = _host(plan.inference, HOST_PROCESSOR, shape, device, catalog)
    if plan.hardware.host is None and any_true((host.share > 0) | (host.experts > 0)):
        yield f"processor beside the accelerator: {catalog.processors[HOST_PROCESSOR].name}"


def _widths(quantization: Quantization) -> tuple[float, float, float]:
    """Return the bytes of a weight in the layers, the embedding and the head."""
    average = quantization.bits_per_weight or FP16_BITS
    body = quantization.body_bits or average
    return (
        body / BITS_PER_BYTE,
        (quantization.embedding_bits or body) / BITS_PER_BYTE,
        (quantization.output_bits or body) / BITS_PER_BYTE,
    )


def stored_bytes(counts: ParameterCounts, shape: TransformerShape, widths: tuple[float, float, float]) -> Number:
    """Bytes of all weights of a model: layers, embedding and head each in its own format."""
    body, embedding, head = widths
    entry = counts.token_embedding + counts.position_embedding
    rest = counts.total - entry - counts.head
    return rest * body + entry * (head if shape.tied_embeddings else embedding) + counts.head * head


def _exact(
    model: ModelSection,
    quantization: Quantization,
    counts: ParameterCounts,
    shape: TransformerShape,
    widths: tuple[float, float, float],
    catalog: Catalog,
) -> Number:
    """Return the published bytes over those the format's bits give; 1 where none are known of this format."""
    name: str | None
    if model.config is not None:
        from capacity_tui.engine.models import read_model_file  # noqa: PLC0415 - few plans have such a file

        stored = read_model_file(model.config)
        name, published = stored.weights or quantization.id, stored.weight_bytes
    else:
        row = None if model.spec else catalog.architectures.known(model.name)
        name, published = (None, None) if row is None else (row.weights, row.weight_bytes)
    return published / stored_bytes(counts, shape, widths) if published and name == quantization.id else 1.0


def _host(inference: InferenceSection, name: str, shape: TransformerShape, device: Device, catalog: Catalog) -> Host:
    """Return the processor of a name, which runs the layers and the experts that an accelerator does not hold.

    Both are of the first layers, as llama.cpp counts them, so that experts of layers on the host are there already.
    """
    processor = processor_device(catalog.processors.find(name), catalog)
    layers, experts = inference.gpu_layers, float(inference.host_expert_layers or 0) * device.has_own_memory
    held = shape.layers if layers is None or device.is_processor else np.minimum(layers, shape.layers)
    apart = np.clip(experts - (shape.layers - held), 0.0, held) * present(shape.experts)
    return Host(
        share=1.0 - held / shape.layers,
        experts=apart / np.maximum(held, 1.0),
        rate=processor.peak("fp32") * processor.gemm_reach("fp32"),
        bandwidth=processor.bandwidth * processor.efficiency.stream,
        expert_start=catalog.coefficients["expert-start"].value * MICRO,
    )


def released_format(model: ModelSection, catalog: Catalog) -> tuple[str, str]:
    """Return the format of a model's published weights, and where it comes from; the latter empty for 16 bits.

    A file says it itself, a name of a model hub by its words, as ``Llama-3.3-70B-Instruct-AWQ``; else the catalogue.
    """
    if model.config is not None:
        from capacity_tui.engine.models import read_model_file  # noqa: PLC0415 - few plans have such a file

        stored = read_model_file(model.config).weights
        return (stored, "as stored in the file") if stored else (UNQUANTIZED, "")
    name = model.name or ""
    named = format_in_name(name)
    if named is not None:
        return named, f"as {printable(name)} says"
    row = catalog.architectures.known(name)
    return (UNQUANTIZED, "") if row is None or row.weights is None else (row.weights, f"as {row.id} is released")


def served_weights(plan: Plan, device: Device, catalog: Catalog) -> tuple[str, str]:
    """Return the format in which a plan serves its weights, and why; the reason is empty where nothing is assumed.

    What the catalogue says is published, and the engine cannot read on the device, is taken as converted to 16 bits.

    Args:
        plan: the plan, whose weights may be open.
    """
    if plan.inference.weights is not None:
        return plan.inference.weights, ""
    name, why = released_format(plan.model, catalog)
    row = catalog.quantizations.find(name)
    is_chosen = plan.model.config is not None or format_in_name(plan.model.name or "") is not None
    unread = "" if is_chosen or not why else why_not_read(row, plan.inference.engine, device, catalog)
    if unread:
        return UNQUANTIZED, f"weights in {UNQUANTIZED}: released in {row.name}, and {unread}"
    return name, f"weights in {row.name}: {why}" if why else ""


def why_not_read(weights: Quantization, engine: str, device: Device, catalog: Catalog) -> str:
    """Return why an engine cannot read a format of weights on a device; empty where it can, or nothing is known."""
    # Engines go by other names too.
    row_of_engine = catalog.engines.known(named_release(engine)[0])
    known = engine if row_of_engine is None else row_of_engine.engine
    if weights.engines and known not in weights.engines:
        return f"{engine} does not read it; these do: {', '.join(weights.engines)}"
    row = catalog.accelerators.get(device.id)
    least, capability = weights.min_compute_capability, "" if row is None else row.compute_capability or ""
    # Only versions can be compared: the names of other vendors' targets have no order.
    if least is None or not re.fullmatch(r"\d+\.\d+", capability) or float(capability) >= least:
        return ""
    return f"its kernels need compute capability {least}, {device.name} has {capability}"
