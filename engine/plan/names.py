"""Names in a plan that refer to catalogue rows, the user's own among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache

from capacity_tui.engine.catalog import (
    UNNAMED_ENGINE,
    Catalog,
    named_release,
    nearest,
    read_yaml,
    release_text,
    rows_of_release,
    with_left_out,
)
from capacity_tui.engine.errors import CatalogError, DocumentError, Place, PlanError
from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS, all_fields, field_meant, paths_where
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.sections import NO_MASTER
from capacity_tui.engine.plan.validation import checked_plan
from capacity_tui.engine.schema import AUTO, Knob

UNNAMED = "plain"  # Row of training software that is not named, or that nothing is known about

# What stands between the names of several programs in one: "transformers + deepspeed", "trainer (fsdp)".
_BETWEEN = re.compile(r"[+/,;&()]|\s(?:with|on|and|using)\s", re.IGNORECASE)

# Releases beside a name: "0.12", "v2.1.0", "r24.07".
_RELEASE = re.compile(r"\b(?:core_)?[vr]?\d+(?:\.\d+)+\S*", re.IGNORECASE)

FASTEST = "flash"  # What a plan writes for the best kernel of attention that device and framework have

# The rows of each kind that a field may name, with their names for people, shipped ones before the user's own.
_OFFERED: Mapping[str, Callable[[Catalog], Mapping[str, str]]] = {
    "precision": lambda facts: {id_: row.name for id_, row in facts.precisions.items() if row.trains},
    "precision of master weights": lambda facts: {
        **{id_: row.name for id_, row in facts.precisions.items() if row.master},
        NO_MASTER: "",
    },
    "precision of gradients": lambda facts: {id_: row.name for id_, row in facts.precisions.items() if row.gradients},
    "optimizer": lambda facts: {id_: row.name for id_, row in facts.optimizers.items()},
    "attention kernel": lambda facts: {FASTEST: "", **{id_: row.name for id_, row in facts.attention_kernels.items()}},
    "checkpointing": lambda facts: {id_: row.name for id_, row in facts.checkpointings.items()},
    "framework": lambda facts: {id_: row.name for id_, row in facts.frameworks.items() if id_ != UNNAMED},
    "format of frozen weights": lambda facts: {id_: row.name for id_, row in facts.quantizations.items() if row.base},
    "format of weights": lambda facts: {id_: row.name for id_, row in facts.quantizations.items() if row.offered},
    "format of the cache": lambda facts: {id_: row.name for id_, row in facts.quantizations.items() if row.kv_cache},
    "region": lambda facts: {id_: row.name for id_, row in facts.regions.items()},
    "data format": lambda facts: {id_: row.name for id_, row in facts.data_formats.items()},
    # An engine with several back ends has a row for each; older releases go by the names of their rows.
    "engine": lambda facts: {
        row.engine if row.until is None else row.id: row.name
        for row in facts.engines.values()
        if row.id != UNNAMED_ENGINE and not (row.until and row.vendors)
    },
}

# Kinds of which a plan may name nothing but these rows.
_CLOSED = {
    "precision",
    "precision of master weights",
    "precision of gradients",
    "optimizer",
    "attention kernel",
    "format of the cache",
    "data format",
}


def software_id(name: str | None, catalog: Catalog) -> str:
    """Return the row of training software that a name stands for, or of what that is built on.

    Of several names in one the first that is known counts, ``UNNAMED`` where none is. Where releases differ, one behind
    ``==`` chooses the row.

    Raises:
        CatalogError: no row stands for the release.
    """
    if name is None:
        return UNNAMED
    name, release = named_release(name)
    parts = (name, *_BETWEEN.split(name))
    tried = (catalog.frameworks.find_id(_RELEASE.sub("", part).strip(" -_")) for part in parts)
    row_id = next((row_id for row_id in tried if row_id not in (None, UNNAMED)), None) or UNNAMED
    if not release or row_id == UNNAMED:
        return row_id
    current = catalog.frameworks[row_id].release_of or row_id
    rows = (catalog.frameworks[current], *catalog.frameworks.where("release_of", current))
    return rows_of_release(rows, name, release)[0].id


def without_release(name: str, catalog: Catalog) -> str:
    """Return software without its release where no row is of some releases alone, as ``ollama`` of ``ollama==0.5``."""
    software, release = named_release(name)
    if not release:  # as most words of a line have none
        return name
    engine, framework = catalog.engines.find_id(software), catalog.frameworks.find_id(software)
    if engine is framework is None:
        return name
    try:
        engines = () if engine is None else catalog.engine_rows(name)
        frameworks = () if framework is None else (catalog.frameworks[software_id(name, catalog)],)
    except CatalogError:  # no such release: said where the name is read
        return name
    return name if any(map(release_text, (*engines, *frameworks))) else software


# Kinds of which names may also stand for a row of their own making.
_LOOKUPS: Mapping[str, Callable[[str, Catalog], object]] = {
    "checkpointing": checkpointing,
    "format of frozen weights": lambda name, facts: facts.quantizations.find(name),
    "format of weights": lambda name, facts: facts.quantizations.find(name),
    "region": lambda name, facts: facts.regions.find(name),
    "engine": lambda name, facts: facts.engine_rows(name),
    "framework": software_id,
}


def refuse_unknown_names(plan: Plan, catalog: Catalog) -> None:
    """Raise PlanError where training or inference names what the catalogue has not, with the nearest names."""
    faults = tuple(_faults(plan, catalog))
    if faults:
        faults[0].further = faults[1:]
        raise faults[0]


def known_names(path: str, catalog: Catalog) -> Iterator[str]:
    """Yield the rows a field may name, shipped ones before the user's own; nothing for a field of other values."""
    yield from known_words(path, catalog)


def known_words(path: str, catalog: Catalog) -> Mapping[str, str]:
    """Return the rows a field may name with what they are called; nothing for a field of other values."""
    field = all_fields().get(path)
    return _OFFERED[field.knob.rows](catalog) if field is not None and field.knob.rows else {}


def is_closed(path: str) -> bool:
    """Return whether a field may name nothing but the rows of ``known_words``."""
    field = all_fields().get(path)
    return field is not None and field.knob.rows in _CLOSED


@lru_cache(maxsize=64)
def _closed_names(path: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the names of a field, kept: they are looked at with every estimate."""
    return tuple(known_names(path, catalog))


def _names_rows(knob: Knob) -> bool:
    return bool(knob.rows)


def _faults(plan: Plan, catalog: Catalog) -> Iterator[PlanError]:
    for path in paths_where(_names_rows):
        name, kind = plan.value(path), all_fields()[path].knob.rows
        if name is None or name == AUTO:
            continue
        if kind in _LOOKUPS:
            try:
                _LOOKUPS[kind](str(name), catalog)
            except CatalogError as error:
                yield PlanError(error.title, error.detail, error.hint, Place(field=path))
        elif kind in _CLOSED:
            known = _closed_names(path, catalog)
            if name not in known:
                close = nearest(str(name), known, 1)
                allowed = f"allowed: {', '.join(known)}"
                hint = f"did you mean {close[0]}? {allowed}" if close else allowed
                hint = with_left_out(hint, str(name), catalog.problems)
                if kind == "precision" and name in catalog.precisions:
                    yield _refused_in_training(str(name), allowed, path)
                    continue
                yield PlanError(f"no {kind} is called {name!r}"[:200], hint=hint, place=Place(field=path))


def _refused_in_training(name: str, allowed: str, path: str) -> PlanError:
    """Return why no training runs in a format that only stores weights, and where it can be used."""
    hint = (
        f"serve in it with task: infer and inference.weights: {name}, or train adapters on quantized weights with "
        f"task: finetune and training.method: qlora; {allowed}"
    )
    return PlanError(f"training does not run in {name}", "gradients need a wider type", hint, Place(field=path))


_ANY_MODEL = "transformer_decoder"  # A model that every field of a plan may stand beside


def field_path(name: str) -> str:
    """Return the path of a field by it, or by its end where no other ends so; PlanError names the nearest."""
    known = all_fields()
    if name in known or (name.startswith(OWN_PARAMETERS) and name != OWN_PARAMETERS):
        return name
    by_end = _paths_by_end().get(name, ())
    if len(by_end) == 1:
        return by_end[0]
    field = field_meant(name.rpartition(".")[2])
    near = by_end or ((field,) if field else nearest(name, (*known, *_paths_by_end())))
    hint = f"did you mean {' or '.join(near[:4])}?" if near else "see `capacity-tui examples` for the keys of a plan"
    raise PlanError("no field is called", repr(name)[:80], hint, Place(field=name))


def field_value(path: str, text: str, catalog: Catalog) -> object:
    """Return the value of a field that a text stands for, as a plan would hold it."""
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
