"""A machine as plain data for JSON: every value with its provenance, nothing that identifies the machine."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.machine.facts import Fact
from capacity_tui.engine.machine.machine import Machine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def machine_as_dict(machine: Machine) -> dict[str, object]:
    """Return the machine as nested dictionaries, lists and scalars.

    A fact becomes ``{"value", "origin", "source"}``, with ``"reason"`` where the value is missing.
    Serial numbers and the like are left out.
    """
    return _record(machine)


def _record(record: DataclassInstance) -> dict[str, object]:
    parts = (part for part in fields(record) if not part.metadata.get("private"))
    return {part.name: _plain(getattr(record, part.name)) for part in parts}


def _plain(value: object) -> object:
    if isinstance(value, Fact):
        fact = {"value": _plain(value.value), "origin": value.origin, "source": value.source}
        return {**fact, "reason": value.reason} if value.value is None else fact
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return _record(value) if is_dataclass(value) and not isinstance(value, type) else value
