"""What each field of a plan and each of its choices means, in plain English: ``profiles/fields.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from capacity_tui.engine.catalog.parsed import parse_shipped


@dataclass(frozen=True, slots=True)
class FieldText:
    """The words of one field.

    Attributes:
        help: what it is and why it matters, in two sentences.
        choices: a few words for each value.
        synonyms: other words under which people look for it.
    """

    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    synonyms: tuple[str, ...] = ()


def field_text(path: str) -> FieldText:
    """Return the words of a field by its dotted path; empty ones for a field that has none."""
    return _texts().get(path, FieldText())


@cache
def _texts() -> dict[str, FieldText]:
    rows = parse_shipped(files("capacity_tui.profiles") / "fields.yaml")["fields"]
    return {
        path: FieldText(row["help"], row.get("choices", {}), tuple(row.get("synonyms", ())))
        for path, row in rows.items()
    }
