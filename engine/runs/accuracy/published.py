"""Published measurements of real runs, each as the plan that describes it and the figure that was measured.

The rows are data (``profiles/measurements/*.csv``): a column with a dot in its name is a field of the plan,
the others say what was published, by whom, and what had to be assumed to write the run down as a plan.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from importlib import resources
from typing import Literal, TypeAlias, cast

from capacity_tui.engine.errors import CatalogError, Place
from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA

Kind: TypeAlias = Literal[
    "train_time",
    "train_memory",
    "finetune_time",
    "finetune_memory",
    "finetune_fit",
    "prefill",
    "decode",
    "generate",
    "serving",
    "ttft",
    "ttft_p99",
    "tpot",
    "tpot_p99",
    "inference_memory",
    "encoder_time",
    "vision",
    "vision_memory",
]
Row: TypeAlias = Mapping[str, str]
Scalar: TypeAlias = bool | int | float | str


# High over low of ranges at most: of times and speeds, of memory, of latencies under a load.
TIME, MEMORY, LATENCY = 1.6, 1.35, 2.2


@dataclass(frozen=True, slots=True)
class KindOfFigure:
    """What is measured."""

    title: str
    file: str  # file of ``profiles/measurements`` that holds it
    compared: bool = True  # whether the page on accuracy compares it: not whether something ran out of memory
    widest: float = TIME  # high over low that its ranges should have at most


DESCRIBED: Mapping[Kind, KindOfFigure] = {
    "train_time": KindOfFigure("Step time of training", "train_time"),
    "train_memory": KindOfFigure("Peak memory of training", "train_memory", widest=MEMORY),
    "finetune_time": KindOfFigure("Step time of fine-tuning", "finetune"),
    "finetune_memory": KindOfFigure("Peak memory of fine-tuning", "finetune", widest=MEMORY),
    "finetune_fit": KindOfFigure("Whether fine-tuning fits", "finetune", compared=False),
    "prefill": KindOfFigure("Prefill throughput", "inference"),
    "decode": KindOfFigure("Decode throughput", "inference"),
    "generate": KindOfFigure("Output throughput, prompts included", "inference"),
    "serving": KindOfFigure("Output throughput under load", "serving"),
    "ttft": KindOfFigure("Time to first token of loads, median", "loads", widest=LATENCY),
    "ttft_p99": KindOfFigure("Time to first token of loads, 99th percentile", "loads", widest=LATENCY),
    "tpot": KindOfFigure("Time per output token of loads, median", "loads", widest=LATENCY),
    "tpot_p99": KindOfFigure("Time per output token of loads, 99th percentile", "loads", widest=LATENCY),
    "inference_memory": KindOfFigure("Peak memory of inference", "inference", widest=MEMORY),
    "encoder_time": KindOfFigure("Step time of encoders with a head of a task", "encoders"),
    "vision": KindOfFigure("Throughput of networks over images", "vision"),
    "vision_memory": KindOfFigure("Peak memory of networks over images", "vision", widest=MEMORY),
}
KINDS: tuple[Kind, ...] = tuple(DESCRIBED)
COMPARED_KINDS: tuple[Kind, ...] = tuple(kind for kind, figure in DESCRIBED.items() if figure.compared)
_FOLDER = "measurements"
_PLAN_SECTIONS = ("model.", "training.", "inference.", "parallelism.", "hardware.")
# A figure of nvidia-smi in MiB, rounded to thousands by its author and called GB, is in thousands of MiB.
_BYTES = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30, "1000 MiB": 1000 * 2**20}
_MILLISECONDS = 1e-3
_LATENCIES: Mapping[Kind, tuple[str, str, int]] = {
    "ttft": ("ttft_p50_ms", "time_to_first_token_percentile_seconds", 50),
    "ttft_p99": ("ttft_p99_ms", "time_to_first_token_percentile_seconds", 99),
    "tpot": ("tpot_p50_ms", "time_per_output_token_percentile_seconds", 50),
    "tpot_p99": ("tpot_p99_ms", "time_per_output_token_percentile_seconds", 99),
}
"""Columns of percentiles of latency, the figures they are, and which percentile."""
_THROUGHPUT = "throughput_samples_per_s"
# Model FLOPs of one trained token: a multiplication and an addition for each parameter and each pair of
# positions, once forward and twice backward; a causal token attends to half the sequence, in two products.
_FLOPS_PER_PARAMETER = 6
_FLOPS_PER_PRODUCT = 2
_FLOPS_PER_ATTENDED = 6


@dataclass(frozen=True, slots=True)
class Measurement:
    """One published figure."""

    id: str  # unique within its kind
    kind: Kind
    quantity: str  # name of the figure in the results, such as ``step_seconds`` or ``allocated_bytes``
    value: float  # the figure, in ``unit``
    # ``s``, ``bytes``, ``tokens/s``, ``samples/s``; ``bool`` where the run only shows whether it fits (1 or 0)
    unit: str
    source_key: str  # publisher, the unit that is left out when a fit is judged
    source: str  # title of the page, table or file
    url: str
    quality: str  # A complete and unambiguous, B one field inferred, C something needed is missing or odd
    plan: dict[str, object]  # the run as data of a plan file
    parameters: int  # of the model, all of them
    # FLOPs of one optimizer step over all devices, or of one sample of a throughput, without recomputation, causal
    # attention, counted the same way for every source; None where nothing is counted
    model_flops: float | None
    tags: dict[str, str]  # what results are grouped by, and what was assumed

    @property
    def devices(self) -> int:
        """Number of accelerators of the run."""
        return int(str(field(self.plan, Key.HARDWARE_DEVICES)))

    @property
    def flops_per_second(self) -> float | None:
        """Model FLOP/s of one accelerator; None where no FLOPs are counted."""
        if self.model_flops is None:
            return None
        runs_per_second = 1.0 / self.value if self.unit == "s" else self.value
        return self.model_flops * runs_per_second / self.devices


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that cannot be written as a plan, or holds no figure of the kind, and why."""

    id: str
    source_key: str
    reason: str


def read_measurements(kind: Kind) -> tuple[Measurement, ...]:
    """Return the published measurements of one kind, in the order of the file.

    Raises:
        CatalogError: naming file, line and column of a value that cannot be read.
    """
    sources, file = _sources(), f"{DESCRIBED[kind].file}.csv"
    rows = enumerate(table_rows(f"{_FOLDER}/{file}"), start=2)
    read = (measurement_of(kind, row, sources[row["source"]], Place(file, line)) for line, row in rows)
    return tuple(measurement for measurement in read if measurement is not None)


def measurement_of(kind: Kind, row: Row, source: Row, location: Place) -> Measurement | None:
    """Return the measurement in a row; None if it has no figure of the kind, or is to be skipped."""
    try:
        figure = None if row["skip"] else _figure(kind, row)
        return None if figure is None else _measurement(kind, row, figure, source)
    except (KeyError, ValueError) as error:
        where = Place(location.file, location.line, row["id"])
        raise CatalogError("a measurement cannot be read", str(error), place=where) from error


def read_skipped(kind: Kind) -> tuple[Skipped, ...]:
    """Return the rows of the kind's file that are left out, each with its reason."""
    sources = _sources()
    timed = kind.endswith("_time")
    return tuple(
        Skipped(row["id"], sources[row["source"]]["key"], reason)
        for row in table_rows(f"{_FOLDER}/{DESCRIBED[kind].file}.csv")
        if (reason := row["skip"] or (timed and row.get("skip_time")))
    )


def field(plan: Mapping[str, object], path: str) -> object:
    """Return the value at a dotted path of plan data, None where it is not given."""
    value: object = plan
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def table_rows(path: str) -> tuple[Row, ...]:
    """Return the rows of a table, by its path below ``profiles``."""
    text = resources.files("capacity_tui.profiles").joinpath(path).read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def _sources() -> dict[str, Row]:
    return {row["id"]: row for row in table_rows(f"{_FOLDER}/sources.csv")}


@dataclass(frozen=True, slots=True)
class _Figure:
    quantity: str
    value: float
    unit: str


def _figure(kind: Kind, row: Row) -> _Figure | None:
    if kind.endswith("_time"):
        seconds = row["step_time_s"] or row["derived_step_time_s"]
        return _Figure("step_seconds", float(seconds), "s") if seconds and not row.get("skip_time") else None
    if kind == "finetune_fit":
        return _Figure("fits", 0.0, "bool") if row["out_of_memory"] else None
    if kind in ("train_memory", "finetune_memory", "vision_memory"):
        return _memory(row, "peak_memory")
    if kind == "vision":
        return _Figure("samples_per_second", float(row[_THROUGHPUT]), "samples/s") if row[_THROUGHPUT] else None
    if kind == "inference_memory":
        return _memory(row, "memory")
    return _latency(kind, row) if kind in _LATENCIES else _speed(kind, row)


def _latency(kind: Kind, row: Row) -> _Figure | None:
    column, quantity, _ = _LATENCIES[kind]
    return _Figure(quantity, float(row[column]) * _MILLISECONDS, "s") if row[column] else None


def _memory(row: Row, column: str) -> _Figure | None:
    counted = row["counted_as"]
    if not row[column] or counted == "unstated":
        return None
    return _Figure(f"{counted}_bytes", float(row[column]) * _BYTES[row[f"{column}_unit"]], "bytes")


def _speed(kind: Kind, row: Row) -> _Figure | None:
    if row["phase"] != kind:
        return None
    if not row["tokens_per_s"]:
        # A program that runs the engine itself: no server takes the request in or sends its first text.
        tokens = float(row[Key.INFERENCE_BATCH]) * float(row[Key.INFERENCE_PROMPT_TOKENS])
        return _Figure("prefill_tokens_per_second", tokens / (float(row["ttft_ms"]) * _MILLISECONDS), "tokens/s")
    devices = int(row[Key.HARDWARE_DEVICES]) if row["counted_over"] == "device" else 1
    quantity = "output" if kind in ("generate", "serving") else kind
    return _Figure(f"{quantity}_tokens_per_second", float(row["tokens_per_s"]) * devices, "tokens/s")


def _measurement(kind: Kind, row: Row, figure: _Figure, source: Row) -> Measurement:
    plan = _plan(row)
    if kind in _LATENCIES:
        cast("dict[str, object]", plan["inference"])["percentile"] = _LATENCIES[kind][2]
    return Measurement(
        id=row["id"],
        kind=kind,
        quantity=figure.quantity,
        value=figure.value,
        unit=figure.unit,
        source_key=source["key"],
        source=source["title"],
        url=source["url"],
        quality=row["quality"],
        plan=plan,
        parameters=int(row["parameters"]),
        model_flops=_model_flops(row, figure.quantity),
        tags=_tags(row, plan, source["key"]),
    )


def _plan(row: Row) -> dict[str, object]:
    """Return the plan-file data written in the dotted columns."""
    plan: dict[str, object] = {Key.TASK: row.get("task") or "train"}
    for column, text in row.items():
        if not text or not column.startswith(_PLAN_SECTIONS):
            continue
        *parents, last = column.split(".")
        section = plan
        for parent in parents:
            section = cast("dict[str, object]", section.setdefault(parent, {}))
        section[last] = _scalar(text)
    return plan


def _scalar(text: str) -> Scalar | list[object]:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("["):
        return cast("list[object]", json.loads(text))
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _model_flops(row: Row, quantity: str) -> float | None:
    """Return 6 x (active parameters + width x sequence) x tokens of a step; see Narayanan et al. 2021.

    Of a throughput, those of one image: its published multiply-adds, three times as many to train on it.
    """
    if quantity == "samples_per_second" and row["gmacs"]:
        passes = _FLOPS_PER_PARAMETER if row["task"] == "train" else _FLOPS_PER_PRODUCT
        return passes * float(row["gmacs"]) * GIGA
    if quantity != "step_seconds" or not row.get(Key.TRAINING_GLOBAL_BATCH):
        return None
    length = int(row[Key.TRAINING_SEQ_LEN])
    parameters, width = int(row["active_parameters"]), int(row["attention_width"])
    per_token = _FLOPS_PER_PARAMETER * parameters + _FLOPS_PER_ATTENDED * width * length
    return float(per_token) * length * int(row[Key.TRAINING_GLOBAL_BATCH])


_TAG_COLUMNS = ("release", "recipe", "number_format", "mtp_layers", "rank", "layout", "assumed", "notes")
# A dense model leaves out at most its input embedding; a mixture, most of its experts.
_MIXTURE_RATIO = 1.5
_SIZES = ((1e9, "< 1B"), (5e9, "1-5B"), (2e10, "5-20B"), (1e11, "20-100B"), (4e11, "100-400B"))
_LENGTHS = ((1024, "<= 1k"), (2048, "2k"), (4096, "4k"), (8192, "8k"), (32768, "16-32k"))


def _tags(row: Row, plan: Mapping[str, object], source_key: str) -> dict[str, str]:
    inference = plan[Key.TASK] == "infer"
    length = row.get(Key.INFERENCE_PROMPT_TOKENS) if inference else row.get(Key.TRAINING_SEQ_LEN)
    watts, side = row.get(f"{Key.HARDWARE_SPEC}.tdp_w"), row.get(f"{Key.MODEL_SPEC}.image_size")
    mixture = int(row["parameters"]) > _MIXTURE_RATIO * int(row["active_parameters"])
    tags = {
        "source": source_key,
        "hardware": row[Key.HARDWARE_NAME] + (f", {watts} W" if watts else ""),
        "size": _bucket(float(row["parameters"]), _SIZES, ">= 400B"),
        "length": f"{side} px" if side else _bucket(float(length or 0) - 1, _LENGTHS, "> 32k"),
        "parallelism": parallelism_class(plan),
        "routing": "moe" if mixture else "dense",
        "framework": row.get(Key.INFERENCE_ENGINE) or row.get(Key.TRAINING_FRAMEWORK) or "",
        "precision": row.get(Key.INFERENCE_WEIGHTS) or row.get(Key.TRAINING_PRECISION) or "",
        "model": row["published_model"],
    }
    return tags | {name: row[name] for name in _TAG_COLUMNS if row.get(name)}


def _bucket(value: float, limits: tuple[tuple[float, str], ...], beyond: str) -> str:
    return next((name for limit, name in limits if value < limit), beyond)


def parallelism_class(plan: Mapping[str, object]) -> str:
    """Return the ways a plan spreads the model, such as ``fsdp``, ``tp+pp`` or ``single``."""
    split = [name for name in ("tp", "pp", "cp", "ep") if int(str(field(plan, f"parallelism.{name}") or 1)) > 1]
    if field(plan, Key.PARALLELISM_ZERO) == 3:
        split.insert(0, "fsdp")
    if split:
        return "+".join(split)
    return "data" if int(str(field(plan, Key.PARALLELISM_DP) or 1)) > 1 else "single"
