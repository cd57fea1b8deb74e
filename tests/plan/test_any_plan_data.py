"""Any data and floods of it: a plan comes back, or one line that says what to correct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog, read_yaml
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import PlanSource, plan_from_data, plan_from_text
from capacity_tui.engine.printable import printable

SMALLEST = {"model": {"name": "llama-3-8b"}}


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=3),
    st.sampled_from(["auto", "bf16", "8k", "80GB", "adamw", "1e400", "none", 10**40, "\x1b[31m", "0"]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | scalars, inner, max_size=3),
    max_leaves=6,
)


def section(name: str) -> st.SearchStrategy[object]:
    fields = list(type(getattr(Plan.model_validate(SMALLEST), name)).model_fields)
    return st.dictionaries(st.sampled_from(fields) | st.text(max_size=5), anything, max_size=4) | anything


data = st.fixed_dictionaries(
    {"model": st.just({"name": "llama-3-8b"}) | section("model")},
    optional={
        **{
            name: section(name)
            for name in ("training", "inference", "parallelism", "hardware", "scalability", "pricing", "report")
        },
        "version": anything,
        "task": st.sampled_from(["train", "infer", "fit"]) | anything,
    },
)


@given(data | anything)
def test_any_data_is_a_plan_or_one_line(given_data: object) -> None:
    try:
        plan = plan_from_data(given_data, "p.yaml")
    except PlanError as error:
        line = error.one_line()
        assert printable(line) == line
        assert line.startswith("p.yaml")
        assert len(line) < 1000
    else:
        assert plan_from_data(plan.plain_data()) == plan


@given(st.text(max_size=80) | data.map(str))
def test_any_text_is_a_plan_or_one_line(text: str) -> None:
    try:
        plan_from_text(text, "p.yaml")
    except CapacityError as error:
        assert printable(error.one_line()) == error.one_line()


@given(
    st.sampled_from(["training", "model.spec", "hardware", "parallelism.tp", "pricing", "scalability.enabled"])
    | st.text(max_size=8),
    st.text(max_size=8),
    anything,
)
def test_any_change_is_a_plan_or_one_line(above: str, key: str, value: object) -> None:
    try:
        edited(plan_from_data(SMALLEST), {f"{above}.{key}": value})
    except PlanError as error:
        assert printable(error.one_line()) == error.one_line()


def test_all_that_is_wrong_at_once_is_told_at_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.solve import faults

    unknown = "".join(f"  k{number}: 1\n" for number in range(5000))
    source = PlanSource(read_yaml(f"model: {{name: gpt2-small}}\ntraining:\n{unknown}", "plan"))
    read = []
    monkeypatch.setattr(PlanSource, "plan", lambda self, plan=PlanSource.plan: read.append(1) or plan(self))
    found = faults(source, load_catalog(), lambda plan: None)
    assert [fault.place.line for fault in found] == list(range(3, 23))
    assert len(read) == 1


def test_analyses_of_thousands_of_counts_are_refused() -> None:
    data = {**SMALLEST, "scalability": {"device_counts": list(range(1, 20_000))}}
    with pytest.raises(PlanError, match=r"scalability\.device_counts") as caught:
        plan_from_data(data)
    assert len(caught.value.one_line()) < 300


def test_a_plan_of_endless_keys_is_refused_before_it_is_looked_at() -> None:
    text = "model: {name: gpt2}\n" + "".join(f"key{n}: 1\n" for n in range(10_000))
    with pytest.raises(PlanError, match=r"p\.yaml: too large for a plan: 10 002 keys and entries"):
        plan_from_text(text, "p.yaml")


@pytest.mark.parametrize("key", ["link_gbs", "bandwidth_gbs", "memory_mib", "tdp_w", "bf16_tflops"])
@pytest.mark.parametrize("value", [0, -1, 1e-308, 5e-324, 1e13, float("nan"), float("inf")])
def test_figures_of_hardware_beyond_all_bounds_are_refused(key: str, value: float) -> None:
    data = {"model": {"name": "gpt2"}, "hardware": {"name": "a100-sxm-80gb", "spec": {key: value}}}
    with pytest.raises(PlanError, match=rf"hardware\.spec\.{key}: (out of range|not allowed)"):
        resolve_plan(plan_from_data(data), load_catalog())
