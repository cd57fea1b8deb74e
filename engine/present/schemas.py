"""JSON Schemas of plan files and of the catalogue's data files, for editors and for checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel

from capacity_tui.engine.catalog import LIKE, Catalog, Table, nearest
from capacity_tui.engine.catalog.rows import Row
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import known_models
from capacity_tui.engine.plan import (
    DETECTED,
    OWN_PARAMETERS,
    KnownField,
    Plan,
    all_fields,
    field_text,
    is_closed,
    known_words,
)
from capacity_tui.engine.plan.files import CURRENT_VERSION, OLDER_KEYS
from capacity_tui.engine.schema import AUTO

PLAN, ALIASES = "plan", "aliases"


def schema_names(catalog: Catalog) -> Mapping[str, str]:
    """Return what each schema describes, by its name."""
    tables = {table.file: f"rows of catalog/{table.file}.yaml" for _, table in catalog.tables()}
    return {PLAN: "plan files", ALIASES: "other names of ids, catalog/aliases.yaml", **dict(sorted(tables.items()))}


def schema_of(name: str, catalog: Catalog) -> Schema:
    """Return the JSON schema of ``plan``, ``aliases``, or a file of the catalogue, by its name without suffix."""
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
    """Return a schema as the text of a JSON file; raises CatalogError if there is no such schema."""
    return json.dumps(schema_of(name, catalog), indent=1, ensure_ascii=False) + "\n"


_NUMBERS = ("integer", "number")
_WRITTEN = "written_number"

_WRITTEN_NUMBER: Schema = {
    "type": "string",
    "pattern": r"^\s*[-+.]?\d",
    "description": "a number with a unit or a suffix, such as 8k, 2.0B, 85%, 10min",
}

_ROOT = Plan.__name__


def plan_schema(catalog: Catalog) -> Schema:
    """Return the JSON schema of a plan file.

    What it refuses the program refuses too; names that the program finds otherwise (hub ids, other spellings) pass.

    Args:
        catalog: whose names are offered.
    """
    definitions = definitions_of(Plan)
    for field in all_fields().values():
        properties, name = _section_of(definitions, field.path)
        properties[name] = _field_schema(field, properties[name], catalog)
    for definition in definitions.values():
        definition["properties"] = {name: _written(value) for name, value in definition["properties"].items()}
    _add_older_form(definitions)
    properties, name = _section_of(definitions, Key.MODEL_SPEC)
    properties[name]["properties"] = _parameters(catalog)
    return {
        "$schema": DIALECT,
        "title": "capacity-tui plan",
        "$ref": f"#/$defs/{_ROOT}",
        "$defs": {_WRITTEN: _WRITTEN_NUMBER, **definitions},
    }


def _section_of(definitions: Schema, path: str) -> tuple[Schema, str]:
    """Return the properties that a field stands among, and its name there."""
    *sections, name = path.split(".")
    properties: Schema = definitions[_ROOT]["properties"]
    for section in sections:
        properties = definitions[referred(properties[section]) or ""]["properties"]
    return properties, name


def _field_schema(field: KnownField, plain: Schema, catalog: Catalog) -> Schema:
    words, text = _words(field, catalog), field_text(field.path)
    help_text = text.help or field.knob.help or plain.pop("description", "")
    schema: Schema = {"title": field.knob.label, "description": _sentence(help_text, field.knob.unit)}
    if words:
        default: Schema = {"default": plain["default"]} if "default" in plain else {}
        plain = {**_named(field, words, text.choices), **default}
    return {**plain, **schema}


def _words(field: KnownField, catalog: Catalog) -> Mapping[str, str]:
    """Return the names that a field may have, with what they are called; none for a field of other values."""
    if field.knob.catalogue == "model":
        own = {model.id: model.title for model in known_models(catalog)}
        return {**{id_: row.name for id_, row in catalog.architectures.items()}, **own}
    if field.knob.catalogue == "accelerator":
        tables = (catalog.accelerators, catalog.processors, catalog.instances)
        return {DETECTED: "this machine"} | {id_: row.name for table in tables for id_, row in table.items()}
    if field.knob.catalogue == "interconnect":
        return {id_: row.name for id_, row in catalog.links.items()}
    return known_words(field.path, catalog)


def _named(field: KnownField, words: Mapping[str, str], choices: Mapping[str, str]) -> Schema:
    """Return the schema of a field that names rows, which others may do too unless the program refuses them."""
    chosen: dict[str, str] = {AUTO: "each mode chooses"} if field.knob.automatic else {}
    known = {**chosen, **{name: choices.get(name, called) for name, called in words.items()}}
    others: list[Schema] = [] if is_closed(field.path) else [{"type": "string"}]
    nothing: list[Schema] = [{"type": "null"}] if field.default is None else []
    return alternatives(enumeration(known), *others, *nothing)


def _sentence(text: str, unit: str) -> str:
    return f"{text} Unit: {unit}." if unit else text


def _written(schema: Schema) -> Schema:
    """Return the schema of a value of which numbers may be written with units and suffixes too."""
    if schema.get("type") in _NUMBERS:
        callback: Schema = {key: schema[key] for key in ("title", "description", "default") if key in schema}
        number = {key: value for key, value in schema.items() if key not in callback}
        return {**alternatives(number, {"$ref": f"#/$defs/{_WRITTEN}"}), **callback}
    if any(part.get("type") in _NUMBERS for part in schema.get("anyOf", ())):
        return {**schema, "anyOf": [*schema["anyOf"], {"$ref": f"#/$defs/{_WRITTEN}"}]}
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": _written(schema["items"])}
    return schema


def _add_older_form(definitions: Schema) -> None:
    """Let keys pass that stood elsewhere in older plans, marked as such."""
    for (section, name), present in OLDER_KEYS.items():
        holder, _ = _section_of(definitions, f"{section}.{name}")
        holder[name] = {"deprecated": True, "description": f"older form; now {'.'.join(present)}"}
    definitions[_ROOT]["properties"][Key.VERSION] = {"type": "integer", "minimum": 0, "maximum": CURRENT_VERSION}


def _parameters(catalog: Catalog) -> Schema:
    """Return the parameters that models have for themselves; of one name in several models the first."""
    schema: Schema = {}
    for model in known_models(catalog):
        for name, knob, _ in model.parameters():
            text = field_text(f"{OWN_PARAMETERS}{name}").help or knob.help
            schema.setdefault(name, {"title": knob.label, "description": _sentence(text, knob.unit)})
    return schema


Schema: TypeAlias = dict[str, Any]
DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest that language servers for YAML read whole."""

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""What pydantic calls the bounds of values that it converts first."""

_NO_FIELDS = ("title", "default")  # What it makes of names and missing values, which says nothing to people


def definitions_of(model: type[BaseModel]) -> Schema:
    """Return the definitions of a model and of all that it is made of, by the names of their classes."""
    schema = model.model_json_schema()
    result: Schema = schema.pop("$defs", {})
    if "$ref" not in schema:
        result[model.__name__] = schema
    for definition in result.values():
        for part in _parts(definition):
            _in_dialect(part)
    return result


def referred(schema: Mapping[str, Any]) -> str | None:
    """Return the name of the definition that a value, or one of its alternatives, is."""
    parts = (schema, schema.get("items", {}), *schema.get("anyOf", ()))
    references = (part["$ref"] for part in parts if "$ref" in part)
    return next((reference.rpartition("/")[2] for reference in references), None)


def alternatives(*schemas: Schema) -> Schema:
    """Return the schema of a value that may be any of these."""
    return dict(schemas[0]) if len(schemas) == 1 else {"anyOf": [dict(schema) for schema in schemas]}


def enumeration(words: Mapping[str, str]) -> Schema:
    """Return the schema of one of these names, with a few words for each that has any."""
    data = {"enumDescriptions": list(words.values())} if any(words.values()) else {}
    return {"type": "string", "enum": list(words), **data}


def _parts(schema: Schema) -> Iterator[Schema]:
    yield schema
    for value in schema.values():
        for inner in value if isinstance(value, list) else (value,):
            if isinstance(inner, dict):
                yield from _parts(inner)


def _in_dialect(schema: Schema) -> None:
    for own, usual in _BOUNDS.items():
        if own in schema:
            schema[usual] = schema.pop(own)
    for name in _NO_FIELDS:
        if isinstance(schema.get(name), str) or schema.get(name, ...) is None:
            del schema[name]
    if "prefixItems" in schema:
        schema["items"] = schema.pop("prefixItems")
        schema["additionalItems"] = False


_FILLED_IN = ("id", "provenance", "overrides")  # Fields that the program gives itself
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
