"""What all schemas have in common: the dialect that editors read, and pydantic's words turned into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

Schema: TypeAlias = dict[str, Any]

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest that language servers for YAML read whole."""
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""What pydantic calls the bounds of values that it converts first."""
_NO_FIELDS = ("title", "default")
"""What it makes of names and missing values, which says nothing to people."""


def definitions_of(model: type[BaseModel]) -> Schema:
    """Return the definitions of a model and of all that it is made of, by the names of their classes."""
    schema = model.model_json_schema()
    found: Schema = schema.pop("$defs", {})
    if "$ref" not in schema:
        found[model.__name__] = schema
    for definition in found.values():
        for part in _parts(definition):
            _in_dialect(part)
    return found


def referred(schema: Mapping[str, Any]) -> str | None:
    """Return the name of the definition that a value, or one of its alternatives, is."""
    parts = (schema, schema.get("items", {}), *schema.get("anyOf", ()))
    found = (part["$ref"] for part in parts if "$ref" in part)
    return next((reference.rpartition("/")[2] for reference in found), None)


def alternatives(*schemas: Schema) -> Schema:
    """Return the schema of a value that may be any of these."""
    return dict(schemas[0]) if len(schemas) == 1 else {"anyOf": [dict(schema) for schema in schemas]}


def enumeration(words: Mapping[str, str]) -> Schema:
    """Return the schema of one of these names, with a few words for each that has any."""
    told = {"enumDescriptions": list(words.values())} if any(words.values()) else {}
    return {"type": "string", "enum": list(words), **told}


def _parts(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and all that it is made of."""
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
