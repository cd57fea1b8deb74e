"""Every data file names, in its first line, the schema that editors check it by, and is as that schema says."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from capacity_tui.engine.catalog import parse_shipped

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "profiles").rglob("*.yaml"))
SCHEMAS = ROOT / "docs" / "schemas"
MODELINE = re.compile(r"# yaml-language-server: \$schema=(?P<path>\S+)")


@cache
def validator(schema: Path) -> Draft7Validator:
    return Draft7Validator(json.loads(schema.read_text("utf-8")))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_data_file_is_valid_by_the_schema_that_it_names(file: Path) -> None:
    named = MODELINE.fullmatch(file.read_text("utf-8").partition("\n")[0])
    assert named is not None
    schema = (file.parent / named["path"]).resolve()
    assert schema.parent == SCHEMAS
    faults = [
        f"{'.'.join(map(str, fault.path))}: {fault.message}"[:300]
        for fault in validator(schema).iter_errors(parse_shipped(file))
    ]
    assert faults == []


def test_every_schema_is_one_of_draft_7_and_describes_some_file() -> None:
    named = {(file.parent / file.read_text("utf-8").partition("\n")[0].partition("=")[2]).name for file in FILES}
    assert named == {schema.name for schema in SCHEMAS.iterdir()}
    for schema in SCHEMAS.iterdir():
        Draft7Validator.check_schema(json.loads(schema.read_text("utf-8")))
