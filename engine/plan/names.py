"""Names in a plan that stand for rows of a catalogue, the user's own among them."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.plan.plan import AUTO, Plan

UNNAMED = "plain"
"""Row of training software that is not named, or that nothing is known about."""


def refuse_unknown_names(plan: Plan, catalog: Catalog) -> None:
    """Check that the catalogue has what a plan names in training and inference.

    Raises:
        PlanError: it has not; the hint tells the nearest names.
    """
    for path in ("training.quantization", "inference.weights"):
        name = plan.value(path)
        if isinstance(name, str) and name != AUTO:
            try:
                catalog.quantizations.find(name)
            except CatalogError as error:
                raise PlanError(error.title, error.detail, error.hint, Place(field=path)) from error
    for path, kind in (("training.optimizer", "optimizer"), ("inference.engine", "engine")):
        name, known = str(plan.value(path)), tuple(known_names(path, catalog))
        if name not in known:
            close = nearest(name, known, 1)
            allowed = f"allowed: {', '.join(known)}"
            hint = f"did you mean {close[0]}? {allowed}" if close else allowed
            raise PlanError(f"no {kind} is called {name!r}"[:200], hint=hint, place=Place(field=path))


def known_names(path: str, catalog: Catalog) -> Iterator[str]:
    """Yield the rows a field may name, shipped ones before the user's own; nothing for a field of other values."""
    if path == "training.optimizer":
        yield from catalog.optimizers
    elif path == "training.framework":
        yield from (name for name in catalog.frameworks if name != UNNAMED)
    elif path == "inference.engine":
        # An engine with several back ends has a row for each.
        yield from dict.fromkeys(row.engine for row in catalog.engines.values())
