"""The fields of the small engine's plans."""

from __future__ import annotations

from capacity_tui.engine.present import FormulaInput, FormulaStep
from capacity_tui.tui.shown.results import AUTO, Field, Kind

DEFAULTS = {
    "model.name": "llama-3-8b",
    "training.seq_len": "4096",
    "training.micro_batch": AUTO,
    "training.global_batch": "64",
    "training.precision": "bf16",
    "training.optimizer": "adamw",
    "training.checkpointing": AUTO,
    "parallelism.dp": "8",
    "parallelism.tp": "1",
    "parallelism.zero": "3",
    "hardware.name": "detected",
    "hardware.devices": "8",
    "pricing.usd_per_kwh": "0.15",
}
MICRO_BATCH = FormulaStep("micro_batch = memory / 4 GiB", "2", (FormulaInput("memory", "8 GiB", "free"),))
MODES = {"conservative": 1, "balanced": 2, "extreme": 4}
FIELDS = (
    Field("model.name", "Model", "model", "", catalogue="model", help="architecture of the catalogue"),
    Field(
        "training.seq_len",
        "Sequence",
        "training",
        "",
        unit="tokens",
        kind=Kind.POWER_OF_TWO,
        minimum=128,
        maximum=1048576,
        help="tokens of one sequence",
    ),
    Field(
        "training.micro_batch",
        "Micro batch",
        "training",
        "",
        kind=Kind.POWER_OF_TWO,
        minimum=1,
        maximum=1024,
        can_be_auto=True,
        help="sequences of one replica in one pass",
    ),
    Field(
        "training.global_batch",
        "Global batch",
        "training",
        "",
        kind=Kind.POWER_OF_TWO,
        minimum=1,
        maximum=65536,
        help="sequences of one optimizer step",
    ),
    Field("training.precision", "Precision", "training", "", kind=Kind.CHOICE, choices=("fp32", "fp16", "bf16", "fp8")),
    Field(
        "training.optimizer",
        "Optimizer",
        "training",
        "",
        kind=Kind.CHOICE,
        choices=("adamw", "adamw8bit", "adafactor", "sgd", "lion", "muon", "rmsprop"),
    ),
    Field(
        "training.checkpointing",
        "Checkpointing",
        "training",
        "",
        kind=Kind.CHOICE,
        choices=("none", "selective", "full"),
        can_be_auto=True,
    ),
    Field(
        "parallelism.dp",
        "Data parallel",
        "parallelism",
        "",
        kind=Kind.POWER_OF_TWO,
        minimum=1,
        maximum=1024,
        help="replicas of the model",
    ),
    Field("parallelism.tp", "Tensor parallel", "parallelism", "", kind=Kind.POWER_OF_TWO, minimum=1, maximum=8),
    Field("parallelism.zero", "ZeRO stage", "parallelism", "", kind=Kind.INTEGER, minimum=0, maximum=3),
    Field("hardware.name", "Accelerator", "hardware", "", catalogue="accelerator"),
    Field("hardware.devices", "Devices", "hardware", "", kind=Kind.POWER_OF_TWO, minimum=1, maximum=4096),
    Field(
        "pricing.usd_per_kwh",
        "Electricity",
        "pricing",
        "",
        unit="$/kWh",
        kind=Kind.NUMBER,
        minimum=0,
        maximum=2,
        step=0.01,
    ),
)


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
