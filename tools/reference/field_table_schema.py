"""The schema of the table of plan fields, ``profiles/fields.yaml``: made of the types of their metadata."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import get_args

from pydantic import TypeAdapter

from capacity_tui.engine.plan.fields import LACKING
from capacity_tui.engine.present.schemas import DIALECT, Schema
from capacity_tui.engine.schema import Knob, Rule

_ELSEWHERE = ("help", "follows")  # Attributes of the metadata that stand beside the row of a field
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def field_table_schema() -> str:
    """Return the schema as the text of a JSON file."""
    words = {"help": _TEXT, "synonyms": _TEXTS, "choices": {"type": "object", "additionalProperties": _TEXT}}
    field = {**_record({"field": _metadata(), **words}), "required": ["help"]}
    consequence = {"of": _TEXTS, "follow": _TEXTS, "rule": {"enum": list(get_args(Rule))}, "why": _TEXT}
    table = _record(
        {
            "fields": {"type": "object", "additionalProperties": field},
            "conditions": {"type": "object", "additionalProperties": _TEXT},
            "follows": {"type": "array", "items": {**_record(consequence), "required": list(consequence)}},
        }
    )
    whole = {"$schema": DIALECT, "title": "capacity-tui fields", **table}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _metadata() -> Schema:
    flags = [field.name for field in fields(Knob) if field.default is False]
    properties = TypeAdapter(Knob).json_schema()["properties"]
    row = {name: _plain(schema) for name, schema in properties.items() if name not in (*flags, *_ELSEWHERE)}
    row["needs"] = {"type": "array", "items": {"enum": list(LACKING)}}
    row["flags"] = {"type": "array", "items": {"enum": flags}, "uniqueItems": True}
    return {**_record(row), "required": ["label", "kind", "group"]}


def _plain(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("title", "default")}


def _record(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}
