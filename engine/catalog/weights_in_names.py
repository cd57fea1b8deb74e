"""The format of weights that the name of a model on a hub says, as ``Llama-3.3-70B-Instruct-AWQ`` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog.parsed import parse_shipped

_GGUF_TYPE = re.compile(
    r"(?:^|[-._:/])(IQ\d_[A-Z]+|Q\d_K_[SML]|Q\d_K|Q\d_[01]|TQ\d_0|BF16|F16|F32)(?=$|[-._:/])", re.IGNORECASE
)
_WORD = re.compile(r"[-._:/\s]+")


def gguf_type(name: str) -> re.Match[str] | None:
    """Return where a name says the type of a GGUF file; its first group is the type."""
    return _GGUF_TYPE.search(name)


def format_in_name(name: str) -> str | None:
    """Return the format of weights that a model's name says; None where it says none.

    Args:
        name: a hub id or file name, such as ``Qwen/Qwen3-8B-FP8`` or ``bartowski/gemma-2-9b-it-GGUF:Q4_K_M``.
    """
    gguf = gguf_type(name)
    if gguf is not None:
        return gguf[1].casefold()
    words = f"-{'-'.join(_WORD.split(name.casefold()))}-"
    return next((weights for word, weights in _formats().items() if f"-{word}-" in words), None)


@cache
def _formats() -> Mapping[str, str]:
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "model_names.yaml")
    formats: dict[str, str] = rows["formats"]
    return formats
