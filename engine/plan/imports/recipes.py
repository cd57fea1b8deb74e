"""What runs are called by other tools, and the devices that they are given."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.keys import Key

_RECIPE = re.compile(r"(.+?)_(?:low_precision_)?(pretrain|sft|peft|finetune|lora|dora)(_.*)?_config(?:_.*)?")
_TUNED = re.compile(r"([a-z0-9_.]+/\d+(?:\.\d+)?B)(?:_instruct)?_(full|q?lora|dora)(_.*)?")
_MAKERS = frozenset({"nvidia", "amd", "intel", "google", "tpu"})
_SIZE_OR_COUNT = re.compile(r"[\d.]+([kKmMgGtT]i?[bB]?)?(\.\.[\w.]*)?")


class UnmodelledError(ValueError):
    """A value that plans have no word for; the text says what is counted in its place."""


class UnreadError(ValueError):
    """A value that an option cannot have; the text says what it takes."""


def recipe(value: Plain) -> object:
    """Return model, method and number type of a recipe by its name.

    ``llama31_8b_sft_2gpu_h100_bf16_config`` of Megatron-Bridge, ``llama3_1/8B_lora_single_device`` of torchtune.
    """
    match = _RECIPE.fullmatch(str(value)) or _TUNED.fullmatch(str(value))
    if match is None:
        return None
    method = {
        "peft": "lora",
        "lora": "lora",
        "dora": "dora",
        "sft": "full",
        "finetune": "full",
        "full": "full",
        "qlora": "qlora",
    }.get(match[2])
    number = re.search(r"_(fp8|mxfp8|nvfp4)", match[3] or "")
    read: dict[str, object] = {"model": match[1]}
    if method is not None:
        read |= {Key.TRAINING_METHOD: method, Key.TASK: "finetune"}
    if number is not None:
        read[Key.TRAINING_PRECISION] = "fp4" if number[1] == "nvfp4" else "fp8"
    return read


def accelerators(value: Plain) -> dict[str, object]:
    """Return the devices of a node as clouds write them: ``H100:8``, ``80GB:2``, by name, or of several the first."""
    if isinstance(value, dict) and "name" in value:
        value = ":".join(str(part) for part in (_first(value["name"]), value.get("count", 1)))
    parts = str(_first(value)).split(":") if value else []
    names = [part for part in parts if part.casefold() not in _MAKERS and not _SIZE_OR_COUNT.fullmatch(part)]
    counts = [part for part in parts if part.partition("..")[0].isdigit()]
    if not names:
        raise UnreadError("a device and its number, such as H100:8")
    return {Key.HARDWARE_NAME: names[0], "per_process": int(counts[0].partition("..")[0]) if counts else 1}


def any_of(value: Plain) -> object:
    """Return what the first of several sets of resources asks for, which are as good."""
    first = _first(value)
    if not isinstance(first, dict):
        raise UnreadError("a list of resources, such as [{accelerators: H100:8}, {accelerators: H200:8}]")
    asked = accelerators(first["accelerators"]) if first.get("accelerators") else {}
    if first.get("use_spot") is True:
        asked[Key.PRICING_SPOT] = True
    return asked


def _first(value: Plain) -> Plain:
    """Return the first of several that are as good; of a mapping with its value."""
    if isinstance(value, dict):
        return next((f"{name}:{count}" for name, count in value.items()), None)
    return value[0] if isinstance(value, list) and value else value
