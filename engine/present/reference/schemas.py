"""Every schema there is, by name: of plan files, and of each file of the catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from capacity_tui.engine.catalog import Catalog, nearest
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.present.reference.catalogue_schema import aliases_schema, catalogue_schema
from capacity_tui.engine.present.reference.json_schema import Schema
from capacity_tui.engine.present.reference.plan_schema import plan_schema

PLAN, ALIASES = "plan", "aliases"


def schema_names(catalog: Catalog) -> Mapping[str, str]:
    """Return what each schema describes, by its name."""
    tables = {table.file: f"rows of catalog/{table.file}.yaml" for _, table in catalog.tables()}
    return {PLAN: "plan files", ALIASES: "other names of ids, catalog/aliases.yaml", **dict(sorted(tables.items()))}


def schema_of(name: str, catalog: Catalog) -> Schema:
    """Return the JSON schema of a name.

    Args:
        name: ``plan``, ``aliases``, or the name of a file of the catalogue without its suffix.
        catalog: whose names a plan may have.

    Raises:
        CatalogError: there is no such schema; the hint names the nearest.
    """
    makers: dict[str, Callable[[], Schema]] = {
        PLAN: partial(plan_schema, catalog),
        ALIASES: partial(aliases_schema, catalog),
        **{table.file: partial(catalogue_schema, table) for _, table in catalog.tables()},
    }
    if name not in makers:
        near = nearest(name, makers)
        hint = f"nearest known: {', '.join(near)}" if near else "list them with: capacity-tui schema"
        raise CatalogError(f"no schema is called {name!r}"[:200], hint=hint)
    return makers[name]()


def schema_text(name: str, catalog: Catalog) -> str:
    """Return a schema as the text of a JSON file.

    Raises:
        CatalogError: there is no such schema.
    """
    return json.dumps(schema_of(name, catalog), indent=1, ensure_ascii=False) + "\n"
