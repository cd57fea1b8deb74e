"""A plan that is written loads as the same plan."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from capacity_tui.engine.plan import Adapter, Plan
from capacity_tui.engine.plan.files import dump_plan, example_names, example_text, plan_from_text
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve.modes import fill

names = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff\ufeff"), min_size=1)
# In the older form of plans this key of a spec is the number of samples.
uncounted = names.filter(lambda name: re.match(r"\s*\d+\s*[xX×*]", name) is None)  # 2xh100 says how many
spec_names = names.filter(lambda name: name != "n")
numbers = st.one_of(st.booleans(), st.integers(0, 10**18), st.floats(0, 1e18, allow_nan=False), names)
values = st.recursive(numbers, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
plans = st.builds(
    lambda model, spec, training, parallelism, hardware, task: Plan.model_validate(
        {
            "task": task,
            "model": {"name": model, "spec": spec},
            "training": training,
            "parallelism": parallelism,
            "hardware": hardware,
        }
    ),
    st.just("llama-3-8b") | names,
    st.dictionaries(spec_names, values, max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "seq_len": st.just("auto") | st.integers(1, 10**7),
            "tokens": st.none() | st.floats(1e-3, 1e18),
            "learning_rate": st.floats(1e-12, 10),
            "precision": st.sampled_from(["fp32", "bf16", "auto"]),
            "checkpointing": st.sampled_from(["every-3", "attention+mlp", "full"]),
            "compile": st.booleans(),
            "adapter": st.sampled_from([None, Adapter(), Adapter(kind="qlora", rank=8)]),
        },
    ),
    st.fixed_dictionaries({}, optional={"tp": st.integers(1, 8), "zero": st.sampled_from([None, 0, 3, "auto"])}),
    st.fixed_dictionaries(
        {"name": uncounted}, optional={"devices": st.integers(1, 10**6), "efficiency": st.floats(0.01, 1)}
    ),
    st.sampled_from([None, "train", "infer"]),
)


@given(plans)
@example(Plan.model_validate({"model": {"name": "1e3", "spec": {"0E0": "2.e+5"}}}))
def test_written_plan_loads_as_itself(plan: Plan) -> None:
    loaded = plan_from_text(dump_plan(plan), "plan.yaml")
    assert loaded == plan or (plan.task is None and loaded.task == "fit")


def test_written_plan_says_what_runs_in_order() -> None:
    plan = Plan.model_validate(
        {"hardware": {"name": "rtx-4090"}, "training": {"tokens": 2e9}, "model": {"name": "llama-3-8b"}}
    )
    lines = dump_plan(plan, "Saved from the screen.").splitlines()
    assert lines[0].startswith("# Plan for capacity-tui")
    assert lines[1] == "# Saved from the screen."
    assert lines[2:8] == [
        "version: 1",
        "model:",
        "  name: llama-3-8b",
        "training:",
        "  seq_len: 2048",
        "  tokens: 2000000000",
    ]
    said = {line.strip().partition(":")[0] for line in lines}
    assert {"precision", "optimizer", "checkpointing", "attention", "micro_batch", "offload"} <= said
    assert lines[lines.index("hardware:") + 1] == "  name: rtx-4090"
    assert "inference:" not in lines


@pytest.mark.parametrize("name", example_names())
def test_exported_plan_says_everything_and_gives_the_same_figures(name: str) -> None:
    filled = fill(plan_from_text(example_text(name), name), "balanced")
    exported = plan_from_text(dump_plan(filled.plan), "exported")
    again = fill(exported, "balanced")
    assert again.plan == filled.plan
    assert central(result_as_dict(again.plan, again.estimate)) == central(result_as_dict(filled.plan, filled.estimate))
    if filled.plan.task in ("train", "finetune"):
        written = yaml.safe_load(dump_plan(filled.plan))["training"]
        assert {"seq_len", "precision", "optimizer", "checkpointing", "attention", "micro_batch"} <= written.keys()


def central(value: object) -> object:
    """A result without the wording of where it comes from."""
    if isinstance(value, dict):
        return {key: central(entry) for key, entry in value.items() if key not in ("basis", "warnings")}
    return value
