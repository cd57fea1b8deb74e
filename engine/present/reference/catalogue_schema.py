"""The schema of catalogue files, for editors: rows by id, with what each field means."""

from __future__ import annotations

from capacity_tui.engine.catalog import LIKE, Catalog, Table
from capacity_tui.engine.catalog.rows import Row
from capacity_tui.engine.present.reference.json_schema import DIALECT, Schema, definitions_of

_FILLED_IN = ("id", "provenance", "overrides")
"""Fields that the program gives itself."""
_LIKE: Schema = {"type": "string", "description": "another row of this table: what this row does not give is as there"}


def catalogue_schema(table: Table[Row]) -> Schema:
    """Return the JSON schema of the files of a table.

    No field of a row is demanded: one of the user's own may lie over a shipped one, or be like another.
    """
    definitions = definitions_of(table.row_type)
    row = definitions[table.row_type.__name__]
    row.pop("required", None)
    given = {name: field for name, field in row["properties"].items() if name not in _FILLED_IN}
    row["properties"] = {LIKE: _LIKE, **given}
    rows: Schema = {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{table.row_type.__name__}"}}
    return {"$schema": DIALECT, "title": f"capacity-tui {table.file}", **rows, "$defs": definitions}


def aliases_schema(catalog: Catalog) -> Schema:
    """Return the JSON schema of the file of aliases: of each table, names and the ids that they stand for."""
    names: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
    tables: Schema = {"type": "object", "properties": dict.fromkeys(catalog.aliases, names)}
    return {"$schema": DIALECT, "title": "capacity-tui aliases", **tables, "additionalProperties": False}
