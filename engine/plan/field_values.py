"""Values of one plan field as people type them, checked by what is known of the field."""

from __future__ import annotations

from functools import cache

from capacity_tui.engine.catalog import Catalog, nearest, read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.plan.all_fields import OWN_PARAMETERS, all_fields
from capacity_tui.engine.plan.checked import checked_plan
from capacity_tui.engine.plan.field_texts import field_meant
from capacity_tui.engine.plan.names import refuse_unknown_names

# A model that every field of a plan may stand beside.
_ANY_MODEL = "transformer_decoder"


def field_path(name: str) -> str:
    """Return the path of a field by its path, or by the end of it where no other field ends so.

    Raises:
        PlanError: there is no such field; the hint tells the nearest.
    """
    known = all_fields()
    if name in known or (name.startswith(OWN_PARAMETERS) and name != OWN_PARAMETERS):
        return name
    by_end = _paths_by_end().get(name, ())
    if len(by_end) == 1:
        return by_end[0]
    meant = field_meant(name.rpartition(".")[2])
    near = by_end or ((meant,) if meant else nearest(name, (*known, *_paths_by_end())))
    hint = f"did you mean {' or '.join(near[:4])}?" if near else "see `capacity-tui examples` for the keys of a plan"
    raise PlanError("no field is called", repr(name)[:80], hint, Place(field=name))


def field_value(path: str, text: str, catalog: Catalog) -> object:
    """Return the value of a field that a text stands for, as a plan would hold it.

    Raises:
        PlanError: the field does not take it; the hint tells what is allowed.
    """
    try:
        written = read_yaml(text).data
    except DocumentError as error:
        raise PlanError(error.title, error.detail, "write a number or a word", Place(field=path)) from error
    if path.startswith(OWN_PARAMETERS):
        return written
    data: dict[str, object] = {"model": {"name": _ANY_MODEL}}
    section = data
    *parents, last = path.split(".")
    for parent in parents:
        inner = section.setdefault(parent, {})
        assert isinstance(inner, dict)  # noqa: S101 - only sections were put there
        section = inner
    section[last] = written
    plan = checked_plan(data)
    refuse_unknown_names(plan, catalog)
    return plan.value(path)


def short_name(path: str) -> str:
    """Return the end of a field's path where no other field ends so; else all of it."""
    end = path.rpartition(".")[2]
    return end if _paths_by_end().get(end, (path,)) == (path,) else path


@cache
def _paths_by_end() -> dict[str, tuple[str, ...]]:
    paths: dict[str, tuple[str, ...]] = {}
    for path in all_fields():
        end = path.rpartition(".")[2]
        paths[end] = (*paths.get(end, ()), path)
    return paths
