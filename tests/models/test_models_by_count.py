"""A model may be known by the count of its parameters alone: a decoder of usual proportions stands for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.models_table import name_of_count
from capacity_tui.engine.models.transformer import count_parameters, shape_from_spec
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer

CATALOG = load_catalog(Path("none"))


@given(exponent=st.floats(7.0, 14.0))
def test_the_count_is_met_within_a_thousandth(exponent: float) -> None:
    count = 10**exponent
    row = CATALOG.architectures.find(name_of_count(count))
    shape = shape_from_spec(row, {})
    assert float(count_parameters(shape).total) == pytest.approx(count, rel=1e-3)
    assert shape.heads % shape.kv_heads == 0
    assert shape.hidden == shape.heads * shape.head_dim
    assert row.id in shape.assumed[0] or "decoder of usual proportions" in shape.assumed[0]


@pytest.mark.parametrize("name", ["35B", "35b", "35 B", "35.0b", "35000M", "0.035T"])
def test_one_count_has_one_id(name: str) -> None:
    assert CATALOG.architectures.find(name).id == "35b"
    assert not CATALOG.architectures.is_variant(name)


@pytest.mark.parametrize("name", ["35", "0b", "1M", "200T", "35bn", "b", "35b-chat"])
def test_what_is_no_count_is_not_found(name: str) -> None:
    assert CATALOG.architectures.find_id(name) is None


def test_a_catalogue_lists_only_models_there_are() -> None:
    CATALOG.architectures.find("35B")
    assert "35b" not in set(CATALOG.architectures)
    assert "medium" not in set(CATALOG.architectures)


def test_the_proportions_are_those_of_models_there_are() -> None:
    for known in ("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "mistral-large-2407"):
        row = CATALOG.architectures[known]
        assert row.params_total
        shape = shape_from_spec(CATALOG.architectures.find(f"{row.params_total / 1e9:.1f}B"), {})
        assert shape.hidden == pytest.approx(row.hidden, rel=0.3)
        assert shape.layers == pytest.approx(row.layers, rel=0.3)


def test_a_size_of_35_billion_weighs_70_gb_and_the_basis_says_what_stands_for_it() -> None:
    data = {"task": "infer", "model": {"name": "medium"}, "hardware": {"name": "h100-sxm-80gb", "devices": 2}}
    named, counted = (answer(plan_from_data({**data, "model": {"name": each}})).estimate for each in ("medium", "35B"))
    assert named.memory.parts["weights"] * 2 == pytest.approx(70e9, rel=1e-3)
    assert counted.memory.parts["weights"] == named.memory.parts["weights"]
    assert any("52 layers" in each and "35.0 B" in each for each in named.basis.assumed)


def test_sizes_of_ones_own_are_models_too(tmp_path: Path) -> None:
    (tmp_path / "model_sizes.yaml").write_text(
        "huge: {parameter_count_billion: 700}\nsmall: {parameter_count_billion: 8}\n"
    )
    own = Catalog(tmp_path)
    assert own.problems == ()
    assert own.architectures.find("Huge").params_total == 700e9
    assert own.architectures.find("small").params_total == 8e9
    assert own.architectures.find("small").name == "Small"


def test_no_model_has_fewer_parameters_than_none() -> None:
    assert CATALOG.architectures.find_id("5B") is not None
    assert CATALOG.architectures.find_id("-5B") is None
