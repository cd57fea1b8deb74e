"""Tables of a plan as one typed line: ``memory_mib=49152 bandwidth_gbs=900``, ``8xh100; 4xa100``, or YAML."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from pydantic import BaseModel

from capacity_tui.engine.catalog import read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.plan import counted_name

_NAME, _DEVICES = "name", "devices"


def table_text(value: object) -> str:
    """Return a table, or a list of them, as a person would type it; empty for none."""
    if isinstance(value, list | tuple):
        return "; ".join(map(table_text, value))
    entries = _entries(value)
    name, devices = entries.get(_NAME), entries.get(_DEVICES)
    words = []
    if isinstance(name, str) and " " not in name:
        words.append(f"{devices}x{name}" if isinstance(devices, int) else name)
        entries = {key: entry for key, entry in entries.items() if key not in (_NAME, _DEVICES)}
    return " ".join([*words, *(f"{key}={_written(entry)}" for key, entry in entries.items())])


def table_of(path: str, text: str, is_list: bool) -> object:
    """Return the table, or the list of them, that a typed text stands for; an empty text stands for none.

    Args:
        path: the field, for messages.
        text: what was typed: words and ``key=value`` with spaces between, ``;`` between tables of a list; or YAML.
        is_list: whether the field holds a list of tables.

    Raises:
        PlanError: a word is neither a name nor ``key=value``.
    """
    typed = text.strip()
    if typed.startswith(("{", "[")):
        return _read(path, typed)
    parts = [part.strip() for part in typed.split(";")] if is_list else [typed]
    tables = [_table(path, part, is_list) for part in parts if part]
    return tables if is_list else next(iter(tables), {})


def _table(path: str, text: str, is_named: bool) -> dict[str, object]:
    from capacity_tui.engine.plan.line.hardware_words import figures_of  # noqa: PLC0415 - few plans are typed

    table: dict[str, object] = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        figures = figures_of(word) if path == Key.HARDWARE_SPEC else None
        if equals and key and value:
            table[key] = _read(path, value)
        elif figures is not None:
            table |= figures
        elif is_named and not equals:
            count = counted_name(word)
            table |= {_NAME: count[1], _DEVICES: count[0]} if count else {_NAME: word}
        else:
            raise PlanError("not key=value", repr(word)[:60], "write key=value with spaces between", Place(field=path))
    return table


def _entries(value: object) -> dict[str, object]:
    """Return the keys of a table that somebody wrote."""
    if isinstance(value, BaseModel):
        return {name: entry for name, entry in value if name in value.model_fields_set}
    return dict(value) if isinstance(value, Mapping) else {}


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, Mapping):
        return f"{{{_flow(value.items())}}}"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _flow(entries: Iterable[tuple[object, object]]) -> str:
    return ",".join(f"{key}: {_written(entry)}" for key, entry in entries)


def _read(path: str, text: str) -> object:
    try:
        return read_yaml(text).data
    except DocumentError as error:
        raise PlanError(error.title, error.detail, "write key=value with spaces between", Place(field=path)) from error


def leaves(data: Mapping[str, object], whole: Collection[str] = (), under: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of nested sections by their paths, those of some sections together.

    Args:
        data: the sections.
        whole: paths of the sections that are one value.
        under: what the paths begin with.
    """
    for name, value in data.items():
        path = f"{under}{name}"
        if isinstance(value, Mapping) and value and path not in whole:
            yield from leaves(value, whole, f"{path}.")
        else:
            yield path, value
