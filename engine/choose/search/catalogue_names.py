"""Which rows of the catalogue a question means: by name, all of a maker's or cloud's, or any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.choose.search.axes import ANY
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan import DETECTED, Plan, counted_name, is_model_file
from capacity_tui.engine.plan.line import offered_accelerators

INSTANCES = "instances"
"""What stands for every instance with accelerators that has a price."""


def hardware_ids(names: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return the hardware that names stand for: ids, a maker or cloud for all of its own, ``instances``, or ``any``.

    Raises:
        CatalogError: nothing is called that; the hint tells the nearest.
    """
    return tuple(dict.fromkeys(row_id for name in names for row_id in _hardware(name, catalog)))


def _hardware(name: str, catalog: Catalog) -> Iterator[str]:
    key = key_of(name)
    if key == ANY:
        # What can be rented first: a goal of money has its first answers at once.
        rows = sorted(offered_accelerators(catalog), key=lambda row: not catalog.instances_with(row.id))
        yield from (row.id for row in rows)
        return
    made = [row.id for row in offered_accelerators(catalog) if key_of(row.vendor) == key]
    rented = [
        row.id
        for row in catalog.instances.values()
        if key in (key_of(row.provider), INSTANCES) and row.accelerator and row.on_demand_usd_per_hour is not None
    ]
    if made or rented:
        yield from (*made, *rented)
    elif name == DETECTED or counted_name(name) or name in catalog.clusters:
        yield name
    else:
        yield catalog.find_hardware(name).id


def model_names(names: Iterable[str], plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """Return the models that names stand for; ``any`` is every one of the catalogue of the same kind, largest first.

    Args:
        plan: whose model says the kind.

    Raises:
        PlanError: no model is called that; the hint tells the nearest.
    """
    models: list[str] = []
    for name in names:
        if key_of(name) != ANY:
            if not is_model_file(name, catalog):
                family_of(name, catalog)
            models.append(name)
            continue
        own = None if plan.model.name is None else catalog.architectures.find_id(plan.model.name)
        kind = "decoder" if own is None else catalog.architectures[own].kind
        rows = [row for row in catalog.architectures.values() if row.kind == kind and row.params_total]
        models += (row.id for row in sorted(rows, key=lambda row: -(row.params_total or 0)))
    return tuple(dict.fromkeys(models))
