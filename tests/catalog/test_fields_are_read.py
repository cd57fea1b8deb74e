"""Every field of a row is read, and names of rows are matched whatever their spelling."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from functools import cache

import pytest
from pydantic import BaseModel
from sources import nodes_of, source_files

from capacity_tui.engine import catalog
from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.base import Informational
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.estimate.serving.run import Runtime
from capacity_tui.engine.estimate.transformer.software import Software
from capacity_tui.engine.machine import FitError
from capacity_tui.engine.models.transformer.architecture import COLUMNS

# Records whose numbers are copied from a row by their names, in seconds and bytes.
COPIED = {"Framework": Software, "InferenceEngine": Runtime, "MeasuredError": FitError}
# Fields copied by a list of names.
BY_NAME = {
    "Accelerator": {row.peak_field for row in catalog.load_catalog().precisions.values()},
    "Architecture": COLUMNS,
}


def blocks():
    """Return the classes of rows and of their blocks, by name."""
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(catalog.__path__, catalog.__name__ + ".")]
    found = {
        each.__name__: each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == module.__name__
    }
    return {name: each for name, each in found.items() if not name.startswith("_")}


BLOCKS = blocks()


@cache
def words():
    """Return the names each source file knows, and those it reads: attributes and dotted names in strings."""
    found = []
    for file in source_files():
        known, read = set(), set()
        for node in nodes_of(file):
            if isinstance(node, ast.Attribute):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.update(node.value.split(".") if re.fullmatch(r"[\w.]+", node.value) else ())
            elif isinstance(node, ast.Name | ast.ClassDef | ast.alias):
                known.add(node.id if isinstance(node, ast.Name) else node.name)
        found.append((known | read, read))
    return found


@cache
def holders():
    """Return the types of each class's attributes, one or several of each: ``("Rates", "Algorithm")``."""
    classes = [node for file in source_files() for node in nodes_of(file) if isinstance(node, ast.ClassDef)]
    written = [(each.name, entry) for each in classes for entry in each.body if isinstance(entry, ast.AnnAssign)]
    return {
        (name, re.sub(r"^(?:Annotated\[)?tuple\[(\w+), \.\.\.\].*", r"\1", ast.unparse(entry.annotation)))
        for name, entry in written
    }


def readers(name):
    """Return what the files read that know a class, a table of its rows, or what holds one."""
    rows = {name} | {holder for holder, kind in holders() if kind == name}
    knowing = rows | {table for table, row in tables().items() if row in rows}
    return [read for known, read in words() if knowing & known]


@cache
def tables():
    """Return the classes of rows by the table of the catalogue that holds them, or by what looks some of them up."""
    members = {name: getattr(each, "func", each) for name, each in vars(Catalog).items() if not name.startswith("_")}
    kept = {name: getattr(each, "__annotations__", {}).get("return", "") for name, each in members.items()}
    return {name: re.sub(r"Table|Sequence|rows\.|\W", "", str(rows)) for name, rows in kept.items()}


def copied(name):
    """Return the fields of a class that are copied into a record and read there."""
    record = COPIED.get(name)
    if record is None:
        return set()
    read = {entry.name for entry in dataclasses.fields(record)} & set().union(*(read for _, read in words()))
    return read | {
        field.removesuffix(ending) + other
        for field in read
        for ending, other in (("_seconds", "_us"), ("_bytes", "_mib"))
        if field.endswith(ending)
    }


@pytest.mark.parametrize("name", BLOCKS)
def test_every_field_is_read_or_marked(name):
    block = BLOCKS[name]
    own = {field: info for field, info in block.model_fields.items() if field in block.__annotations__}
    read = set().union(*readers(name), copied(name)) | BY_NAME.get(name, frozenset())
    marked = {field for field, info in own.items() if any(isinstance(mark, Informational) for mark in info.metadata)}
    unread = {f"{name}.{field}" for field in own.keys() - read - marked}
    assert not unread, "read by nothing: use it, delete it, or mark it as Informational and say what it is for"


def test_a_field_is_read_where_its_row_is_known():
    assert "bandwidth_gbs" in set().union(*readers("Accelerator"))
    assert "nanoseconds" in set().union(*readers("Algorithm")), "through the class that holds the row"
    assert "temperature_c" in set().union(*readers("Watch")), "through the row that holds the block"
    assert "bidirectional_gbs" not in set().union(*readers("Link"))
    assert {"Accelerator", "Architecture", "Instance", "Mode", "Optimizer", "Quantization"} <= set(tables().values())


TABLES = (
    "accelerators",
    "processors",
    "links",
    "measured_links",
    "architectures",
    "instances",
    "clusters",
    "precisions",
    "optimizers",
    "quantizations",
    "modes",
)


@pytest.mark.parametrize("name", TABLES)
def test_every_alias_leads_to_its_row(shipped: Catalog, name: str) -> None:
    table = getattr(shipped, name)
    for alias, row_id in table.aliases.items():
        assert table.find(alias).id == row_id, alias


@pytest.mark.parametrize(
    ("typed", "row_id"),
    [
        ("h100-sxm-80gb", "h100-sxm-80gb"),
        ("H100", "h100-sxm-80gb"),
        ("h100_sxm", "h100-sxm-80gb"),
        ("RTX_3060_fp16", "rtx-3060-12gb"),
        ("A100_80GB_fp16", "a100-sxm-80gb"),
        ("TPU_v4_pod", "tpu-v4"),
        ("M2_Ultra", "apple-m2-ultra-76"),
        ("RTX 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("Tesla T4", "t4"),
        ("MI300X", "mi300x"),
        ("CPU_8C_3.5Ghz_baseline", "cpu-8c-3.5ghz-baseline"),
        ("P5", "aws-p5-48xlarge"),
        ("G6e", "aws-g6e-4xlarge"),
        ("p5.48xlarge", "aws-p5-48xlarge"),
    ],
)
def test_hardware_by_many_spellings(shipped: Catalog, typed: str, row_id: str) -> None:
    assert shipped.find_hardware(typed).id == row_id


@pytest.mark.parametrize(
    ("typed", "row_id"),
    [
        ("llama3-8b", "llama-3-8b"),
        ("Llama 3.1 8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        ("gpt2", "gpt2-small"),
        ("Medium", "medium"),
    ],
)
def test_models_by_many_spellings(shipped: Catalog, typed: str, row_id: str) -> None:
    assert shipped.architectures.find(typed).id == row_id


def test_an_unknown_name_names_the_nearest(shipped: Catalog) -> None:
    with pytest.raises(CatalogError, match="h100-sxm-80gb") as caught:
        shipped.accelerators.find("h100-smx")
    assert "'h100-smx'" in caught.value.title
    with pytest.raises(CatalogError, match="rtx-4090"):
        shipped.find_hardware("rtx-4099")
    with pytest.raises(CatalogError):
        shipped.find_hardware("x" * 100_000)


def test_exl2_takes_any_average(shipped: Catalog) -> None:
    row = shipped.quantizations.find("exl2-4.25")
    assert (row.id, row.bits_per_weight) == ("exl2-4.25", 4.25)
    assert shipped.quantizations.find("Q4_K_M").id == "q4_k_m"
    with pytest.raises(CatalogError):
        shipped.quantizations.find("exl2-40")
