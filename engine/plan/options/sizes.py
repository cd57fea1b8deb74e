"""What numbers of options stand for: sizes, counts, rates, and words for those that a tool finds itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.options.tools import UnmodelledError, UnreadError

_EVERY_LAYER = 999  # Of a model, whatever it has
_EXPERTS = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")  # Tensors of the experts of a layer
_OTHERS = ("attn_q", "attn_output", "ffn_gate_inp", "ffn_up_shexp", "ffn_norm")  # Further ones, as of attention
_REPEATED, _MOST_LAYERS = re.compile(r"\)[*+{]|.{401}"), 256  # Patterns that may take for ever, and layers looked at
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
_NINE = (
    Key.PARALLELISM_PP,
    Key.PARALLELISM_TP,
    "replicas",
    Key.TRAINING_MICRO_BATCH,
    "shape.heads",
    Key.TRAINING_SEQ_LEN,
    "shape.hidden",
    "accumulation",
    "per_node",
)
_UNITS = {"": 1, "k": 1000, "m": 10**6, "g": 10**9, "K": 1024, "M": 2**20, "G": 2**30}


def number(value: Plain) -> object:
    """Return a number, also one that is written as text; nothing for null and ``auto``."""
    if value is None or (isinstance(value, str) and value.strip().casefold() in {"auto", "none", "null", ""}):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnreadError("a number")
    try:
        read = float(value)
    except (ValueError, OverflowError):
        raise UnreadError("a number") from None
    if not math.isfinite(read):
        raise UnreadError("a number")
    if not isinstance(value, str):
        return value
    return int(read) if read.is_integer() and "e" not in value.casefold() and "." not in value else read


def size(value: Plain) -> object:
    """Return a size of which 0 and -1 mean that the tool finds it itself."""
    parsed = number(value)
    return parsed if isinstance(parsed, int | float) and parsed >= 1 else None


def count(value: Plain) -> object:
    """Return a count such as ``32k`` (thousands) or ``32K`` (of 1024)."""
    match = _COUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return size(value)
    return round(float(match[1]) * _UNITS[match[2]])


def filling_batch(value: Plain) -> object:
    """Return a batch, of which -1 and shares of the memory mean as many as fit; nothing where none is known."""
    given = size(value)
    if given is None and value is not None:
        raise UnmodelledError("as many as fit into the memory: counted as 16", 16)
    return given


def first_size(value: Plain) -> object:
    """Return the least of a range such as ``1:4`` or ``1..4``, the first of ``1024,768`` or ``1024x768``, or a size."""
    first = re.split(r":|\.\.|[,x*]", value)[0] if isinstance(value, str) else value
    first = first[0] if isinstance(first, list) and first else first
    return None if first in ("gpu", "auto", "cpu") else size(first)


def rate(value: Plain) -> object:
    """Return how many requests are sent a second; nothing where all are sent at once."""
    return None if str(value).casefold() == "inf" else number(value)


def half(value: Plain) -> object:
    """Return the half of a width that gate and up projection share, as OLMo counts it."""
    whole_width = size(value)
    return None if whole_width is None else {"shape.ffn": int(str(whole_width)) // 2}


def tokens_together(value: Plain) -> object:
    """Return that a micro-batch is as many sequences as so many tokens hold."""
    given = size(value)
    return None if given is None else {"tokens_together": given, "tokens_fill_batches": True}


def packs(value: Plain) -> object:
    """Return that a micro-batch is a row of so many tokens, or of the sequences that these hold."""
    filled = tokens_together(value)
    return {**filled, Key.TRAINING_SEQ_LEN: size(value)} if isinstance(filled, dict) else None


def low_rank(value: Plain) -> object:
    """Return the rank among the arguments of an optimizer: ``rank=64, scale=0.25``, or a mapping of them."""
    given = re.search(r"\brank\W+(\d+)", str(value))
    return None if given is None else {"low_rank": int(given[1])}


def training_config(value: Plain) -> object:
    """Return the nine numbers of estimate-train-time's list."""
    if not isinstance(value, list) or len(value) != len(_NINE):
        raise UnreadError("nine numbers: pp, mp, dp, b, h, l, dim, steps_per_update, gpus_per_node")
    return dict(zip(_NINE, map(number, value), strict=True))


def overridden(value: Plain) -> object:
    """Return the layers whose experts are put into host memory, as ``blk.(1[0-9]).ffn_.*_exps.=CPU`` of llama.cpp."""
    patterns = [part.rpartition("=") for part in re.split(r"(?<==CPU),", str(value), flags=re.IGNORECASE)]
    if all(where.strip().upper() == "CPU" and not _REPEATED.search(pattern) for pattern, _, where in patterns):
        with suppress(re.error):
            sought = [re.compile(pattern) for pattern, *_ in patterns]
            held = [tensors for layer in range(_MOST_LAYERS) if (tensors := _matched(sought, layer))]
            if held and all(tensors == {*_EXPERTS} for tensors in held):
                return _EVERY_LAYER if len(held) == _MOST_LAYERS else len(held)
    raise UnmodelledError("tensors on devices of their own: counted where the layers are; of experts set n_cpu_moe")


def _matched(patterns: Sequence[re.Pattern[str]], layer: int) -> set[str]:
    """Return the kinds of tensors of a layer, by their names in a GGUF, that patterns match."""
    names = {kind: f"blk.{layer}.{kind}.weight" for kind in (*_EXPERTS, *_OTHERS)}
    return {kind for kind, name in names.items() if any(pattern.search(name) for pattern in patterns)}
