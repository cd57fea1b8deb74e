"""Any model on any hardware, as a mode fills it: sound numbers, and the plan that is written gives the same ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.files import dump_plan, plan_from_data, plan_from_text
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve.modes import ModeName, fill
from capacity_tui.engine.solve.modes.modes import MODES

CATALOG = load_catalog()
# Fits only with adapters, which a mode takes because the file leaves the method open.
ADAPTED: dict[str, object] = {
    "model": {"name": "llama-3-8b"},
    "hardware": {"name": "rtx-4090"},
    "task": "finetune",
    "training": {"micro_batch": "auto", "tokens": 1e8},
}


@st.composite
def plans(draw: st.DrawFn) -> dict[str, object]:
    """A plan as a person begins it: a model, hardware, a task, and most fields open."""
    hardware = draw(st.sampled_from(sorted({*CATALOG.accelerators, *CATALOG.instances})))
    data: dict[str, object] = {
        "model": {"name": draw(st.sampled_from(sorted({*CATALOG.architectures, *CATALOG.networks})))},
        "hardware": {"name": hardware, "devices": draw(st.sampled_from((1, 2, 8, 64)))},
        "task": draw(st.sampled_from(("train", "finetune", "infer"))),
        "pricing": draw(st.sampled_from(({}, {"usd_per_hour": 0}, {"spot": True}))),
    }
    if data["task"] == "infer":
        data["inference"] = {"batch": draw(st.sampled_from((1, 32, "auto")))}
    else:
        data["training"] = {"micro_batch": draw(st.sampled_from((1, 8, "auto"))), "tokens": 1e9}
    return data


def numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a result with where it stands."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from numbers(entry, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            yield from numbers(entry, f"{path}[{place}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


@settings(max_examples=25, deadline=None)
@given(plans(), st.sampled_from(MODES))
@example(ADAPTED, "balanced")
def test_numbers_are_sound_and_the_written_plan_gives_them_again(data: dict[str, object], mode: ModeName) -> None:
    try:
        found = fill(plan_from_data(data), mode)
    except CapacityError:
        assume(False)
        raise
    estimate = found.estimate
    told = result_as_dict(found.plan, estimate)
    figures = {section: dict(numbers(told[section])) for section in ("memory", "computation", "cost", "energy")}
    assert all(math.isfinite(value) and value >= 0.0 for each in figures.values() for value in each.values())
    assert sum(map(float, estimate.memory.parts.values())) == pytest.approx(float(estimate.memory.reserved_bytes.value))
    assert estimate.computation.mfu is None or float(estimate.computation.mfu) <= 1.0

    again = fill(plan_from_text(dump_plan(found.plan), "written"), mode)
    repeated = result_as_dict(again.plan, again.estimate)
    for section, values in figures.items():
        assert dict(numbers(repeated[section])) == pytest.approx(values), section
