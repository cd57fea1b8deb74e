"""Activation checkpointing: the names a plan may use and what each of them recomputes."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Parts of a layer whose inputs alone can be kept, to run them again in the backward pass.
MODULES = ("attention", "mlp", "norm", "activation", "mla-up", "router", "experts")
WHOLE = ("none", "selective", "selective-ops", "full")
ALLOWED = "none, selective, selective-ops, every-N, full, or modules joined by + of " + ", ".join(MODULES)


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """What the backward pass computes again.

    Attributes:
        full_layers: share of the layers of which only the input is kept (0 to 1).
        operations: keeps matrix products, recomputes the rest (op-level selective checkpointing).
        modules: parts recomputed in the remaining layers; ``attention`` is the score and value products.
    """

    full_layers: float = 0.0
    operations: bool = False
    modules: frozenset[str] = frozenset()


def parse_checkpointing(value: object) -> object:
    """Return the normal spelling of a checkpointing name; used by the plan's validator.

    Raises:
        ValueError: naming what is allowed, which the plan's reader turns into a PlanError.
    """
    if not isinstance(value, str):
        raise ValueError(f"allowed: {ALLOWED}")
    name = value.strip().lower().replace("_", "-")
    known = name in WHOLE or name == "auto" or re.fullmatch(r"every-[1-9]\d{0,3}", name)
    if not known and not set(name.split("+")) <= set(MODULES):
        raise ValueError(f"unknown {value!r}; allowed: {ALLOWED}")
    return name


def checkpointing(name: str) -> Checkpointing:
    """Return what a (validated) checkpointing name recomputes."""
    if name == "none":
        return Checkpointing()
    if name == "full":
        return Checkpointing(full_layers=1.0)
    if name == "selective":
        return Checkpointing(modules=frozenset({"attention"}))
    if name == "selective-ops":
        return Checkpointing(operations=True)
    if name.startswith("every-"):
        return Checkpointing(full_layers=1.0 / int(name.removeprefix("every-")))
    return Checkpointing(modules=frozenset(name.split("+")))
