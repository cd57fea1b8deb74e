"""Which files of the fleet guide there are, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from capacity_tui.engine.catalog.fleet_files.instance_entries import (
    FleetFileContent,
    Remark,
    add_instances,
    read_commented_json,
)
from capacity_tui.engine.catalog.reading import Document, KeyPath, key_of, nearest
from capacity_tui.engine.catalog.rows.devices import Accelerator, Instance
from capacity_tui.engine.catalog.shipped import parse_shipped
from capacity_tui.engine.catalog.table import Table
from capacity_tui.engine.errors import CapacityError, CatalogError, Place
from capacity_tui.engine.record import dataclass

_SUFFIX = ".json"


@dataclass(frozen=True)
class Known:
    """The catalogue that files are read against."""

    instances: Table[Instance]
    accelerators: Table[Accelerator]  # devices
    ids: Mapping[str, Callable[[str], str | None]]  # by the name of another table, what finds the id of a name in it


def fleet_files_in(folder: Path) -> list[Path]:
    """Return the files of the guide in a folder, under the names that it gives them."""
    return [path for name in words()["names"] if (path := folder / name).is_file()]


def fleet_files_below(folder: Path) -> list[Path]:
    """Return those in a folder and in the folders within it where they are looked for."""
    return [path for inner in words()["folders"] for path in fleet_files_in(folder / inner)]


def fleet_files_at(path: Path) -> list[Path]:
    """Return a file, or those of a folder; raises CatalogError if there is no such file, or none in the folder."""
    if path.is_file():
        return [path]
    guide_files = fleet_files_below(path)
    if not guide_files:
        title = "none of the files exists" if path.is_dir() else "no such file or folder"
        raise CatalogError(title, hint=f"name a folder with {', '.join(words()['names'])}", place=Place(str(path)))
    return guide_files


def is_fleet_file(path: Path) -> bool:
    """Return whether a file is one of the guide's, by what it holds."""
    if path.suffix.casefold() != _SUFFIX:
        return False
    try:
        return bool(list(_sections(read_commented_json(path))))
    except CapacityError:
        return path.name in words()["names"]


def read_fleet_files(paths: Iterable[Path], known: Known) -> FleetFileContent:
    """Return what files of the guide say together; a later one goes over an earlier one.

    What cannot be used is a problem of the answer, and the rest is used.
    """
    content = FleetFileContent()
    for path in paths:
        try:
            document = read_commented_json(path)
            sections = list(_sections(document))
            _refuse_others(content, document, sections)
        except CapacityError as problem:
            content.problems.append(problem)
            continue
        for table, at in sections:
            if table == "instances":
                add_instances(content, known.instances, known.accelerators, document, at)
            else:
                add_entries(content, known.ids[table], table, document, at)
    return content


def _sections(document: Document) -> Iterator[tuple[str, KeyPath]]:
    """Yield the table of each section of a file and where the section stands; all of it where it has none."""
    data: Any = document.data
    if not isinstance(data, dict):
        return
    named = {key: table for key, table in words()["sections"].items() if isinstance(data.get(key), dict)}
    yield from ((table, (key,)) for key, table in named.items())
    if not named and data and all(isinstance(entry, dict) for entry in data.values()):
        fields = {field for entry in data.values() for field in entry}
        counts = {table: len(fields.intersection(signs)) for table, signs in words()["signs"].items()}
        best = max(counts, key=lambda table: counts[table])
        if counts[best]:
            yield best, ()


def _refuse_others(content: FleetFileContent, document: Document, sections: list[tuple[str, KeyPath]]) -> None:
    """Tell what a file holds that is no section of these files."""
    data = document.data
    if not sections:
        hint = f"begin with one of {', '.join(words()['sections'])}"
        raise CatalogError("not a file of instances, sizes or workloads", hint=hint, place=document.place())
    if not isinstance(data, dict) or sections == [(sections[0][0], ())]:
        return
    for key in data.keys() - words()["sections"].keys():
        near = nearest(key, words()["sections"])
        hint = f"nearest known: {near[0]}" if near else f"known: {', '.join(words()['sections'])}"
        content.problems.append(CatalogError("unknown section", repr(key)[:60], hint, document.place(key)))
    for key in words()["sections"].keys() & data.keys():
        if not isinstance(data[key], dict):
            content.problems.append(
                CatalogError("not a block of entries", hint="write {...}", place=document.place(key))
            )


_OVERHEAD = "memory_overhead_multiplier"
_TYPE = "workload_type"


@cache
def words() -> Mapping[str, Any]:
    """Return what tells the sections of these files, and their words."""
    table: dict[str, Any] = parse_shipped("fleet_files.yaml")
    return table


def guide_instances() -> tuple[str, ...]:
    """Return the names of the guide's instances."""
    return tuple(words()["instances"])


def add_entries(
    content: FleetFileContent, id_of: Callable[[str], str | None], section: str, document: Document, at: KeyPath
) -> None:
    """Add the rows of a section, which stands ``at`` a path of the document; ``id_of`` finds known rows by name."""
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
