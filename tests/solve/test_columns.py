"""One wish in all columns: what the modes may differ in, what they say of themselves, and when they are one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import compare
from capacity_tui.engine.solve.modes.modes import mode_groups, remarks

WISH = ("training.seq_len", "training.tokens", "training.steps", "training.epochs", "training.global_batch")
OPEN = ("seq_len", "micro_batch", "global_batch", "tokens", "precision", "checkpointing")
LAYOUT = ("tp", "pp", "zero", "offload")
LENGTHS: tuple[dict[str, object], ...] = ({}, {"steps": 100}, {"epochs": 2, "samples": 50_000})


def wished(model: str, hardware: str, devices: int, length: dict[str, object], layout: int) -> Plan:
    """Return a plan that leaves everything open but its length, and as much of its layout as asked for."""
    training = {**dict.fromkeys(OPEN, "auto"), **({"tokens": None} if length else {}), **length}
    parallelism = dict.fromkeys(LAYOUT[:layout], "auto")
    return Plan.model_validate(
        {
            "model": {"name": model},
            "hardware": {"name": hardware, "devices": devices},
            "training": training,
            "parallelism": parallelism,
        }
    )


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(("gpt2", "llama-3.2-1b", "qwen3-30b-a3b", "bert-base-uncased", "resnet50")),
    st.sampled_from(("rtx-4090", "h100-sxm-80gb", "a100-sxm-40gb")),
    st.sampled_from((1, 2, 8)),
    st.sampled_from(LENGTHS),
    st.integers(0, len(LAYOUT)),
)
def test_all_modes_do_the_same_job_inside_their_shares_or_say_why_not(
    model: str, hardware: str, devices: int, length: dict[str, object], layout: int
) -> None:
    columns = compare(wished(model, hardware, devices, length, layout)).columns
    for path in WISH:
        assert len({str(each.plan.value(path)) for each in columns}) == 1, path
    for each in columns:
        told = each.annotated_estimate.basis.filled_by
        assert told is not None
        assert [share.figure for share in told.shares] == ["memory", "power"]
        for share in told.shares:
            assert bool(share.why) is (share.used > share.allowed + 0.0005), share
            assert share.why in share.words


def test_a_mode_says_in_a_line_what_it_is() -> None:
    lines = [mode.line for mode in load_catalog().modes.values()]
    assert lines[0].startswith("conservative: up to 50 % of memory and 40 % of the power limit; ")
    assert [line.split(" %")[0].split()[-1] for line in lines] == ["50", "75", "95"]


def test_a_plan_that_leaves_nothing_open_is_one_column_and_says_so() -> None:
    plan = Plan.model_validate({"model": {"name": "gpt2"}, "hardware": {"name": "rtx-4090"}})
    compared = compare(plan)
    (only,) = compared.groups
    assert only.head == "the plan"
    assert compared.remarks == ("conservative = balanced = extreme: nothing is open",)
    assert answer(plan).estimate.basis.filled_by is None


def test_modes_that_choose_the_same_are_one_column() -> None:
    compared = compare(wished("resnet50", "h100-sxm-80gb", 8, {}, 0))
    assert [group.head for group in compared.groups] == ["conservative", "balanced = extreme"]
    assert compared.groups[1].shown is compared.balanced
    assert compared.remarks == ("balanced = extreme: the same settings",)


def test_an_open_model_says_that_the_jobs_differ() -> None:
    plan = Plan.model_validate({"model": {"name": "auto"}, "hardware": {"name": "rtx-4090"}})
    assert "different jobs" in compare(plan).remarks[-1]


@pytest.mark.parametrize("devices", [1, 8])
def test_the_answer_names_its_mode_with_used_and_allowed_shares(devices: int) -> None:
    found = answer(wished("gpt2", "h100-sxm-80gb", devices, {"steps": 10}, 0))
    data = result_as_dict(found.plan, found.estimate)
    basis = data["basis"]
    assert isinstance(basis, dict)
    told = basis["filled_by"]
    assert told["name"] == "balanced"
    assert told["shares"][0]["allowed"] == 0.75
    assert told["shares"][0]["used"] * 100 == pytest.approx(data["memory"]["utilization_percent"])  # type: ignore[index]


def test_a_mode_that_another_beats_is_no_choice_of_its_own() -> None:
    compared = compare(wished("llama-3.1-8b", "h100-sxm-80gb", 8, {}, 3))
    fast = compared.extreme.estimate
    slow = replace(fast.computation, units_per_step=fast.computation.units_per_step * 0.5)
    dear = replace(fast.cost, usd_per_million_tokens=(fast.cost.usd_per_million_tokens or 0.0) * 2.0)
    worse = replace(compared.extreme, estimate=replace(fast, computation=slow, cost=dear))
    groups = mode_groups((compared.conservative, compared.balanced, worse))
    assert [plan.mode.id for group in groups for plan in group.plans] == ["conservative", "balanced"]
    assert [plan.mode.id for group in groups for plan in group.beaten] == ["extreme"]
    assert all(mode in {name for group in groups for name in group.modes} for mode in ("conservative", "extreme"))
    assert any("no better in any figure" in remark for remark in remarks(groups))
