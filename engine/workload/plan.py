"""The plan: what the user wants to run, as frozen data that a YAML file, the screen and scripts share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from capacity_tui.engine.units import parse_count
from capacity_tui.engine.workload.checkpointing import parse_checkpointing
from capacity_tui.engine.workload.knobs import Knob

AUTO: Literal["auto"] = "auto"
TRANSFORMER = ("transformer",)
NEURAL = ("transformer", "network")

# Bounds that keep every product below inside double precision; far beyond anything built.
LARGEST_COUNT = 10**7
LARGEST_TOKENS = 1e18


def _count(value: object) -> object:
    """Accept ``8k`` or ``2.0B`` for a count; leave everything else to the validator."""
    if isinstance(value, bool):
        raise ValueError("allowed: a number")
    return parse_count(value) if isinstance(value, str) and value != AUTO else value


def _amount(value: object) -> object:
    """Accept ``0.5`` and ``2.0B`` for an amount; leave everything else to the validator."""
    try:
        return float(value) if isinstance(value, str) else _count(value)
    except ValueError:
        return _count(value)


Count: TypeAlias = Annotated[int, BeforeValidator(_count), Field(ge=1, le=LARGEST_COUNT)]
Amount: TypeAlias = Annotated[float, BeforeValidator(_amount), Field(gt=0, le=LARGEST_TOKENS, allow_inf_nan=False)]
AutoCount: TypeAlias = Annotated[Count | Literal["auto"], BeforeValidator(_count)]
AutoAmount: TypeAlias = Annotated[Amount | Literal["auto"], BeforeValidator(_amount)]
Precision: TypeAlias = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
Optimizer: TypeAlias = Literal[
    "adamw", "adamw8bit", "adafactor", "sgd", "sgd_momentum", "rmsprop", "lion", "muon"
]
Framework: TypeAlias = Literal[
    "megatron", "nemo", "fsdp", "torchtitan", "deepspeed", "ddp", "maxtext", "neuron",
    "transformers", "litgpt", "torchtune", "unsloth", "llm.c",
]  # fmt: skip
Engine: TypeAlias = Literal[
    "transformers", "vllm", "sglang", "tensorrt-llm", "llamacpp", "mlx", "exllama", "exllamav2",
    "mlc", "gpt-fast", "neuron",
]  # fmt: skip
SpecValue: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None


class Section(BaseModel):
    """A frozen part of a plan; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ModelSection(Section):
    """Which model: a catalogue architecture or family by name, or a local file; with overrides."""

    name: Annotated[str, Knob("Model", "text", "model", help="a catalogue architecture or a family")] | None = None
    config: Annotated[
        str, Knob("Config file", "text", "model", help="a config.json, .gguf or safetensors index on this machine")
    ] | None = None
    spec: Annotated[
        dict[str, SpecValue], Knob("Overrides", "table", "model", help="values that replace the catalogue's")
    ] = {}

    @model_validator(mode="after")
    def _one_origin(self) -> ModelSection:
        if self.name is None and self.config is None:
            raise ValueError("give name or config")
        return self


class Adapter(Section):
    """Low-rank adapters: only they are trained."""

    kind: Annotated[
        Literal["lora", "qlora", "dora"],
        Knob("Adapter", "choice", "adapter", choices=("lora", "qlora", "dora"), families=TRANSFORMER),
    ] = "lora"
    rank: Annotated[
        Count, Knob("Rank", "power-of-two", "adapter", minimum=1, maximum=1024, families=TRANSFORMER)
    ] = 16
    targets: Annotated[
        Literal["all", "attention", "mlp", "query+value"],
        Knob("Targets", "choice", "adapter", choices=("all", "attention", "mlp", "query+value"),
             families=TRANSFORMER, help="which matrices carry an adapter"),
    ] = "all"  # fmt: skip


class TrainingSection(Section):
    """Training and fine-tuning. A value of ``auto`` is chosen by the mode."""

    seq_len: Annotated[
        AutoCount,
        Knob("Sequence", "power-of-two", "training", "tok", 16, 2**24, automatic=True, families=TRANSFORMER,
             help="tokens in one training sequence"),
    ] = 2048
    micro_batch: Annotated[
        AutoCount,
        Knob("Micro batch", "power-of-two", "training", "seq", 1, 65536, automatic=True, families=NEURAL,
             help="sequences per model replica in one forward pass"),
    ] = 1
    global_batch: Annotated[
        AutoCount | None,
        Knob("Global batch", "power-of-two", "training", "seq", 1, LARGEST_COUNT, automatic=True, families=NEURAL,
             help="sequences per optimizer step over all replicas"),
    ] = None
    tokens: Annotated[
        AutoAmount | None,
        Knob("Tokens", "power-of-two", "training", "tok", 1, LARGEST_TOKENS, automatic=True, families=TRANSFORMER,
             help="tokens to train on; auto follows the mode's ratio to the parameters"),
    ] = None
    steps: Annotated[Count | None, Knob("Steps", "power-of-two", "training", families=NEURAL)] = None
    epochs: Annotated[Amount | None, Knob("Epochs", "number", "training", families=NEURAL)] = None
    samples: Annotated[Amount | None, Knob("Samples", "power-of-two", "training", families=NEURAL)] = None
    precision: Annotated[
        Precision | Literal["auto"],
        Knob("Precision", "choice", "numerics", choices=("fp32", "tf32", "fp16", "bf16", "fp8", "fp4"),
             automatic=True, families=NEURAL, help="type in which matrices are multiplied"),
    ] = "bf16"
    master_weights: Annotated[
        Literal["fp32", "none"],
        Knob("Master weights", "choice", "numerics", choices=("fp32", "none"), families=NEURAL,
             help="fp32 copy of the weights kept by the optimizer"),
    ] = "fp32"
    gradients: Annotated[
        Literal["fp32", "bf16", "fp16"] | None,
        Knob("Gradients", "choice", "numerics", choices=("fp32", "bf16", "fp16"), families=NEURAL,
             help="type in which gradients are kept and reduced"),
    ] = None
    optimizer: Annotated[
        Optimizer,
        Knob("Optimizer", "choice", "numerics", families=NEURAL,
             choices=("adamw", "adamw8bit", "adafactor", "sgd", "sgd_momentum", "rmsprop", "lion", "muon")),
    ] = "adamw"
    learning_rate: Annotated[Amount | None, Knob("Learning rate", "number", "numerics", families=NEURAL)] = None
    attention: Annotated[
        Literal["flash", "sdpa", "eager"],
        Knob("Attention", "choice", "kernels", choices=("flash", "sdpa", "eager"), families=TRANSFORMER),
    ] = "flash"
    checkpointing: Annotated[
        str, BeforeValidator(parse_checkpointing),
        Knob("Checkpointing", "choice", "kernels", choices=("none", "selective", "selective-ops", "every-2", "full"),
             automatic=True, families=NEURAL, help="which activations are recomputed in the backward pass"),
    ] = "none"
    compile: Annotated[bool, Knob("Compile", "switch", "kernels", families=NEURAL)] = False
    framework: Annotated[
        Framework | None,
        Knob("Framework", "choice", "kernels", families=NEURAL,
             choices=("megatron", "nemo", "fsdp", "torchtitan", "deepspeed", "ddp", "maxtext", "neuron",
                      "transformers", "litgpt", "torchtune", "unsloth", "llm.c")),
    ] = None
    adapter: Adapter | None = None
    quantization: Annotated[
        str | None,
        Knob("Base weights", "choice", "adapter", choices=("nf4", "int8", "fp8"), families=TRANSFORMER,
             help="how the frozen base is stored, with qlora"),
    ] = None  # fmt: skip

    @model_validator(mode="after")
    def _one_length(self) -> TrainingSection:
        given = [name for name in ("tokens", "steps", "epochs") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give only one of tokens, steps and epochs, not {' and '.join(given)}")
        return self


class InferenceSection(Section):
    """Serving: one batch of requests of the same length."""

    prompt_tokens: Annotated[
        Count, Knob("Prompt", "power-of-two", "inference", "tok", 1, 2**24, families=TRANSFORMER)
    ] = 2048
    output_tokens: Annotated[
        Count, Knob("Output", "power-of-two", "inference", "tok", 1, 2**24, families=TRANSFORMER)
    ] = 512
    batch: Annotated[
        AutoCount, Knob("Batch", "power-of-two", "inference", "seq", 1, 65536, automatic=True, families=NEURAL)
    ] = 1
    weights: Annotated[str, Knob("Weights", "choice", "inference", families=NEURAL, automatic=True,
        choices=("bf16", "fp16", "fp8", "int8", "nf4", "gptq-4", "gptq-8", "awq-4",
                 "q4_0", "q4_k_m", "q5_k_m", "q6_k", "q8_0", "mlx-4", "mlx-8"))] = "bf16"  # fmt: skip
    kv_cache: Annotated[
        Literal["fp32", "fp16", "bf16", "fp8", "int8", "q8_0", "q4_0"],
        Knob("KV cache", "choice", "inference", choices=("fp16", "bf16", "fp8", "int8", "q8_0", "q4_0"),
             families=TRANSFORMER),
    ] = "fp16"  # fmt: skip
    engine: Annotated[
        Engine,
        Knob("Engine", "choice", "inference", families=NEURAL,
             choices=("transformers", "vllm", "sglang", "tensorrt-llm", "llamacpp", "mlx", "exllamav2")),
    ] = "transformers"  # fmt: skip
    gpu_memory_utilization: Annotated[
        float, Field(gt=0, le=1),
        Knob("Memory share", "number", "inference", "", 0.1, 1, 0.05, families=TRANSFORMER,
             help="share of device memory that vllm and sglang take for themselves"),
    ] = 0.9  # fmt: skip
    gpu_layers: Annotated[
        Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None,
        Knob("GPU layers", "integer", "inference", "", 0, 1000, families=TRANSFORMER,
             help="layers kept on the accelerator; the rest run on the CPU"),
    ] = None  # fmt: skip


class ParallelismSection(Section):
    """How the model is spread over devices."""

    dp: Annotated[AutoCount | None, Knob("DP", "power-of-two", "parallelism", "", 1, LARGEST_COUNT, automatic=True,
        families=NEURAL, help="data-parallel replicas")] = None  # fmt: skip
    tp: Annotated[AutoCount, Knob("TP", "power-of-two", "parallelism", "", 1, 1024, automatic=True, families=TRANSFORMER,
        help="tensor-parallel devices a layer is split over")] = 1  # fmt: skip
    pp: Annotated[AutoCount, Knob("PP", "power-of-two", "parallelism", "", 1, 1024, automatic=True, families=TRANSFORMER,
        help="pipeline stages")] = 1  # fmt: skip
    cp: Annotated[Count, Knob("CP", "power-of-two", "parallelism", "", 1, 1024, families=TRANSFORMER,
        help="context-parallel devices a sequence is split over")] = 1  # fmt: skip
    ep: Annotated[Count, Knob("EP", "power-of-two", "parallelism", "", 1, 4096, families=TRANSFORMER,
        help="devices the experts are spread over, inside dp x cp x tp")] = 1  # fmt: skip
    etp: Annotated[Count | None, Knob("Expert TP", "power-of-two", "parallelism", "", 1, 1024, families=TRANSFORMER,
        help="tensor-parallel devices of one expert; default 1 with ep, else tp")] = None  # fmt: skip
    interleave: Annotated[Count, Knob("Interleave", "integer", "parallelism", "", 1, 64, families=TRANSFORMER,
        help="virtual pipeline stages a device")] = 1  # fmt: skip
    zero: Annotated[
        Annotated[int, Field(ge=0, le=3)] | Literal["auto"] | None,
        Knob("ZeRO", "choice", "parallelism", choices=("0", "1", "2", "3"), automatic=True, families=NEURAL,
             help="0 none, 1 optimizer, 2 gradients, 3 parameters (FSDP)"),
    ] = None  # fmt: skip
    shard: Annotated[Count | None, Knob("Shard group", "power-of-two", "parallelism", "", 1, LARGEST_COUNT,
        families=NEURAL, help="replicas in one sharding group (HSDP); default all of dp")] = None  # fmt: skip
    sequence_parallel: Annotated[bool | None, Knob("Sequence parallel", "switch", "parallelism",
        families=TRANSFORMER)] = None  # fmt: skip
    offload: Annotated[
        Literal["none", "optimizer", "parameters", "activations", "auto"],
        Knob("Offload", "choice", "parallelism", choices=("none", "optimizer", "parameters", "activations"),
             automatic=True, families=NEURAL, help="what is kept in host memory"),
    ] = "none"  # fmt: skip


class HardwareSection(Section):
    """On what: a catalogue accelerator or CPU, an instance, or this machine (``detected``)."""

    name: Annotated[str, Knob("Hardware", "text", "hardware")] = "detected"
    devices: Annotated[Count | None, Knob("Devices", "power-of-two", "hardware", "", 1, LARGEST_COUNT)] = None
    per_node: Annotated[Count | None, Knob("Per node", "power-of-two", "hardware", "", 1, 1024)] = None
    interconnect: Annotated[str | None, Knob("Interconnect", "text", "hardware", help="link between nodes")] = None
    ports_per_node: Annotated[Count | None, Knob("Ports", "power-of-two", "hardware", "", 1, 64)] = None
    spec: Annotated[dict[str, SpecValue], Knob("Overrides", "table", "hardware")] = {}
    efficiency: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Knob("Efficiency", "number", "hardware", "", 0.05, 1, 0.05, help="overrides the reachable share of peak"),
    ] = None


class ScalabilitySection(Section):
    """Which device counts and batch sizes to compare."""

    enabled: bool = False
    device_counts: tuple[Count, ...] = (1, 2, 4, 8)
    batch_sizes: tuple[Count, ...] = ()
    data_parallel: bool = True
    model_parallel: bool = False


class PricingSection(Section):
    """What an hour and a kilowatt-hour cost."""

    usd_per_hour: Annotated[
        Annotated[float, Field(ge=0, le=1e9)] | None,
        Knob("Price", "number", "pricing", "$/h", 0, 1e9, 0.5, help="for all devices together; default from the catalogue"),
    ] = None
    spot: Annotated[bool, Knob("Spot", "switch", "pricing")] = False
    usd_per_kwh: Annotated[
        Annotated[float, Field(ge=0, le=100)], Knob("Electricity", "number", "pricing", "$/kWh", 0, 100, 0.01)
    ] = 0.15


class ReportSection(Section):
    """How a report is written."""

    format: Literal["table", "markdown", "json", "html", "yaml"] = "markdown"
    include_plots: bool = True
    include_recommendations: bool = True
    detailed_breakdown: bool = True


class Plan(Section):
    """One run to plan. ``model`` and ``hardware`` are the least; everything else has a default."""

    version: Literal[1] = 1
    task: Annotated[
        Literal["train", "finetune", "infer", "fit"] | None,
        Knob("Task", "choice", "model", choices=("train", "finetune", "infer"), families=NEURAL),
    ] = None
    model: ModelSection
    training: TrainingSection = TrainingSection()
    inference: InferenceSection = InferenceSection()
    parallelism: ParallelismSection = ParallelismSection()
    hardware: HardwareSection = HardwareSection()
    scalability: ScalabilitySection = ScalabilitySection()
    pricing: PricingSection = PricingSection()
    report: ReportSection = ReportSection()

    def value(self, path: str) -> object:
        """Return the value at a dotted path such as ``training.micro_batch``; None where a part is absent."""
        found: object = self
        for part in path.split("."):
            if isinstance(found, dict):
                found = found.get(part)
            elif found is not None:
                found = getattr(found, part)
        return found

    def data(self) -> dict[str, Any]:
        """Return the plan as plain data, the form of the plan file."""
        return self.model_dump(mode="json")
