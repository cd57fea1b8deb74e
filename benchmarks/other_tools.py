"""How many real files of other tools are read right: against readers of their own, which share no code with ours.

``uv run python benchmarks/other_tools.py FOLDER`` takes a folder with ``files.csv`` (family, path below ``files/``) and
prints a table for docs/other-tools.md; with ``models.csv`` (name, parameters) beside it, also how many of the folders
``models/NAME`` are counted within 0.5 %. A file is right where every value that its family's reader finds is the
plan's, and refused where a message says why. A value that differs, or a model that another stands in for, is a fault.
Scripts of a shell are run in a sandbox where bubblewrap is installed (``run_scripts.py``); those that start nothing
there, and all of them where it is not, are only counted as read.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from run_scripts import stated_values

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import shape_from_huggingface
from capacity_tui.engine.models.transformer import count_parameters
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.imports import import_plan

DEVICES, MANY_DEVICES = 8, 64
TOLERANCE = 0.005  # Of a model's count of parameters


def axolotl(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what an Axolotl file says, as its own normalisation reads it."""
    adapter, quantized = data.get("adapter"), data.get("load_in_4bit")
    yield (
        "training.method",
        _method(bool(adapter), adapter == "qlora" or bool(quantized), bool(data.get("peft_use_dora"))),
    )
    if adapter:
        yield "training.adapter.rank", data.get("lora_r")
        yield "training.quantization", "nf4" if quantized else "int8" if data.get("load_in_8bit") else None
    micro = _whole(data.get("micro_batch_size"))
    steps = _whole(data.get("gradient_accumulation_steps"))
    if not steps and micro and data.get("batch_size"):
        steps = (_whole(data.get("batch_size")) or 1) // micro
    split = (_whole(data.get("tensor_parallel_size")) or 1) * (_whole(data.get("context_parallel_size")) or 1)
    shards, experts = _whole(data.get("dp_shard_size")), _whole(data.get("expert_parallel_size"))
    # Experts have an axis of devices of their own beside the shards: both take data.
    replicas = shards * experts if shards and experts else DEVICES // split
    yield from _batches(micro, steps, replicas)
    yield "training.seq_len", data.get("sequence_len") or 512
    if data.get("fp8"):
        yield "training.precision", "fp8"
    elif data.get("bf16") in (True, "auto", "full"):
        yield "training.precision", "bf16"
    elif data.get("fp16") is True:
        yield "training.precision", "fp16"
    yield "training.optimizer", _optimizer(data.get("optimizer"))
    yield "training.preference", data.get("rl") if data.get("rl") in ("dpo", "grpo") else None


def llama_factory(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what a LLaMA-Factory file says."""
    if "stage" not in data:
        return
    if not data.get("do_train"):
        yield "task", "infer"
        return
    kind, bits = data.get("finetuning_type", "lora"), str(data.get("quantization_bit", ""))
    if kind in ("lora", "full"):
        yield "training.method", _method(kind == "lora", bits == "4", bool(data.get("use_dora")))
    if kind == "lora":
        yield "training.adapter.rank", data.get("lora_rank", 8)
        yield "training.quantization", {"4": "nf4", "8": "int8"}.get(bits)
    micro = _whole(data.get("per_device_train_batch_size", 8))
    axes = ("tensor", "pipeline", "context")  # Of Megatron-LM beneath it
    split = math.prod(_whole(data.get(f"{axis}_model_parallel_size")) or 1 for axis in axes)
    yield from _batches(micro, _whole(data.get("gradient_accumulation_steps", 1)), DEVICES // split)
    yield "training.seq_len", data.get("cutoff_len", 2048)
    half = "bf16" if data.get("bf16") or data.get("pure_bf16") else "fp16" if data.get("fp16") else "fp32"
    yield "training.precision", "fp8" if data.get("fp8") else half
    yield "training.preference", data["stage"] if data["stage"] in ("dpo", "ppo") else None


def torchtune(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what a torchtune recipe says."""
    if not data.get("dataset") and not data.get("optimizer"):
        yield "task", "infer"
        return
    model = data.get("model")
    built = model if isinstance(model, dict) else {}
    name = str(built.get("_component_", "")).rpartition(".")[2]
    if name:
        adapted = name.startswith(("lora", "qlora"))
        quantized = name.startswith("qlora") or bool(built.get("quantize_base"))
        yield "training.method", _method(adapted, quantized, bool(built.get("use_dora")))
    yield "training.adapter.rank", built.get("lora_rank")
    yield "training.micro_batch", data.get("batch_size")
    yield "training.precision", data.get("dtype")
    tokenizer = data.get("tokenizer")
    yield "training.seq_len", tokenizer.get("max_seq_len") if isinstance(tokenizer, dict) else None


def trainer(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what a recipe of the alignment handbook says; files beside the recipes are of Accelerate."""
    if "compute_environment" in data:
        yield from accelerate(data)
        return
    yield "training.seq_len", data.get("max_length") or data.get("max_seq_length")
    yield "training.method", _method(bool(data.get("use_peft")), bool(data.get("load_in_4bit")), False)
    if data.get("use_peft"):
        yield "training.adapter.rank", data.get("lora_r")
    micro = _whole(data.get("per_device_train_batch_size", 8))
    yield from _batches(micro, _whole(data.get("gradient_accumulation_steps", 1)), DEVICES)
    yield "training.precision", "bf16" if data.get("bf16") else "fp16" if data.get("fp16") else None
    yield "training.preference", "dpo" if "beta" in data else None


def deepspeed(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what a DeepSpeed file says."""
    zero = data.get("zero_optimization")
    sharding = zero if isinstance(zero, dict) else {}
    yield "parallelism.zero", _whole(sharding.get("stage"))
    micro, batch = _whole(data.get("train_micro_batch_size_per_gpu")), _whole(data.get("train_batch_size"))
    yield "training.micro_batch", micro
    yield "training.global_batch", batch
    for name in ("fp16", "bf16"):
        part = data.get(name)
        if isinstance(part, dict) and part.get("enabled") is True:
            yield "training.precision", name


def accelerate(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what an Accelerate file says."""
    part = data.get("deepspeed_config")
    yield "parallelism.zero", _whole(part.get("zero_stage")) if isinstance(part, dict) else None
    mixed = data.get("mixed_precision")
    yield "training.precision", mixed if mixed in ("bf16", "fp16", "fp8") else None
    split = data.get("parallelism_config")
    if isinstance(split, dict):
        yield "parallelism.tp", _whole(split.get("parallelism_config_tp_size"))
        yield "parallelism.cp", _whole(split.get("parallelism_config_cp_size"))


READERS: Mapping[str, Callable[[dict[str, object]], Iterator[tuple[str, object]]]] = {
    "axolotl": axolotl,
    "lf": llama_factory,
    "tune": torchtune,
    "handbook": trainer,
    "dsjson": deepspeed,
    "accelerate": accelerate,
    "trl": accelerate,
}
NAMES = {
    "axolotl": "Axolotl",
    "lf": "LLaMA-Factory",
    "tune": "torchtune",
    "handbook": "alignment handbook",
    "dsjson": "DeepSpeed",
    "accelerate": "Accelerate",
    "trl": "TRL's files for Accelerate",
    "megatron": "Megatron-LM",
    "slurm": "Slurm",
    "vllmcmd": "vLLM's recipes",
}
COUNTED = "read"  # Outcome of a file that nothing is compared with


def _method(adapted: bool, quantized: bool, decomposed: bool) -> str:
    return "full" if not adapted else "dora" if decomposed else "qlora" if quantized else "lora"


def _batches(micro: int | None, steps: int | None, replicas: int) -> Iterator[tuple[str, object]]:
    if micro:
        yield "training.micro_batch", micro
        yield "training.global_batch", micro * (steps or 1) * replicas


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _optimizer(name: object) -> str | None:
    text = str(name or "adamw")
    bits = next((bits for bits in ("8bit", "4bit") if bits in text), "")
    return f"adamw{bits}" if "adamw" in text and "galore" not in text and not text.startswith("optimi") else None


def faults(plan: Plan, values: Iterable[tuple[str, object]]) -> list[str]:
    """Return the values of a file that a plan differs in."""
    found = []
    for path, value in values:
        ours = plan.task if path == "task" else plan.value(path)
        same = str(ours or "full") == value if path == "training.method" else ours == value
        if value is not None and not same:
            found.append(f"{path}: {value}, read as {ours}")
    return found


def judged(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield family, outcome and what is wrong of each file that a reader knows."""
    with (folder / "files.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        path, reader = folder / "files" / row["path"], READERS.get(row["family"])
        hardware = {"hardware.name": "h100-sxm-80gb", "hardware.devices": DEVICES if reader else MANY_DEVICES}
        try:
            plan = import_plan([str(path)], hardware, allow_fragment=True).plan
            load = json.loads if path.suffix == ".json" else yaml.safe_load  # JSON has tabs, which YAML has not
            values = list(reader(load(path.read_text(encoding="utf-8"))) if reader else stated_values(path))
        except (CapacityError, yaml.YAMLError) as error:
            yield row["family"], "refused", f"{row['path']}: {error}"
            continue
        wrong = faults(plan, values)
        outcome = "faulty" if wrong else "right" if values or reader else COUNTED
        yield row["family"], outcome, f"{row['path']}: {'; '.join(wrong)}"


def counted(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the outcome of each model's configuration, and what is wrong of it."""
    with (folder / "models.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        try:
            count = count_parameters(shape_from_huggingface(folder / "models" / row["name"])).total
        except CapacityError as error:
            yield "refused", f"{row['name']}: {error}"
            continue
        error = float(count) / int(row["parameters"]) - 1.0
        yield "right" if abs(error) < TOLERANCE else "faulty", f"{row['name']}: {error:+.1%}"


def main() -> None:
    """Print the table, then what is wrong."""
    results = list(judged(Path(sys.argv[1])))
    print("| family | files | right | read | refused | faulty |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for family, name in NAMES.items():
        counts = Counter(outcome for of, outcome, _ in results if of == family)
        cells = (counts.total(), *(counts[outcome] for outcome in ("right", COUNTED, "refused", "faulty")))
        print(f"| {name} | {' | '.join(map(str, cells))} |")
    if (Path(sys.argv[1]) / "models.csv").exists():
        models = list(counted(Path(sys.argv[1])))
        counts = Counter(outcome for outcome, _ in models)
        print(f"| models | {counts.total()} | {counts['right']} | 0 | {counts['refused']} | {counts['faulty']} |")
        results += [("models", outcome, what) for outcome, what in models]
    for _, outcome, what in results:
        if outcome == "faulty":
            print(what, file=sys.stderr)


if __name__ == "__main__":
    main()
