"""The schema of plan files, for editors: sections, fields with their help and choices, names of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog import Catalog
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
from capacity_tui.engine.present.reference.json_schema import (
    DIALECT,
    Schema,
    alternatives,
    definitions_of,
    enumeration,
    referred,
)
from capacity_tui.engine.schema import AUTO

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
        properties, name = _place(definitions, field.path)
        properties[name] = _field_schema(field, properties[name], catalog)
    for definition in definitions.values():
        definition["properties"] = {name: _written(value) for name, value in definition["properties"].items()}
    _add_older_form(definitions)
    properties, name = _place(definitions, Key.MODEL_SPEC)
    properties[name]["properties"] = _parameters(catalog)
    return {
        "$schema": DIALECT,
        "title": "capacity-tui plan",
        "$ref": f"#/$defs/{_ROOT}",
        "$defs": {_WRITTEN: _WRITTEN_NUMBER, **definitions},
    }


def _place(definitions: Schema, path: str) -> tuple[Schema, str]:
    """Return the properties that a field stands among, and its name there."""
    *sections, name = path.split(".")
    properties: Schema = definitions[_ROOT]["properties"]
    for section in sections:
        properties = definitions[referred(properties[section]) or ""]["properties"]
    return properties, name


def _field_schema(field: KnownField, plain: Schema, catalog: Catalog) -> Schema:
    """Return the schema of a field with all that is known about it."""
    words, text = _words(field, catalog), field_text(field.path)
    help_text = text.help or field.knob.help or plain.pop("description", "")
    told: Schema = {"title": field.knob.label, "description": _sentence(help_text, field.knob.unit)}
    if words:
        default: Schema = {"default": plain["default"]} if "default" in plain else {}
        plain = {**_named(field, words, text.choices), **default}
    return {**plain, **told}


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
        told: Schema = {key: schema[key] for key in ("title", "description", "default") if key in schema}
        number = {key: value for key, value in schema.items() if key not in told}
        return {**alternatives(number, {"$ref": f"#/$defs/{_WRITTEN}"}), **told}
    if any(part.get("type") in _NUMBERS for part in schema.get("anyOf", ())):
        return {**schema, "anyOf": [*schema["anyOf"], {"$ref": f"#/$defs/{_WRITTEN}"}]}
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": _written(schema["items"])}
    return schema


def _add_older_form(definitions: Schema) -> None:
    """Let keys pass that stood elsewhere in older plans, marked as such."""
    for (section, name), present in OLDER_KEYS.items():
        holder, _ = _place(definitions, f"{section}.{name}")
        holder[name] = {"deprecated": True, "description": f"older form; now {'.'.join(present)}"}
    definitions[_ROOT]["properties"]["version"] = {"type": "integer", "minimum": 0, "maximum": CURRENT_VERSION}


def _parameters(catalog: Catalog) -> Schema:
    """Return the parameters that models have for themselves; of one name in several models the first."""
    found: Schema = {}
    for model in known_models(catalog):
        for name, knob, _ in model.parameters():
            text = field_text(f"{OWN_PARAMETERS}{name}").help or knob.help
            found.setdefault(name, {"title": knob.label, "description": _sentence(text, knob.unit)})
    return found
