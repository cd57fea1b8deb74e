"""Activation checkpointing: what each name that a plan may use recomputes."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import Catalog, load_catalog, nearest
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.record import dataclass

# Parts of a layer whose inputs alone can be kept, to run them again in the backward pass.
MODULES = ("attention", "mlp", "norm", "activation", "mla-up", "router", "experts")
NETWORK_CHECKPOINTING = ("none", "full")  # What networks other than transformers may use, the cheaper first
_EVERY = re.compile(r"every-([1-9]\d{0,3})")


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """What the backward pass computes again."""

    full_layers: float = 0.0  # share of the layers of which only the input is kept (0 to 1)
    operations: bool = False  # keeps matrix products, recomputes the rest (op-level selective checkpointing)
    # parts recomputed in the remaining layers; ``attention`` is the score and value products
    modules: frozenset[str] = frozenset()


def checkpointing_name(value: object) -> object:
    """Return the normal spelling of a checkpointing name; leave everything else to the validator."""
    return value.strip().lower().replace("_", "-") if isinstance(value, str) else value


def checkpointing(name: str, catalog: Catalog | None = None) -> Checkpointing:
    """Return what a checkpointing name recomputes: a row, every Nth layer, or modules joined by ``+``."""
    catalog = catalog or load_catalog()
    row = catalog.checkpointings.get(name)
    if row is not None:
        return Checkpointing(row.full_layers, row.operations, _modules(row.modules, name, catalog))
    every = _EVERY.fullmatch(name)
    if every is not None:
        return Checkpointing(full_layers=1.0 / int(every[1]))
    return Checkpointing(modules=_modules(tuple(name.split("+")), name, catalog))


def _modules(names: tuple[str, ...], written: str, catalog: Catalog) -> frozenset[str]:
    if set(names) <= set(MODULES):
        return frozenset(names)
    rows = ", ".join(catalog.checkpointings)
    allowed = f"allowed: {rows}, every-N, or modules joined by + of {', '.join(MODULES)}"
    close = nearest(written, (*catalog.checkpointings, *MODULES), 1)
    hint = f"did you mean {close[0]}? {allowed}" if close else allowed
    raise CatalogError(f"no checkpointing is called {written!r}"[:200], hint=hint)
