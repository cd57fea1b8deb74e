"""Names people type lead to rows, and misspelt ones to the nearest."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CatalogError

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
