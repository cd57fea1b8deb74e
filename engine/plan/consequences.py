"""How fields follow one another: the rules that the metadata of fields name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.model_change import brought_by_model
from capacity_tui.engine.plan.plan import AUTO, Plan, counted_name
from capacity_tui.engine.plan.sections.adapter import FULL, METHODS
from capacity_tui.engine.schema import Rule


class Unset:
    """What stands for the value that a field has where a plan gives none."""


GIVEN_BACK: Final = Unset()
UNCHANGED: Final = object()
"""What a rule returns where nothing follows."""


@dataclass(frozen=True, slots=True)
class Change:
    """A field that was changed, and another that may follow it.

    Attributes:
        before: the plan as it was.
        after: the plan with the change, checked.
        trigger: path of the field that was changed.
        path: path of the field that may follow.
        given: catalogue to look names up in; None for the shipped one with the user's own.
    """

    before: Plan
    after: Plan
    trigger: str
    path: str
    given: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """Facts about what a plan names."""
        return self.given or load_catalog()

    @property
    def now(self) -> object:
        """The value of the field that may follow."""
        return self.after.value(self.path)

    @property
    def is_written(self) -> bool:
        """Whether the plan gives the field that may follow another value than its default."""
        section, _, name = self.path.rpartition(".")
        holder = self.after.value(section) if section else self.after
        if not isinstance(holder, BaseModel):
            return False
        return bool(self.now != type(holder).model_fields[name].get_default(call_default_factory=True))


def _given_back(change: Change) -> object:
    return GIVEN_BACK if change.is_written else UNCHANGED


def _counted(change: Change) -> object:
    """Keep the number of devices among accelerators; an instance or a processor has its own."""
    name = change.after.hardware.name
    if change.before.hardware.devices != change.now or change.catalog.accelerators.find_id(name) is not None:
        return UNCHANGED
    return _given_back(change)


def _refilled(change: Change) -> object:
    return GIVEN_BACK if isinstance(change.now, int) else UNCHANGED


def _divided(change: Change) -> object:
    """Give back a sharding group that no longer divides the replicas, where their number is known."""
    parallel, devices = change.after.parallelism, change.after.hardware.devices
    if not isinstance(parallel.shard, int) or AUTO in (parallel.tp, parallel.pp, parallel.cp, parallel.dp):
        return UNCHANGED
    replicas = parallel.dp
    if replicas is None or change.trigger != Key.PARALLELISM_DP:
        model = int(parallel.tp or 1) * int(parallel.pp or 1) * int(parallel.cp)
        replicas = None if devices is None else devices // model
    if replicas is None or int(replicas) * int(parallel.cp) % parallel.shard == 0:
        return UNCHANGED
    return GIVEN_BACK


def _single(change: Change) -> object:
    if change.now == AUTO:
        return UNCHANGED
    return GIVEN_BACK if change.after.value(change.trigger) == 1 and change.is_written else UNCHANGED


def _scaled(change: Change) -> object:
    """Keep the price of a device: the same hardware, more or fewer of it."""
    before, after, price = change.before.hardware, change.after.hardware, change.now
    if not isinstance(price, float) or before.name != after.name or before.devices is None or after.devices is None:
        return UNCHANGED
    return price * after.devices / before.devices


def _model(change: Change) -> object:
    brought = brought_by_model(change.before, change.after, change.catalog).get(change.path, UNCHANGED)
    return UNCHANGED if brought == change.now else GIVEN_BACK if brought is None else brought


RULES: Mapping[Rule, Callable[[Change], object]] = {
    "given back": _given_back,
    "open": lambda _: AUTO,
    "counted": _counted,
    "refilled": _refilled,
    "divided": _divided,
    "single": _single,
    "scaled": _scaled,
    "model": _model,
}
"""What follows in a plan that is sound after a change."""


def _replaced(value: object, _: object) -> object:
    return UNCHANGED if value in (None, GIVEN_BACK) else GIVEN_BACK


def _count_replaced(value: object, _: object) -> object:
    return GIVEN_BACK if counted_name(value) else UNCHANGED


def _adapter(method: object, adapter: object) -> object:
    """Return the adapter of a method: as it was but of that kind, none for training all weights."""
    if method not in METHODS or method == FULL:
        return GIVEN_BACK
    before = (
        {name: getattr(adapter, name) for name in adapter.model_fields_set} if isinstance(adapter, BaseModel) else {}
    )
    return {**before, "kind": method}


REPLACING: Mapping[Rule, Callable[[object, object], object]] = {
    "replaced": _replaced,
    "counted": _count_replaced,
    "adapter": _adapter,
    "method": lambda *_: GIVEN_BACK,
}
"""What has to change along before a plan is sound at all, from the new value and the one that follows."""
