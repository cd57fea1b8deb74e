"""To the limit: the largest value with which a plan fits, and one more does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.numeric import Flags
from capacity_tui.engine.plan import Plan, with_values
from capacity_tui.engine.solve.modes import to_the_limit
from capacity_tui.engine.solve.modes.field_limits import largest_that_fits
from capacity_tui.engine.solve.space import Floats
from capacity_tui.engine.verdict import Verdict

SERVED = {
    "task": "infer",
    "model": {"name": "llama-3-8b"},
    "inference": {"batch": 4, "gpu_layers": 8},
    "parallelism": {"tp": 1, "pp": 1},
    "hardware": {"name": "rtx-4090"},
}
TRAINED = {
    "model": {"name": "llama-3-8b"},
    "training": {"checkpointing": "full"},
    "parallelism": {"zero": 3},
    "hardware": {"name": "h100-sxm-80gb", "devices": 8},
}


@given(limit=st.integers(0, 10**6), high=st.integers(1, 10**7))
def test_it_is_found_wherever_it_is(limit: int, high: int) -> None:
    calls = 0

    def holds(values: Floats) -> Flags:
        nonlocal calls
        calls += 1
        return np.asarray(values <= limit)

    found = largest_that_fits(holds, 1, high)
    assert found == (min(limit, high) or None)
    assert calls <= 8


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        (SERVED, "inference.batch"),
        (SERVED, "inference.prompt_tokens"),
        (SERVED, "inference.output_tokens"),
        ({**SERVED, "model": {"name": "llama-2-13b"}}, "inference.gpu_layers"),
        (TRAINED, "training.micro_batch"),
        (TRAINED, "training.seq_len"),
    ],
)
def test_it_fits_at_the_limit_and_not_beyond(sections: dict[str, object], path: str) -> None:
    plan = Plan.model_validate(sections)
    limit = to_the_limit(plan, path)
    assert limit.value is not None and limit.beyond == limit.value + 1
    assert limit.verdict in (Verdict.FITS, Verdict.TIGHT)
    assert estimate_plan(with_values(plan, {path: limit.value})).estimate.fits
    assert not estimate_plan(with_values(plan, {path: limit.beyond})).estimate.fits


def test_what_does_not_fit_at_all_has_no_limit() -> None:
    plan = Plan.model_validate({**TRAINED, "hardware": {"name": "rtx-3060-12gb"}, "parallelism": {}})
    limit = to_the_limit(plan, "training.micro_batch")
    assert limit.value is None
    assert limit.verdict is Verdict.DOES_NOT_FIT


def test_what_is_no_whole_number_is_refused() -> None:
    with pytest.raises(PlanError, match="only whole numbers"):
        to_the_limit(Plan.model_validate(TRAINED), "training.precision")
