"""Words of a line that change nothing in its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import hardware_facts, resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.plan import DETECTED, Plan, all_fields, edited, plan_fields
from capacity_tui.engine.plan.line import OneLine
from capacity_tui.engine.schema import AUTO

_TOKENS, _NO_TOKENS = "tok", "this kind of model reads no tokens"
_SOME = 2  # Of what a line asks how many there may be: more than one, or none


def idle_words(line: OneLine, plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield the words of a line that change nothing in its plan, and why: ``batch 32`` beside a load."""
    idle = _idle_paths(plan, catalog)
    if idle.keys() & line.values.keys() and line.asked is not None:
        idle = _idle_paths(_with_what_is_asked(line, plan, catalog), catalog)
    for word in line.words if idle else ():
        own = {path for path, value in word.meaning.values.items() if not _is_usual(path, value)}
        if own and all(path in idle and line.values.get(path) == word.meaning.values[path] for path in own):
            yield f"{word.text or word.meaning.words}: no effect here: {idle[min(own)]}"


def _idle_paths(plan: Plan, catalog: Catalog) -> Mapping[str, str]:
    """Return the fields that change nothing in a plan on its hardware, and why."""
    facts, kind = None, presumed_family(plan.model.name, catalog).kind
    if plan.hardware.name not in (None, AUTO, DETECTED):
        with suppress(CapacityError):
            facts = hardware_facts(resolve_cluster(plan.hardware, plan.pricing, catalog))
    lengths = (path for path, field in all_fields().items() if field.knob.unit == _TOKENS)
    others = (path for path in lengths if kind not in (all_fields()[path].knob.families or (kind,)))
    entries = plan_fields(plan, kind, None, catalog, facts)
    return {**dict.fromkeys(others, _NO_TOKENS), **{entry.path: entry.idle for entry in entries if entry.idle}}


def _with_what_is_asked(line: OneLine, plan: Plan, catalog: Catalog) -> Plan:
    """Return a plan with some of what a line asks, as adapters, so that what depends on them has its effect."""
    try:
        return plan if line.asked is None else edited(plan, {line.asked.solve: _SOME}, catalog).plan
    except CapacityError:
        return plan


def _is_usual(path: str, value: object) -> bool:
    """Whether a field has the value that it has anyway."""
    field = all_fields().get(path)
    return value in (AUTO, None, 1, False) or (field is not None and value == field.default)
