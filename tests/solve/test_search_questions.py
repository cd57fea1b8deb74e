"""Questions of a search as people type them, and how a search cuts what would take all memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.search import (
    Question,
    hardware_ids,
    parse_axis,
    parse_figures,
    parse_goal,
    parse_limit,
    search,
    spaces,
)
from capacity_tui.engine.solve.search.question import Goal, Limit, model_names
from capacity_tui.engine.solve.space import Axis, configurations
from capacity_tui.engine.units import format_quantity, parse_quantity

TIME, MONEY = "computation.estimated_train_time_seconds", "cost.usd"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("time<=24h", Limit(TIME, most=86_400.0)),
        ("time <= 1 h 30 min", Limit(TIME, most=5_400.0)),
        ("memory<=95%", Limit("memory.utilization_percent", most=95.0)),
        ("memory<=0.95", Limit("memory.utilization_percent", most=95.0)),
        ("memory<=70GiB", Limit("memory.reserved_bytes", most=70.0 * 2**30)),
        ("usd<=$1.5k", Limit(MONEY, most=1_500.0)),
        ("throughput>=20k", Limit("computation.tokens_per_second", least=20_000.0)),
        ("energy<=2MWh", Limit("energy.kwh", most=2_000.0)),
        ("power<=5kW", Limit("energy.watts_average", most=5_000.0)),
        ("mfu>=40%", Limit("computation.mfu", least=0.4)),
        ("computation.step_seconds<50ms", Limit("computation.step_seconds", most=0.05)),
        ("memory.parts.activations<=3GB", Limit("memory.parts.activations", most=3e9)),
    ],
)
def test_limits_are_read_in_the_unit_of_their_figure(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit


def test_words_mean_what_the_task_has() -> None:
    assert parse_limit("ttft<=2s", "infer") == Limit("computation.infer.time_to_first_token_seconds", most=2.0)
    assert parse_goal("usd") == Goal(MONEY, "less")
    assert parse_goal("throughput") == Goal("computation.tokens_per_second", "more")
    assert parse_goal("model.parameters") == Goal("model.parameters", "more")
    assert parse_figures("time, usd,time") == (TIME, MONEY)
    with pytest.raises(CapacityError, match="no figure is called"):
        parse_limit("ttft<=2s", "train")


@given(st.floats(1e-6, 1e12), st.sampled_from(["s", "B", "USD", "W", "kWh", "%", "tok/s"]))
def test_a_quantity_as_it_is_written_is_read_as_much(value: float, unit: str) -> None:
    if unit == "%":
        value = 1.0 + value % 99.0
    written = format_quantity(value, unit)
    if not written.startswith("<"):
        again = format_quantity(parse_quantity(written, unit), unit)
        assert again == written or parse_quantity(again, unit) == pytest.approx(parse_quantity(written, unit), rel=0.01)


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("training.micro_batch=1..8", "training.micro_batch", (1, 2, 4, 8)),
        ("seq_len=4k..16k", "training.seq_len", (4096, 8192, 16384)),
        ("zero=1..3", "parallelism.zero", (1, 2, 3)),
        ("interleave=1..3", "parallelism.interleave", (1, 2, 3)),
        ("interleave=1..9:4", "parallelism.interleave", (1, 5, 9)),
        ("hardware.devices=8..100", "hardware.devices", (8, 16, 32, 64, 100)),
        ("tp=1,2,2,8", "parallelism.tp", (1, 2, 8)),
        ("compile=any", "training.compile", (False, True)),
        ("offload=none..parameters", "parallelism.offload", ("none", "optimizer", "parameters")),
        ("training.adapter.rank=8..32", "training.adapter.rank", (8, 16, 32)),
        ("tokens=1B..4B", "training.tokens", (1e9, 2e9, 4e9)),
        ("model.spec.layers=16,32", "model.spec.layers", (16, 32)),
    ],
)
def test_ranges_step_as_their_field_does(text: str, path: str, values: tuple[object, ...]) -> None:
    assert parse_axis(text) == Axis(path, values)


@given(st.text(max_size=30))
def test_any_text_is_a_question_or_refused(text: str) -> None:
    for parse in (parse_axis, parse_limit, parse_goal, parse_figures):
        try:
            parse(text)
        except CapacityError as error:
            assert "\n" not in error.one_line()


def test_of_a_load_that_all_serve_the_cheapest_or_the_soonest_is_the_best() -> None:
    plan = plan_of_line(read_line("serve llama-3.1-8b vllm h100 2 req/s")).plan
    rented = search(Question(plan, hardware=("h100-sxm-80gb", "l40s", "a100-sxm-80gb"), devices=(1, 2)))
    assert rented.goal == "cost.usd_per_million_tokens" and rented.top[0].set["hardware.devices"] == 1
    assert search(Question(plan)).goal == "computation.infer.time_to_first_token_seconds"


def test_makers_clouds_and_models_stand_for_all_of_theirs() -> None:
    catalog = load_catalog()
    announced = {name for name, row in catalog.accelerators.items() if row.is_announced}
    assert announced and set(hardware_ids(["any"], catalog)) == set(catalog.accelerators) - announced
    assert hardware_ids(list(announced), catalog) == tuple(announced)
    assert {catalog.accelerators[name].vendor for name in hardware_ids(["amd"], catalog)} == {"AMD"}
    rented = hardware_ids(["lambda"], catalog)
    assert rented and all(catalog.instances[name].provider == "Lambda" for name in rented)
    of_a_maker = hardware_ids(["aws"], catalog)  # whose chips are had with its machines alone
    assert of_a_maker and all(catalog.instances[name].provider == "AWS" for name in of_a_maker)
    assert hardware_ids(["H100 SXM", "h100-sxm-80gb"], catalog) == ("h100-sxm-80gb",)
    models = model_names(["any"], Plan.model_validate({"model": {"name": "llama-3-8b"}}), catalog)
    sizes = [catalog.architectures[name].params_total or 0 for name in models]
    assert len(sizes) > 50 and sizes == sorted(sizes, reverse=True)


def test_parts_that_fit_memory_give_the_answer_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": "llama-3.2-1b"},
            "training": {"seq_len": 2048, "global_batch": 64, "tokens": 1e9},
            "hardware": {"name": "h100-sxm-80gb", "devices": 16},
        }
    )
    texts = ("tp=1,2,3,4", "pp=1,2,4", "cp=1,2", "micro_batch=1..4", "checkpointing=none,full", "compile=any")
    question = Question(plan, tuple(map(parse_axis, texts)), pareto=(TIME, "memory.reserved_bytes"), top=3)
    whole = search(question)
    monkeypatch.setattr(spaces, "MOST_LAYOUTS", 5)
    monkeypatch.setattr(configurations, "MOST_SETTINGS", 1)
    parts = search(question)
    assert (parts.evaluated, parts.valid, parts.fitting) == (whole.evaluated, whole.valid, whole.fitting)
    assert [each.figures for each in parts.top] == [each.figures for each in whole.top]
    assert sum(each.count for each in parts.rejected) == sum(each.count for each in whole.rejected)


def test_replicas_that_are_left_open_follow_from_the_layout() -> None:
    sections: dict[str, object] = {
        "model": {"name": "llama-3.2-1b"},
        "training": {"tokens": 1e8, "global_batch": 64},
        "hardware": {"name": "a100-sxm-80gb", "devices": 8},
    }
    named = search(Question(Plan.model_validate({**sections, "parallelism": {"dp": "auto", "tp": "auto"}})))
    silent = search(Question(Plan.model_validate({**sections, "parallelism": {"tp": "auto"}})))
    assert [found.set for found in named.top] == [found.set for found in silent.top]
    assert named.top[0].figures == silent.top[0].figures


def test_a_provider_without_prices_on_demand_is_left_out_of_others_and_refused_alone() -> None:
    rows = load_catalog().instances
    spare = {row.provider for row in rows.values()} - {
        row.provider for row in rows.values() if row.on_demand_usd_per_hour is not None
    }
    assert spare == {"Vast.ai"}
    assert hardware_ids(("Vast.ai", "RunPod"), load_catalog()) == hardware_ids(("RunPod",), load_catalog())
    with pytest.raises(CapacityError, match="price on demand"):
        hardware_ids(("Vast.ai",), load_catalog())
