"""Rows about what software reaches: efficiency of hardware generations, what all share, training frameworks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import CHECKS, SHOWN, Row
from capacity_tui.engine.errors import CatalogError

Share = Annotated[float, Field(gt=0, le=1.5)]
Part = Annotated[float, Field(ge=0, le=1)]
Flag = Annotated[int, Field(ge=0, le=1)]
Split = Literal["tp", "pp", "cp", "ep"]  # tensor, pipeline, context and expert parallel


class Efficiency(Row):
    """How much of the datasheet a hardware generation reaches."""

    generations: tuple[str, ...] = Field(description="catalogue generations the row covers")
    gemm: dict[str, Share] = Field(description="share of dense peak of large matrix products, by type")
    matrix_watts: NonNegativeFloat = Field(
        0.0, description="power limit over the 16-bit peak of the part that was measured, W for a TFLOP/s; 0: no say"
    )
    boost: PositiveFloat = Field(1.0, description="highest clock over the one that peaks state")
    grouped: Share = Field(1.0, description="rate of experts' products side by side over large products")
    sustained: Share = Field(description="share of that left when training runs without pause")
    wave_fill: NonNegativeFloat = Field(description="waves of output tiles lost to a partly filled one")
    ramp_length: NonNegativeFloat = Field(description="inner length at which a 2-byte product reaches half its rate")
    misaligned: Share = Field(description="share of the rate left off multiples of 64 elements")
    unaligned: Share = Field(description="share of the rate left off multiples of 8 elements")
    exponential_flops: PositiveFloat = Field(
        128.0, description="16-bit FLOPs of the matrix units in the time of one exponential"
    )
    gather_tflops: NonNegativeFloat = Field(
        0.0, description="rate for which a processor gathers the operands of a convolution, of 2 bytes; 0: any"
    )
    convolutions: PositiveFloat = Field(1.0, description="rate of convolutions over that of matrix products")
    attention_unfused: Share = Field(description="rate of separate score products over large products")
    emulated: dict[str, Share] = Field(
        {}, description="rate of 16-bit products without units over that of the type that has them, by vector units"
    )
    stream: Share = Field(description="share of memory bandwidth of large copies")
    elementwise: Share = Field(description="share of memory bandwidth of norms and activations")
    launch_us: PositiveFloat = Field(description="fixed time of a kernel, microseconds")
    collective_share: Share = Field(description="share of the link's bandwidth of large collectives")
    switch_reduction: PositiveFloat = Field(description="gain of an all-reduce where the switch adds")
    collective_half_mib: PositiveFloat = Field(description="payload at which protocols change, MiB")
    network_share: Share = Field(description="share of the network's bandwidth of large collectives")
    full_mesh: bool = Field(False, description="every pair of devices in a node has a link of its own")
    collective_hop_us: PositiveFloat = Field(description="one step of a collective in a node, microseconds")
    communicator_mib: PositiveFloat = Field(description="buffers of one group of ranks, MiB")
    context_mib: PositiveFloat = Field(description="driver context outside the allocator, MiB")
    idle_share: Share = Field(description="idle power over the power limit")


class Released(Row):
    """Software of which releases differ: a row for each span of them; one row stands for all where no span is given."""

    like: Annotated[str | None, SHOWN] = Field(None, description="row that holds what this one does not give")
    first_release: str | None = Field(None, description="first release that the row stands for")
    last_release: str | None = Field(None, description="last release that it stands for, or the newest that is known")
    since: str | None = Field(None, description="year and month of the first release, such as 2025.03")
    until: str | None = Field(None, description="year and month of the release that came after the last; none: current")


class Coefficient(Row):
    """A number of the time and power model that holds for all hardware and software."""

    value: NonNegativeFloat
    unit: Annotated[str, CHECKS] = Field("", description="of the value, empty for a pure number")


class Framework(Released):
    """What training software does with memory, kernels and overlap."""

    release_of: str | None = Field(None, description="row of the current release, where this one is of older ones")
    launcher: Literal["torchrun", "queue"] = Field(
        "torchrun", description="who starts the processes of a node's devices: torchrun, or whatever queues jobs"
    )
    zero: int = Field(ge=0, le=3, description="sharding stage where the plan names none")
    stages: tuple[int, ...] = Field((0, 1, 2, 3), description="sharding stages that it has")
    splits: tuple[Split, ...] = Field(get_args(Split), description="how it splits a model, beside replicas")
    adapter_splits: tuple[Split, ...] = Field(get_args(Split), description="the same where adapters are trained")
    recomputes: tuple[str, ...] = Field((), description="rows of checkpointing.yaml that it has; all where empty")
    fp32_parameters: Flag = Field(description="1: parameters live in fp32")
    gradients: str = Field(description="type of kept gradients where the plan names none")
    attention: tuple[str, ...] = Field(
        (), description="kernels of attention it uses, the ones it prefers first; those of unnamed software where empty"
    )
    elementwise_passes: PositiveFloat = Field(description="memory passes relative to one kernel an operation")
    compiled_passes: Share = Field(description="share of these passes left with a graph compiler")
    moe_passes: PositiveFloat = Field(description="memory passes of sorting and unsorting routed tokens")
    saved_activation: tuple[PositiveFloat, PositiveFloat] = Field(
        description="feed-forward activations kept, in widths of the feed-forward, gated and plain"
    )
    saved_by_class: dict[str, PositiveFloat] = Field(
        {}, description="the same of models that compute the activation in a way of their own, by class, uncompiled"
    )
    saved_norm: tuple[NonNegativeFloat, NonNegativeFloat] = Field(
        description="elements norms and residuals keep, in widths of the model, unfused and fused"
    )
    keeps_factors: Flag = Field(
        0, description="1: factors of products are kept for backward, whether it needs them or not"
    )
    saved_routed: PositiveFloat = Field(2.0, description="hidden states kept of a token at each of its experts")
    narrow_inputs: Flag = Field(0, description="1: inputs of matrices are kept in the type of their products")
    adapter_copies: NonNegativeFloat = Field(description="copies of its input an adapter with dropout keeps")
    separate_adapters: Flag = Field(
        0, description="1: adapters of queries, keys and values keep a copy of their input each; 0: one for all"
    )
    process_mib: NonNegativeFloat = Field(
        0.0, description="memory of a process on a processor with its libraries, beyond that of the tensor library, MiB"
    )
    fp32_adapters: Flag = Field(0, description="1: adapters are kept in fp32 beside a 16-bit base")
    fp32_norms: tuple[str, ...] = Field(
        (), description="formats of a base whose norms are cast to fp32, unless it is sharded"
    )
    frozen_units: Flag = Field(
        0, description="1: sharded units without trained weights keep inputs and gradients for all the backward pass"
    )
    quantized_copies: NonNegativeFloat = Field(description="copies kept of what quantized matrices put out")
    gradient_copies: Part = Field(description="1: low-precision gradients stay beside fp32 ones")
    gradient_buffer: Flag = Field(description="1: gradients have a buffer that stays between steps")
    whole_accumulation: Flag = Field(0, description="1: sharded gradients are whole to the last micro-batch")
    flat_gradients: Part = Field(description="1: the optimizer's fp32 gradients are one flat buffer")
    bucket_mib: NonNegativeFloat = Field(description="buckets gradients and parameters pass through, MiB")
    fixed_bucket_mib: NonNegativeFloat = Field(
        0.0, description="what of them there is however small the model is, where all of it is trained, MiB"
    )
    narrow_weights: NonNegativeFloat = Field(
        0.0, description="copies of a weight kept in the type of its products, beside it, where that is narrower"
    )
    fp8_weights: Flag = Field(0, description="1: these are the only ones, where the plan says nothing")
    stage_outputs: Part = Field(description="1: pipeline stages keep their outputs too")
    balanced_stages: Flag = Field(
        0, description="1: pipeline stages hold the same work, with the head as work; 0: the same layers"
    )
    stage_stall_us: NonNegativeFloat = Field(
        0.0, description="wait of a stage for one message of another, microseconds"
    )
    stage_gather: Part = Field(description="1: sharded pipeline stages stay whole between micro-batches")
    gathered_inputs: Part = Field(description="1: inputs gathered for tensor-parallel products are kept")
    model_groups: Flag = Field(
        0, description="1: ranks of a model have groups for the norm of gradients and for tied embeddings"
    )
    whole_offload: Flag = Field(0, description="1: parameters are offloaded with the optimizer")
    loads_whole: Part = Field(description="1: every device reads the whole checkpoint first")
    loss: Literal["standard", "kernel", "chunked", "fused"] = Field(
        "standard", description="loss where the plan names none"
    )
    logit_bytes: PositiveFloat = Field(description="peak bytes for one logit")
    sharded_logit_bytes: NonNegativeFloat = Field(
        0.0, description="the same where the vocabulary is split; 0: as for one device"
    )
    logit_upcast: Flag = Field(1, description="0: the loss of a model in 16 bits stays in 16 bits")
    hub_models: Flag = Field(
        0, description="1: it runs models of a hub as they stand, some of which do not cast their logits"
    )
    compiled_loss: Flag = Field(0, description="1: a graph compiler takes the loss along")
    group_parameters: NonNegativeFloat = Field(
        0.0, description="parameters that ZeRO-3 gathers, and updates, at a time"
    )
    tp_stall_us: NonNegativeFloat = Field(description="wait of ranks at one tensor-parallel collective, microseconds")
    tp_overlap: Part = Field(description="hidden share of tensor-parallel communication")
    dp_overlap: Part = Field(description="hidden share of data-parallel communication")
    prefetches_parameters: Flag = Field(
        0, description="1: updated parameters are gathered behind the next forward pass"
    )
    broadcasts_parameters: Flag = Field(
        0, description="1: sharded optimizers own whole tensors, which each rank broadcasts in turn"
    )
    ep_overlap: Part = Field(description="hidden share of the exchange between experts")
    fused_kernels: Part = Field(
        0.0, description="share of norms, rotary positions and gates that run as one kernel each"
    )
    gather_launches: NonNegativeFloat = Field(
        0.0, description="host time to gather and free a sharded matrix in one pass, in launches"
    )
    moe_launches: NonNegativeFloat = Field(description="further kernels of a mixture layer's routing")
    expert_launches: NonNegativeFloat = Field(description="further kernels for each expert on the device")
    convolution_share: Share = Field(
        1.0, description="rate of its convolutions over that of the libraries of PyTorch since 1.1"
    )
    launch_us: PositiveFloat = Field(description="host time of one launch, microseconds")
    fused_optimizer: Flag = Field(0, description="1: the optimizer updates a parameter in one kernel")
    fused_on_processor: Flag = Field(0, description="1: it does so on a processor")
    host_seconds_per_step: NonNegativeFloat = Field(description="fixed time of a step, seconds")
    caching_allocator: Flag = Field(
        1, description="0: memory is planned or allocated once; 1: freed blocks wait for their next use"
    )
    fragmentation: NonNegativeFloat = Field(description="allocator's surplus over its peak, share")


Ratio = Annotated[float, Field(gt=0, le=2.5)]
MemoryPolicy = Literal["needed", "share", "free"]


class InferenceEngine(Released):
    """What an inference engine does with kernels, bandwidth and memory; one row a back end."""

    engine: str = Field(description="name in plan files")
    vendors: tuple[str, ...] = Field((), description="makers of devices the row is for; the rest where empty")
    kernels: Mapping[str, str] = Field(
        description="kernels that read each format or family of formats of weights: plain, and packed for all others"
    )
    kernels_per_layer: PositiveFloat = Field(description="kernels of one layer's forward pass")
    expert_kernels: NonNegativeFloat = Field(
        0.0, description="kernels of each expert of a layer, active or not, 0 where products of experts are grouped"
    )
    mixture_kernels: NonNegativeFloat = Field(
        0.0, description="kernels that choose experts, sort tokens and bring them back, beyond those of a dense layer"
    )
    mixture_passes: NonNegativeFloat = Field(
        0.0, description="memory passes of sorting routed tokens and bringing them back"
    )
    mixture_bandwidth: Share = Field(
        1.0, description="share of the bandwidth of dense products at which weights of grouped experts are read"
    )
    expert_tile: PositiveInt | None = Field(
        None, description="rows of a tile of grouped products, where kernels have smaller ones than those of vendors"
    )
    computes_all_experts: bool = Field(
        False, description="every expert multiplies every token: shapes stay static, results are masked"
    )
    kernel_gap: NonNegativeFloat = Field(description="idle time between kernels, in launch times of the device")
    host_us: NonNegativeFloat = Field(description="host time of one launch, microseconds; 0 in a captured graph")
    step_us: NonNegativeFloat = Field(description="fixed time of a forward pass: scheduling, sampling, microseconds")
    sequence_us: NonNegativeFloat = Field(
        0.0, description="host time of a forward pass for each sequence in it, microseconds"
    )
    stream_us: NonNegativeFloat = Field(
        0.0, description="host time of a token that is sent to its client by the process that schedules, microseconds"
    )
    sequence_overlap: Part = Field(0.0, description="share of a pass on the device in which that is done")
    scheduled_passes: PositiveInt = Field(1, description="passes of answers that the host schedules at once")
    oldest_rate: Share = Field(
        1.0, description="rate of the slowest of eight in ten older releases in use, of that of the current one"
    )
    request_us: NonNegativeFloat = Field(
        0.0, description="host time of a request beside its passes, from its arrival to its first text, microseconds"
    )
    eager_us: NonNegativeFloat = Field(
        0.0, description="host time of one launch where a pass has no captured graph, microseconds"
    )
    align_us: NonNegativeFloat = Field(
        0.0, description="device time of a mixture layer for each expert while one block sorts its tokens, microseconds"
    )
    captured_context: PositiveInt | None = Field(
        None, description="tokens of a sequence up to which decode runs in a captured graph; none sets no end"
    )
    cache_bandwidth: Ratio = Field(description="share of reachable bandwidth, reading keys and values")
    cache_unpack_flops: NonNegativeFloat = Field(
        0.0, description="operations at the fp32 peak for a cached number and each head that reads it; 0: matrix units"
    )
    cache_copies: NonNegativeFloat = Field(
        0.0, description="passes over the whole cache that a step makes to append to it, reads and writes"
    )
    repeats_heads: bool = Field(False, description="keys and values are written out for every head of queries first")
    block_per_head: bool = Field(False, description="one multiprocessor attends for a head, however long the context")
    attention_prefill: Ratio = Field(description="share of the reachable rate of fused attention")
    absorbed_reach: dict[str, Share] = Field({}, description="share of dense peak where prompts use compressed keys")
    score_passes: NonNegativeFloat = Field(0.0, description="memory passes over stored attention scores, 0 where fused")
    elementwise_passes: PositiveFloat = Field(description="memory passes relative to one kernel an operation")
    chunk_tokens: PositiveInt | None = Field(None, description="most tokens of one forward pass in prefill")
    server_chunk_tokens: PositiveInt | None = Field(None, description="of its server on smaller devices, else the same")
    large_mib: PositiveInt | None = Field(None, description="memory from which a device is none of the smaller, MiB")
    small_devices: tuple[str, ...] = Field((), description="words in names of devices that are, whatever their memory")
    slots: PositiveInt | None = Field(None, description="requests it takes up at once by default; none sets no end")
    mixes_prefill: bool = Field(False, description="a pass holds chunks of prompts beside the next tokens of others")
    mixing_context: PositiveInt | None = Field(
        None, description="context of a model beyond which one does, where others do not and nothing is said"
    )
    mixing_tokens: PositiveInt | None = Field(None, description="most tokens of such a pass, where others do not")
    stage_us: NonNegativeFloat = Field(description="time to hand over to the next pipeline stage, microseconds")
    stage_overlap: Part = Field(0.0, description="share of prefill in which stages work side by side")
    activation_bytes: PositiveFloat = Field(description="of one element of the residual stream")
    logit_rows: NonNegativeFloat = Field(0.0, description="prompt positions that get logits: 0 the last, 1 all")
    block_tokens: PositiveInt = Field(description="tokens in one block of the cache")
    reserved_output: Part = Field(
        1.0, description="share of an answer for which the cache has room before its request runs"
    )
    memory_policy: MemoryPolicy = Field(
        description="device memory it takes: what it needs, a share of all, a share of the free"
    )
    whole_heads: bool = Field(True, description="tensor parallelism splits between heads, and has to divide them")
    splits_layers: bool = Field(
        True, description="it splits layers over devices where nothing is said; else they hold whole layers each"
    )
    workspace_mib: NonNegativeFloat = Field(description="kernel workspaces and captured graphs, MiB")
    process_mib: NonNegativeFloat = Field(0.0, description="its process on a processor, MiB; 0: that of PyTorch")
    fragmentation: NonNegativeFloat = Field(description="allocator's surplus over its peak, share")
    lighter_weights: tuple[str, ...] = Field((), description="weight formats to advise, the least quantized first")
    lighter_cache: str | None = Field(None, description="cache format to advise in place of 16 bits")
    tried_weights: tuple[str, ...] = Field((), description="weight formats modes choose from, likewise")
    faster_engine: str | None = Field(None, description="engine to advise on accelerators in its place")
    embedding_on_host: bool = Field(False, description="the token embedding stays in host memory")


class WeightKernel(Row):
    """Kernels of matrix products with weights of some formats; engines name theirs for each format."""

    like: Annotated[str | None, SHOWN] = Field(None, description="row that holds what this one does not give")
    bandwidth: Ratio = Field(description="share of reachable bandwidth at which weights are read")
    matrix: Ratio = Field(description="share of the reachable matrix rate, for many rows")
    unit_gbs: PositiveFloat | None = Field(None, description="most that one unit of the device streams, GB/s")
    unpack_flops: NonNegativeFloat = Field(0.0, description="operations that unpack one weight, at the fp32 peak")
    unpack_rows: PositiveInt | None = Field(None, description="rows from which weights are unpacked to memory first")
    grouped: Ratio = Field(1.0, description="rate of the products of experts over that of others")
    half_rows: NonNegativeFloat = Field(0.0, description="rows at which half of the matrix rate is reached")
    launches: NonNegativeFloat = Field(0.0, description="further launches of each product")
    fp32_rate: PositiveFloat | None = Field(None, description="peak over fp32's, of products in vector units")
    half_accumulation: PositiveFloat | None = Field(
        None, description="tensor rate with 16-bit accumulation over the fp32 vector rate, where it is used"
    )
    half_accumulation_vendors: tuple[str, ...] = Field((), description="makers of devices that have that rate")


OTHER = "other"  # Entry of unmeasured software


class AttentionKernel(Row):
    """What a kernel of attention reaches, by row of efficiency.yaml; ``other`` holds for rows without an entry."""

    generations: tuple[str, ...] = Field((), description="rows of efficiency.yaml that have it; all where empty")
    fused: Flag = Field(description="1: scores are never stored")
    reach: dict[str, Share] = Field({}, description="share of dense peak of its products, at unlimited length")
    backward_reach: dict[str, Share] = Field({}, description="the same in the backward pass")
    exposed: dict[str, NonNegativeFloat] = Field({}, description="share of exponentials that products do not hide")
    half_length: dict[str, PositiveFloat] = Field({}, description="tokens at which half of the rate is reached")
    backward_half_length: dict[str, PositiveFloat] = Field({}, description="the same in the backward pass")

    def runs_on(self, efficiency: str) -> bool:
        """Return whether devices of a row of efficiency.yaml have the kernel."""
        return not self.generations or efficiency in self.generations


ReleasedT = TypeVar("ReleasedT", bound=Released)
SEPARATOR = "=="  # Stands between a name and its release, as in requirements of Python packages

# "0.7.3", "v0.8.5.post1", "core_r0.12.0", llama.cpp's "b5600"; what follows the numbers is not compared.
_NUMBERS = re.compile(r"(?:core_)?[a-z]?(\d+(?:\.\d+)*)", re.IGNORECASE)

_FIRST_YEAR = 2000


def named_release(name: str) -> tuple[str, str]:
    """Return the software and the release of a name; the release is empty where it gives none."""
    software, _, release = name.partition(SEPARATOR)
    return software.strip(), release.strip()


def release_numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, or of its year and month; nothing where it has none."""
    match = _NUMBERS.match(release)
    return tuple(int(number) for number in match[1].split(".")) if match else ()


def covers(row: Released, release: str) -> bool:
    """Return whether a row stands for a release."""
    numbers = release_numbers(release)
    if not numbers:
        return False
    if numbers[0] >= _FIRST_YEAR and len(numbers) > 1:
        month = numbers[:2]
        return (row.since is None or month >= release_numbers(row.since)) and (
            row.until is None or month < release_numbers(row.until)
        )
    first, last = (release_numbers(end or "") for end in (row.first_release, row.last_release))
    # 0.8 is 0.8.0.
    numbers += (0,) * (max(len(first), len(last)) - len(numbers))
    return numbers[: len(first)] >= first and (not last or numbers[: len(last)] <= last)


def rows_of_release(rows: Iterable[ReleasedT], name: str, release: str) -> Sequence[ReleasedT]:
    """Return the rows that stand for a release of some software; raises CatalogError where none does."""
    rows = tuple(rows)
    fitting = [row for row in rows if covers(row, release)]
    if not fitting:
        known = dict.fromkeys(f"{row.id}: {text}" for row in rows if (text := release_text(row)))
        hint = f"known: {'; '.join(known)}; or leave the release out for the current one"
        raise CatalogError(f"no release of {name} is called {release!r}"[:200], hint=hint)
    return fitting


def release_text(row: Released) -> str:
    """Return the releases that a row stands for, in words; empty where it stands for all."""
    ends = (("from", row.first_release), ("to", row.last_release), ("since", row.since), ("before", row.until))
    return " ".join(f"{word} {end}" for word, end in ends if end)
