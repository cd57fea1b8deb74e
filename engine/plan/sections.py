"""The sections of a plan: types and defaults of their fields. Labels, ranges and help are in profiles/fields.yaml."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeAlias, get_args

from pydantic import BeforeValidator, Field, model_validator

from capacity_tui.engine.models import checkpointing_name
from capacity_tui.engine.schema import (
    AUTO,
    LARGEST_COUNT,
    Amount,
    AutoAmount,
    AutoCount,
    AutoDuration,
    AutoLength,
    AutoShare,
    AutoWholeNumber,
    Count,
    Deadline,
    Duration,
    Length,
    Section,
    SpecValue,
    WholeNumber,
)

FULL = "full"

AdapterKind: TypeAlias = Literal[
    "lora", "qlora", "dora", "adalora", "ia3", "vera", "oft", "boft", "loha", "lokr", "prompt"
]

METHODS = (FULL, *get_args(AdapterKind))


Targets: TypeAlias = Literal["all", "attention", "mlp", "query+value", "query+key+value", "query+value+output+mlp"]


class Adapter(Section):
    """Adapters: only they are trained."""

    kind: AdapterKind = "lora"
    rank: Count = 16
    targets: Targets = "all"
    train_embeddings: bool = False
    fp32: bool | None = None
    fp32_base: Literal["none", "norms", "all"] | None = None


def adapter_of(method: object) -> Adapter | None:
    """Return the usual adapter of a method; none where all weights are trained."""
    return None if method in (None, FULL) else Adapter.model_validate({"kind": method})


def kind_of(adapter: object, otherwise: object) -> object:
    """Return the kind of an adapter as given; another where it gives none."""
    if isinstance(adapter, Adapter):
        return adapter.kind
    return adapter.get("kind", otherwise) if isinstance(adapter, dict) else otherwise


MOST_WORKERS = 1024
MOST_PHASES = 16
MOST_GBS = 1e6
SHARES_ROUNDED = 0.011  # What shares of phases may add up to beside one, for those that are typed with two digits


class DataPhase(Section):
    """A part of a training with data or settings of its own: a share of its tokens, and what differs in it."""

    name: Annotated[str, Field(min_length=1, max_length=40)]
    share: Annotated[float, Field(gt=0, le=1)]
    changes: dict[str, SpecValue] = Field(default_factory=dict)


class DataSection(Section):
    """The data of a training; where they are stored does not change what the model learns."""

    format: str = AUTO
    source: Literal["auto", "local", "network", "bucket", "streaming"] = "local"
    read_gbs: Annotated[float, Field(gt=0, le=MOST_GBS)] | None = None
    unique_tokens: Amount | None = None
    cache: Literal["auto", "ram", "nvme", "disk", "none"] = AUTO
    workers: Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"] = AUTO
    prefetch: Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"] = AUTO
    shuffle_buffer: AutoWholeNumber = AUTO
    phases: Annotated[tuple[DataPhase, ...], Field(max_length=MOST_PHASES)] | Literal["auto"] = ()

    @property
    def is_stated(self) -> bool:
        """Whether the plan says how or where its data are stored, so that reading them is a term of its time."""
        return self.format != AUTO or self.source != "local" or self.read_gbs is not None

    @model_validator(mode="after")
    def _a_whole(self) -> Self:
        if self.phases and self.phases != AUTO:
            total = sum(phase.share for phase in self.phases)
            if abs(total - 1.0) > SHARES_ROUNDED:
                raise ValueError(f"the shares of the phases add up to {total:g}: let them add up to 1")
            if len({phase.name for phase in self.phases}) < len(self.phases):
                raise ValueError("two phases have one name: give each its own")
        return self


MOST_GUESSED = 64  # Tokens that are guessed ahead of one pass


class LoadFields(Section):
    """Requests that come one by one, in place of one batch that starts together."""

    request_rate: Amount | None = None

    concurrency: Count | None = None

    users: Count | None = None

    seconds_between_requests: Duration | None = None

    requests: Annotated[WholeNumber, Field(ge=1)] | None = None

    prompt_tokens_stddev: Annotated[float, Field(ge=0, le=LARGEST_COUNT)] = 0.0

    output_tokens_stddev: Annotated[float, Field(ge=0, le=LARGEST_COUNT)] = 0.0

    prefix_cache_hit_rate: Annotated[float, Field(ge=0, le=1)] = 0.0

    max_num_batched_tokens: Length | None = None

    chunked_prefill: bool | None = None

    num_speculative_tokens: Annotated[int, Field(ge=0, le=MOST_GUESSED)] = 0

    acceptance_rate: Annotated[float, Field(ge=0, le=1)] = 0.7

    draft_cost: Annotated[float, Field(ge=0, le=1)] = 0.05

    draft_parameters: Amount | None = None

    percentile: Annotated[float, Field(ge=1, le=99.9)] = 95.0

    @property
    def arrival_rate(self) -> float | None:
        """Requests that arrive in a second: as given, or those of users who send one every so often."""
        if self.users is None or self.seconds_between_requests is None:
            return self.request_rate
        return self.users / self.seconds_between_requests

    @property
    def requests_at_once(self) -> int | None:
        """Requests at work at once: as given, or one of each user who sends the next when the last is answered."""
        return self.users if self.users is not None and self.seconds_between_requests is None else self.concurrency

    @property
    def is_load(self) -> bool:
        """Whether requests come one by one."""
        return self.arrival_rate is not None or self.requests_at_once is not None

    @model_validator(mode="after")
    def _one_load(self) -> Self:
        if self.seconds_between_requests is not None and self.users is None:
            raise ValueError("seconds_between_requests are those of users: give their number (inference.users)")
        if self.users is not None and (self.request_rate is not None or self.concurrency is not None):
            raise ValueError("users say how many requests come: leave request_rate and concurrency out")
        if self.requests is not None and not self.is_load:
            raise ValueError("requests end a load: say request_rate or concurrency, or leave them out")
        return self


UNQUANTIZED = "bf16"  # Format of the weights of models that are published without another one


class RequestFields(Section):
    """Requests, and the software that answers them."""

    prompt_tokens: Length = 2048
    output_tokens: Length = 512
    longest_output_tokens: Length | None = None
    batch: AutoCount = 1
    weights: str | None = None
    kv_cache: str = "fp16"
    ttft_seconds: Duration | None = None
    tpot_seconds: Duration | None = None
    request_seconds: Duration | None = None
    engine: str = "transformers"
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    gpu_layers: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    host_expert_layers: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    adapters: WholeNumber = 0
    adapter_rank: Count = 16

    @model_validator(mode="after")
    def _longest_is_longest(self) -> Self:
        longest = self.longest_output_tokens
        if longest is not None and longest < self.output_tokens:
            raise ValueError(f"the longest answer has {longest} tokens, the mean {self.output_tokens}: no less")
        return self


class InferenceSection(LoadFields, RequestFields):
    """Serving: one batch of requests that start together, or a load of requests that come one by one."""

    @property
    def weights_format(self) -> str:
        """Format of the weights of a settled plan; 16 bits where it serves none."""
        return self.weights or UNQUANTIZED


class KernelFields(Section):
    """How a training step is computed; the same result whatever is chosen here, but for routing."""

    attention: str = "flash"
    checkpointing: Annotated[str, BeforeValidator(checkpointing_name)] = "none"
    compile: bool = False
    memory_format: Literal["channels_last", "channels_first"] | None = None
    cuda_graphs: bool = False
    loss: Literal["standard", "kernel", "chunked", "fused"] | None = None
    logits: Literal["fp32", "bf16"] | None = None
    sequence_tiles: Count = 1
    activation_offload: Literal["none", "all"] = "none"
    routing: Literal["balanced", "natural"] = "balanced"
    framework: str | None = None
    overlap: bool | None = None


class ParallelismSection(Section):
    """How the model is spread over devices."""

    dp: AutoCount | None = None
    tp: AutoCount | None = None
    pp: AutoCount | None = None
    cp: AutoCount = 1
    context: Literal["ring", "all_to_all", "all_gather"] = "ring"
    ep: AutoCount = 1
    etp: Count | None = None
    interleave: AutoCount = 1
    zero: Annotated[int, Field(ge=0, le=3)] | Literal["auto"] | None = None
    shard: Count | None = None
    sequence_parallel: bool | None = None
    offload: Literal["none", "optimizer", "parameters", "activations", "auto"] = "none"


class PricingSection(Section):
    """What an hour and a kilowatt-hour cost."""

    usd_per_hour: Annotated[float, Field(ge=0, le=1000000000.0)] | None = None
    spot: bool = False
    commitment: Literal["none", "1y", "3y"] = "none"
    region: str | None = None
    usd_per_kwh: Annotated[float, Field(ge=0, le=100)] = 0.15


class LimitsSection(Section):
    """The longest that the whole job may take, and the most that it may cost."""

    seconds: Deadline | None = None
    usd: Annotated[float, Field(gt=0, le=1e12)] | None = None
    usd_per_hour: Annotated[float, Field(gt=0, le=1000000000.0)] | None = None


Automatic: TypeAlias = Literal["auto"]
MemoryRemedy: TypeAlias = Literal["micro_batch", "checkpointing", "precision", "offload", "sequence", "processor"]
"""What is done after a run ended out of memory."""

MEMORY_REMEDIES: tuple[MemoryRemedy, ...] = get_args(MemoryRemedy)
MOST_RESTARTS = 1000


class WatchSection(Section):
    """What is watched for while a run goes on, and from when on it is reported."""

    interval: Annotated[Duration, Field(ge=0.1, le=3600)] = 1.0
    temperature_c: Annotated[float, Field(ge=20, le=150)] | Automatic = AUTO
    memory_share: AutoShare = AUTO
    power_share: AutoShare = AUTO
    supply_watts: Annotated[float, Field(ge=50, le=1000000.0)] | None = None
    nan: Literal["stop", "warn", "auto"] = AUTO
    loss_spike: Annotated[float, Field(ge=1, le=1000)] | Automatic = AUTO


class BatteryFields(Section):
    """How a run continues while its machine is on battery."""

    pause_below: AutoShare = AUTO
    threads: AutoCount = AUTO
    most_steps: AutoCount = AUTO


class RecoverySection(Section):
    """What happens when a run meets trouble."""

    out_of_memory: Annotated[tuple[MemoryRemedy, ...], Field(max_length=len(MEMORY_REMEDIES))] | Automatic = AUTO
    max_restarts: Annotated[int, Field(ge=0, le=MOST_RESTARTS)] | Automatic = AUTO
    heat: Literal["pause", "warn", "auto"] = AUTO
    battery: BatteryFields = BatteryFields.model_construct()
    device_lost: Literal["fewer", "processor", "stop", "auto"] = AUTO
    unstable: Literal["accumulate", "stop", "auto"] = AUTO
    hang: Literal["restart", "warn", "auto"] = AUTO
    killed: Literal["restart", "stop", "auto"] = AUTO
    checkpoint_every: AutoDuration = AUTO


MOST_SCENARIOS = 8  # Compared plans: more than fit a screen
_NAME = re.compile(r"[^\s.](?:[^.\n]{0,38}[^\s.])?")  # A dot would end the name in the path of a field


def is_scenario_name(name: str) -> bool:
    """Whether a scenario may have this name."""
    return _NAME.fullmatch(name) is not None


def checked_names(scenarios: Mapping[str, object]) -> Mapping[str, object]:
    """Return scenarios as they are; raises ValueError where a name is invalid or there are too many."""
    for name in scenarios:
        if not is_scenario_name(name):
            raise ValueError("allowed: names of 1 to 40 characters without a dot")
    if len(scenarios) > MOST_SCENARIOS:
        raise ValueError(f"allowed: up to {MOST_SCENARIOS} scenarios")
    return scenarios


NO_MASTER = "none"  # What a plan writes for no master weights
LENGTHS = ("tokens", "steps", "epochs")
Preference: TypeAlias = Literal["none", "dpo", "kto", "orpo", "reward", "process_reward", "ppo", "grpo", "distillation"]
"""What a step learns from besides the next token."""


TRAINED_TOWERS, FROZEN_TOWERS = "trained", "frozen"
"""What becomes of the towers of a model that sees or hears."""


class JobFields(Section):
    """What is trained, for how long, in which number formats and by which optimizer."""

    method: Literal["full"] | AdapterKind | None = None
    seq_len: AutoLength = 2048
    tokens: AutoAmount | None = None
    micro_batch: AutoCount = 1
    global_batch: AutoCount | None = None
    steps: Count | None = None
    epochs: Amount | None = None
    samples: Amount | None = None
    document_tokens: Length | None = None
    lengths: Literal["equal", "varied"] = "equal"
    predicted_tokens: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    local_batches: Count = 1
    precision: str = "bf16"
    master_weights: str = "fp32"
    fp8_weights: bool | None = None
    gradients: str | None = None
    optimizer: str = "adamw"
    optimizer_rank: Count | None = None
    learning_rate: Amount | None = None
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    preference: Preference = "none"
    reference: Literal["kept", "precomputed"] = "kept"
    towers: Literal["trained", "frozen"] | None = None
    teacher_parameters: Amount | None = None
    mfu: Annotated[float, Field(gt=0, le=1)] | None = None


class TrainingSection(KernelFields, JobFields):
    """Training and fine-tuning. A value of ``auto`` is chosen by the mode.

    ``method`` is short for an adapter of that kind: each follows from the other, and both are always there together.
    """

    adapter: Adapter | None = None
    quantization: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _method_is_adapter(cls, data: object) -> object:
        """Let the method make the adapter, or the adapter name the method."""
        if not isinstance(data, dict):
            return data
        method, adapter = data.get("method"), data.get("adapter")
        if method is None:
            kind = kind_of(adapter, "lora")
            return data if adapter is None or kind not in METHODS else {**data, "method": kind}
        if method == FULL and adapter is not None:
            raise ValueError("method full trains all weights: leave the adapter out")
        if method == FULL or method not in METHODS:
            return data
        if kind_of(adapter, method) != method:
            raise ValueError(f"method and adapter.kind differ: {method} and {kind_of(adapter, method)}")
        return {
            **data,
            "adapter": {**adapter, "kind": method} if isinstance(adapter, dict) else adapter or {"kind": method},
        }

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        stated = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(stated) > 1:
            raise ValueError(f"give only one of tokens, steps and epochs, not {' and '.join(stated)}")
        return self
