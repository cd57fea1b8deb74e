"""A plan as one command, and as a file with what was predicted of it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import apply_settings, example_names, example_text, plan_from_text
from capacity_tui.engine.plan.line import PlanFlags, line_of_flags
from capacity_tui.engine.present import exported_plan, result_as_dict
from capacity_tui.engine.solve import answer, command_words, plan_of_line
from capacity_tui.engine.solve.modes import fill

MODELS = ("llama-3.1-8b", "gpt2-small", "qwen3-30b-a3b")


def parsed(words: tuple[str, ...]) -> Plan:
    """Return the plan of a command, read as the command line reads it."""
    flags: dict[str, str] = {}
    changes: list[str] = []
    assert words[:2] == ("capacity-tui", "plan")
    for option, value in zip(words[2::2], words[3::2], strict=True):
        if option == "--set":
            changes.append(value)
        else:
            flags[option.removeprefix("--")] = value
    base = plan_of_line(line_of_flags(PlanFlags(**flags)), catalog=load_catalog()).plan
    return apply_settings(base, changes).plan if changes else base


def example(name: str) -> Plan:
    return plan_from_text(example_text(name), name)


@pytest.mark.parametrize("name", example_names())
def test_a_command_says_the_whole_plan(name: str) -> None:
    for plan in (example(name), fill(example(name), "balanced").plan):
        words = command_words(plan)
        assert words is not None
        assert parsed(words) == plan


trained = st.fixed_dictionaries(
    {"model": st.sampled_from(MODELS).map(lambda name: {"name": name})},
    optional={
        "training": st.fixed_dictionaries(
            {},
            optional={
                "seq_len": st.sampled_from([512, 4096, "auto"]),
                "tokens": st.sampled_from([None, 1e6, 2.5e9]),
                "micro_batch": st.sampled_from([1, 4, "auto"]),
                "precision": st.sampled_from(["bf16", "fp16", "fp32"]),
                "learning_rate": st.sampled_from([1e-5, 0.0003]),
                "compile": st.booleans(),
                "checkpointing": st.sampled_from(["none", "full", "auto"]),
            },
        ),
        "parallelism": st.fixed_dictionaries({}, optional={"zero": st.sampled_from([0, 3, "auto"])}),
        "hardware": st.fixed_dictionaries(
            {"name": st.sampled_from(["h100-sxm-80gb", "rtx-4090"])},
            optional={"devices": st.sampled_from([1, 8]), "efficiency": st.just(0.5)},
        ),
        "pricing": st.just({"usd_per_hour": 2.5}),
    },
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trained)
def test_a_command_read_back_is_the_same_plan(data: dict[str, object]) -> None:
    plan = Plan.model_validate({"hardware": {"name": "h100-sxm-80gb"}, "task": "train", **data})
    words = command_words(plan)
    assert words is not None
    assert parsed(words) == plan


@pytest.mark.parametrize("training", [{}, {"checkpointing": "none"}, {"optimizer": "adamw"}, {"checkpointing": "auto"}])
def test_a_command_leaves_to_the_modes_what_the_plan_leaves_to_them(training: dict[str, object]) -> None:
    plan = Plan.model_validate(
        {
            "task": "train",
            "model": {"name": "llama-3.2-1b"},
            "training": {"seq_len": 4096, "tokens": 1e9, "global_batch": 8, "micro_batch": "auto", **training},
            "hardware": {"name": "rtx-4090"},
        }
    )
    words = command_words(plan)
    assert words is not None
    assert fill(parsed(words), "balanced").plan == fill(plan, "balanced").plan


def test_a_command_says_no_more_than_it_must() -> None:
    made = plan_of_line(line_of_flags(PlanFlags("llama-3.1-8b", "lora", "8xh100-sxm-80gb", "4096", "50000000"))).plan
    words = command_words(made)
    assert words is not None
    assert "--set" not in words


@pytest.mark.parametrize("name", ["qlora_rtx_4090", "vllm_70b_4_h100", "linear_regression"])
def test_an_exported_plan_tells_what_was_predicted_and_loads_as_itself(name: str) -> None:
    found = answer(example(name))
    text = exported_plan(found, "As planned.", date(2026, 11, 22))
    told = [line for line in text.splitlines() if line.startswith("#")]
    assert told[1] == "# As planned."
    assert told[2].startswith("# Predicted on 2026-11-22")
    assert any("step time" in line or "batch time" in line or "fit time" in line for line in told)
    assert any(" to " in line for line in told)
    again = fill(plan_from_text(text, "exported"), "balanced")
    assert again.plan == found.plan
    assert result_as_dict(again.plan, again.estimate)["memory"] == result_as_dict(found.plan, found.estimate)["memory"]
