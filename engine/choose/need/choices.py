"""What may take the place of a name: rows of the catalogue, or the choices of a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.need.bounds import NAME, PARAMETERS, Bounds
from capacity_tui.engine.choose.need.names import Choice
from capacity_tui.engine.choose.search.axes import ANY
from capacity_tui.engine.choose.search.catalogue_names import hardware_ids, model_names
from capacity_tui.engine.choose.search.question import Goal, Question
from capacity_tui.engine.choose.space.open_axes import choices_of
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan, all_fields

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

HARDWARE, DEVICES, INTERCONNECT = Key.HARDWARE_NAME, Key.HARDWARE_DEVICES, Key.HARDWARE_INTERCONNECT


def names_of(path: str, plan: Plan, catalog: Catalog) -> tuple[object, ...]:
    """Return what a field may name; nothing for numbers and texts, and for what is only reported.

    Args:
        path: the field, or the size of the model, which is that of a row.
    """
    if path in (NAME, PARAMETERS):
        return model_names((ANY,), plan, catalog)
    if path == HARDWARE:
        return hardware_ids((ANY,), catalog)
    if path == INTERCONNECT:
        return tuple(catalog.links)
    known = all_fields().get(path)
    return () if known is not None and known.knob.role == "output" else choices_of(path, catalog)


def choices(path: str, question: Question, catalog: Catalog, machine: Machine | None = None) -> Iterator[Choice]:
    """Yield every name with every combination of what else may change.

    Args:
        path: the field that is asked for, or the size of the model.
        question: the plan, and what else may change.
    """
    bounds = Bounds(question.plan, catalog, machine)
    asked: Mapping[str, tuple[str, ...]] = {
        HARDWARE: question.hardware,
        NAME: question.models,
        PARAMETERS: question.models,
    }
    named = asked.get(path) or names_of(path, question.plan, catalog)
    for name, others in product(named, besides(path, question)):
        field = NAME if path == PARAMETERS else path
        change = {field: name, **others}
        yield Choice(change, bounds.at_best(change))


def besides(path: str, question: Question) -> tuple[Mapping[str, object], ...]:
    """Return what else a choice may change: combinations of hardware, devices and the fields that vary."""
    axes = [(axis.path, axis.values) for axis in question.vary]
    axes += [(NAME, question.models)] if question.models and path not in (NAME, PARAMETERS) else []
    axes += [(HARDWARE, question.hardware)] if question.hardware and path != HARDWARE else []
    axes += [(DEVICES, question.devices)] if question.devices else []
    names = [name for name, _ in axes]
    return tuple(dict(zip(names, values, strict=True)) for values in product(*(values for _, values in axes)))


def usual_goal(path: str, plan: Plan) -> Goal:
    """Return what decides between names that keep the limits where nobody says: size, price, or speed."""
    if path in (NAME, PARAMETERS):
        return Goal(PARAMETERS, "more")
    if path == HARDWARE and plan.task == "infer":
        return Goal(Figure.COST_USD_PER_HOUR)
    if path == HARDWARE:
        has_length = any(getattr(plan.training, name) is not None for name in ("tokens", "steps", "epochs"))
        return Goal(Figure.COST_USD if has_length else Figure.COST_USD_PER_MILLION_TOKENS)
    return Goal(Figure.TOKENS_PER_SECOND, "more")
