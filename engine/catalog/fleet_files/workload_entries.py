"""Sizes, workloads and sets of the fleet guide's files as rows: the same fields, with its words put in ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog.fleet_files.field_reader import FleetFileContent, Remark
from capacity_tui.engine.catalog.names import key_of
from capacity_tui.engine.catalog.parsed import parse_shipped
from capacity_tui.engine.catalog.reading import Document, KeyPath

_OVERHEAD = "memory_overhead_multiplier"
_TYPE = "workload_type"


@cache
def words() -> Mapping[str, Any]:
    """Return what tells the sections of these files, and their words."""
    table: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "fleet_files.yaml")
    return table


def guide_instances() -> tuple[str, ...]:
    """Return the names of the guide's instances."""
    return tuple(words()["instances"])


def add_entries(
    content: FleetFileContent, id_of: Callable[[str], str | None], section: str, document: Document, at: KeyPath
) -> None:
    """Add the rows of one section of a file.

    Args:
        content: gets them.
        id_of: returns the id of a row that is known by a name.
        section: name of the section, which is that of the table too.
        document: the file.
        at: where the section stands in it.
    """
    data: Any = document.data
    for step in at:
        data = data[step]
    rows: dict[str, tuple[KeyPath, Any]] = {}
    for name, entry in data.items():
        path = (*at, name)
        rows[id_of(name) or name] = (path, _in_our_words(content, entry, section, document, path))
    content.add(section, document, rows)


def _in_our_words(content: FleetFileContent, entry: Any, section: str, document: Document, path: KeyPath) -> Any:
    if section == "workload_sets" and isinstance(entry, list):
        return {"workloads": entry}
    if not isinstance(entry, dict):
        return entry
    if section == "model_sizes" and _OVERHEAD in entry:
        why = "not used: memory of states, gradients, activations and cache is counted part by part"
        content.remarks.append(Remark(document.place(*path, _OVERHEAD), f"{_OVERHEAD} is {why}"))
        return {key: value for key, value in entry.items() if key != _OVERHEAD}
    scenario = entry.get("scenario")
    if section == "workloads" and isinstance(scenario, dict) and isinstance(scenario.get(_TYPE), str):
        meant = words()["workload_types"].get(key_of(scenario[_TYPE]), scenario[_TYPE])
        return {**entry, "scenario": {**scenario, _TYPE: meant}}
    return entry
