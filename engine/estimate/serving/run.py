"""A batch of requests reduced to numbers: what memory and speed formulas read, and what an engine does on a device."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import MIB, InferenceEngine
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.run import KernelRates, RunLayout, numbers_of
from capacity_tui.engine.estimate.timing.roofline import TILE_ROWS
from capacity_tui.engine.models.transformer import ParameterCounts, TransformerShape
from capacity_tui.engine.numeric import Number, any_true, largest, where
from capacity_tui.engine.plan import InferenceSection
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """How the requests of all replicas come, and how they differ; what one replica sees is in the run."""

    comes_singly: bool = False  # whether requests come one by one, in place of one batch that starts together
    arrives: bool = False  # whether they come of themselves, rather than the next one when one is answered
    rate: Number = 0.0  # requests that arrive in a second, where they do
    # most requests at work at once, waiting ones included; infinite where any number may wait
    concurrency: Number = np.inf
    requests: Number = np.inf  # of the load in all, after which it ends; infinite where it goes on
    prompt_deviation: Number = 0.0  # standard deviation of a prompt's tokens
    output_deviation: Number = 0.0  # the same of an answer's
    longest_output: Number = np.inf  # most tokens of an answer
    cached: Number = 0.0  # share of a prompt whose keys and values are in the cache already
    beyond: Number = 0.5  # share of the requests that take longer than the percentile given
    deviations: Number = 0.0  # standard deviations that a normal distribution has its percentile above the mean


@dataclass(frozen=True, slots=True)
class Guessing:
    """Speculative decoding: a draft guesses tokens that one pass of the model checks."""

    tokens: Number = 0.0  # guessed ahead of a pass; 0 where nothing is guessed
    acceptance: Number = 0.0  # share of them that the model accepts, each for itself
    draft_cost: Number = 0.0  # time of one guess over that of a pass of the model
    draft_parameters: Number = 0.0  # of a model that guesses; 0 where none does

    @property
    def drafts(self) -> Number:
        """Time of the draft for one pass, in passes of the model."""
        return self.tokens * self.draft_cost


@equation
def accepted_tokens(guesses: Number, acceptance: Number) -> Number:
    """Tokens a sequence gets from one pass, the mean."""
    refused = np.maximum(1.0 - acceptance, np.finfo(float).tiny)
    return np.where(acceptance >= 1.0, guesses + 1.0, (1.0 - acceptance ** (guesses + 1.0)) / refused)


longest_output = formula()  # Tokens of the longest answer of a batch, until which the batch drains
mean_decode_context = formula()  # Tokens in the cache of a sequence, the mean over its decode steps


@dataclass(frozen=True, slots=True)
class ServedAdapters:
    """Adapters beside the model, of which each request has chosen one."""

    number: Number = 0.0  # that lie on the device
    parameters: Number = 0.0  # of one of them, in all layers, beside what every token passes
    experts: Number = 0.0  # of one of them, beside routed experts


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the inference engine does; see profiles/engines.yaml for each meaning. Seconds, bytes, B/s.

    ``chunk_tokens`` of 0 means the whole prompt at once. ``claim`` is the share of device memory the engine takes for
    itself, 0 for only what it needs; with ``claims_free`` it is a share of what weights and workspace leave free.
    ``reserved_output`` is the share of an answer for which the cache has to have room before its request runs.
    ``slots`` are the requests it takes up at once where nothing is said. ``captured_context`` is infinite where decode
    runs in captured graphs however long a sequence is.
    """

    kernels_per_layer: Number
    expert_kernels: Number
    mixture_kernels: Number
    mixture_passes: Number
    mixture_bandwidth: Number
    expert_tile: Number
    expert_spread: Number
    replicas_apart: Number
    kernel_gap: Number
    host_seconds: Number
    step_seconds: Number
    sequence_seconds: Number
    stream_seconds: Number
    sequence_overlap: Number
    scheduled_passes: Number
    request_seconds: Number
    eager_seconds: Number
    align_seconds: Number
    captured_context: Number
    cache_bandwidth: Number
    cache_unpack_flops: Number
    cache_copies: Number
    repeats_heads: Number
    computes_all_experts: Number
    block_per_head: Number
    attention_prefill: Number
    score_passes: Number
    elementwise_passes: Number
    chunk_tokens: Number
    mixes_prefill: Number
    stage_seconds: Number
    stage_overlap: Number
    logit_rows: Number
    block_tokens: Number
    reserved_output: Number
    workspace_bytes: Number
    process_bytes: Number
    fragmentation: Number
    embedding_on_host: Number
    claim: Number
    claims_free: Number
    slots: Number


@dataclass(frozen=True, slots=True)
class Reading:
    """What kernels that multiply with stored weights do; see profiles/weight_kernels.yaml. B/s.

    Infinite ``unpack_rows`` mean that weights are always unpacked inside the product.
    """

    bandwidth: Number
    matrix: Number
    grouped: Number
    unit_bandwidth: Number
    unpack_flops: Number
    unpack_rows: Number
    half_rows: Number
    launches: Number


@dataclass(frozen=True, slots=True)
class Host:
    """The processor beside an accelerator that runs the layers and the routed experts it does not hold."""

    share: Number  # of the layers, 0 to 1
    experts: Number  # share of the layers on the accelerator whose routed experts lie in host memory
    rate: Number  # FLOP/s its matrix products reach
    bandwidth: Number  # B/s it reaches in its memory
    expert_start: Number  # seconds in which its threads start and join at each matrix of an expert


@dataclass(frozen=True, slots=True)
class ServingNumerics:
    """Bytes of numbers in serving."""

    element_bytes: Number  # an activation
    body_bytes: Number  # a weight in the layers' matrices
    embedding_bytes: Number  # a weight of the token embedding
    head_bytes: Number  # a weight of the output head, or of an embedding that is also the head
    cache_bytes: Number  # an element of the key-value cache


@dataclass(frozen=True, slots=True)
class ServingRun:
    """One batch of requests on one replica. Every number, nested ones too, may be an array; all broadcast together."""

    shape: TransformerShape  # sizes of the model
    counts: ParameterCounts  # its parameters by part
    cluster: Cluster  # what it runs on
    numerics: ServingNumerics  # bytes of its numbers
    layout: RunLayout  # how the replicas are spread over the devices
    runtime: Runtime  # what the engine does
    # what the device's kernels reach; ``attention`` over prompts, ``attention_reach`` on single rows
    kernels: KernelRates
    body: Reading  # what its kernels do with the weights of layers
    head: Reading  # what its kernels do with the weights of the output head
    host: Host  # the processor that runs the rest of a partly offloaded model
    prompt: Number  # tokens of a prompt
    output: Number  # tokens to generate, 0 for models that generate none
    batch: Number  # sequences served side by side by one replica; under a load those at work at once, the mean
    calibration: str  # which measured constants went in
    assumed: tuple[str, ...]  # what was not given
    traffic: Traffic = field(default_factory=Traffic)  # how requests come, and how they differ
    guessing: Guessing = field(default_factory=Guessing)  # tokens guessed ahead of passes
    adapters: ServedAdapters = field(default_factory=ServedAdapters)  # what requests choose from beside the model

    @property
    def rate(self) -> Number:
        """Requests that arrive at one replica in a second; 0 where the next comes when one is answered."""
        return self.traffic.rate / self.layout.dp

    @property
    def users(self) -> Number:
        """Requests of one replica at once, waiting ones included, where each answer is followed by the next request."""
        return self.traffic.concurrency / self.layout.dp

    @property
    def replicas(self) -> Number:
        """Replicas that any request reaches."""
        return np.minimum(self.layout.dp, self.traffic.requests)

    @property
    def requests(self) -> Number:
        """Requests of one replica in all; infinite where the load goes on."""
        return np.maximum(self.traffic.requests / self.layout.dp, 1.0)

    @property
    def slots(self) -> Number:
        """Requests that one replica takes up at once: those that the plan gives, or what the engine is set to."""
        given = np.isfinite(self.traffic.concurrency)
        return np.maximum(where(given, self.users, self.runtime.slots), 1.0)

    @property
    def prompt_spread(self) -> Number:
        """Standard deviation of a prompt's tokens that are read over their mean."""
        if not any_true(self.traffic.cached > 0):
            return self.traffic.prompt_deviation / self.prompt
        return self.traffic.prompt_deviation * (1.0 - self.traffic.cached) / self.fresh

    @property
    def output_spread(self) -> Number:
        """Standard deviation of an answer's tokens over their mean."""
        return self.traffic.output_deviation / np.maximum(self.output, 1.0)

    @property
    def length(self) -> Number:
        """Tokens of a finished sequence."""
        return self.prompt + self.output

    @property
    def held_length(self) -> Number:
        """Tokens of a sequence for which the cache has room: all, or what the engine asks for under a load."""
        if self.traffic.comes_singly:
            return self.prompt + self.runtime.reserved_output * self.output
        return self.length

    @property
    def fresh(self) -> Number:
        """Tokens of a prompt that are read; the cache has the others."""
        if not any_true(self.traffic.cached > 0):
            return self.prompt
        return np.maximum(self.prompt * (1.0 - self.traffic.cached), 1.0)

    @property
    def prompt_logits(self) -> Number:
        """Tokens of a prompt that reach the output head."""
        return 1.0 + self.runtime.logit_rows * (self.fresh - 1.0)

    @property
    def longest(self) -> Number:
        """Tokens of the answer that ends last: a batch drains until then, a load goes on."""
        if self.traffic.comes_singly or not any_true(self.output_spread > 0):
            return self.output
        longest = longest_output(self.output, self.output_spread, np.maximum(self.batch, 1.0))
        return np.minimum(longest, np.maximum(self.traffic.longest_output, self.output))

    @property
    def running(self) -> Number:
        """Sequences of a decode step, the mean."""
        longest = self.longest
        return self.batch if longest is self.output else self.batch * self.output / np.maximum(longest, 1.0)

    @property
    def accepted(self) -> Number:
        """Tokens a sequence gets from one pass."""
        if not any_true(self.guessing.tokens > 0):
            return 1.0
        return accepted_tokens(self.guessing.tokens, self.guessing.acceptance)

    @property
    def decode_steps(self) -> Number:
        """Forward passes after the prompt's, which gives the first token itself."""
        return np.maximum(self.longest - 1.0, 0.0) / self.accepted

    @property
    def decode_context(self) -> Number:
        """Tokens in the cache, the mean over the output."""
        if not any_true(self.output_spread > 0):
            return self.prompt + self.output / 2.0
        return mean_decode_context(self.prompt, self.output, self.output_spread)

    @property
    def fullest_layers(self) -> Number:
        """Layers of the fullest pipeline stage that lie on the device."""
        return np.ceil(self.shape.layers * (1.0 - self.host.share) / self.layout.pp)

    @property
    def experts_per_layer(self) -> Number:
        """Parameters of the routed experts of the mean layer."""
        return self.shape.moe_share * self.counts.experts * self.counts.expert

    @property
    def share_on_host(self) -> Number:
        """Share of the parameters that a token meets which lie in host memory."""
        routed = self.shape.moe_share * self.shape.experts_active * self.counts.expert
        experts = self.shape.layers * routed / self.counts.active
        return self.host.share + (1.0 - self.host.share) * self.host.experts * experts

    @property
    def head_weights(self) -> Number:
        """Weights of the output projection, its own or the embedding's."""
        return self.counts.token_embedding if self.shape.tied_embeddings else self.counts.head

    @property
    def cache_shards(self) -> Number:
        """Devices of a tensor-parallel group that hold different keys and values; the rest hold copies."""
        return np.minimum(self.layout.tp, self.shape.attention_kind.cached_heads)


# Where neither the engine nor the memory of a device sets an end.
MOST_SEQUENCES = counted("most-sequences")

# What one core of the host spends its time on.
HOST_TIMES = ("host_seconds", "eager_seconds", "step_seconds", "sequence_seconds", "stream_seconds", "request_seconds")


def passes_of_prompts(
    inference: InferenceSection, engine: InferenceEngine, shape: TransformerShape, device: Device
) -> dict[str, float]:
    """Return the most tokens of a pass, and whether those that read prompts give answers too: as set, or by default."""
    tokens, mixes = engine.chunk_tokens, engine.mixes_prefill
    is_large = device.memory_bytes is None or device.memory_bytes >= (engine.large_mib or 0.0) * MIB
    if inference.is_load and not (is_large and not any(word in device.id for word in engine.small_devices)):
        tokens = engine.server_chunk_tokens or tokens
    is_long = (largest(shape.max_context) or 0.0) > (engine.mixing_context or np.inf)
    wanted = mixes or is_long if inference.chunked_prefill is None else inference.chunked_prefill
    if wanted and not mixes:
        tokens = engine.mixing_tokens or tokens
    return {"chunk_tokens": float(inference.max_num_batched_tokens or tokens or 0), "mixes_prefill": float(wanted)}


def runtime(engine: InferenceEngine, catalog: Catalog, claim: float) -> Runtime:
    """Return an engine's row in seconds and bytes; ``claim`` is the share of device memory that engines take."""
    return numbers_of(
        Runtime,
        engine,
        chunk_tokens=float(engine.chunk_tokens or 0),
        expert_tile=float(engine.expert_tile or TILE_ROWS),
        expert_spread=catalog.coefficients["expert-spread"].value,
        replicas_apart=catalog.coefficients["replicas-apart"].value,
        claim=0.0 if engine.memory_policy == "needed" else claim,
        claims_free=float(engine.memory_policy == "free"),
        slots=float(engine.slots or MOST_SEQUENCES),
        captured_context=float(engine.captured_context or np.inf),
    )


def on_host(runtime: Runtime, speed: Number) -> Runtime:
    """Return what an engine does where a core of the host has a speed, relative to that of a server of 2024."""
    return replace(runtime, **{name: getattr(runtime, name) / speed for name in HOST_TIMES})
