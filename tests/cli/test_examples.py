"""Every example plan is sound and fits the hardware it names."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan.files import example_names, example_text, example_title, plan_from_text
from capacity_tui.engine.solve import answer


@pytest.mark.parametrize("name", example_names())
def test_example_fits_what_it_names(name: str) -> None:
    plan = plan_from_text(example_text(name), name)
    catalog = load_catalog()
    assert example_title(name).endswith(".")
    assert catalog.find_hardware(plan.hardware.name)
    if family_of(plan.model.name, catalog).kind == "transformer":
        assert answer(plan).estimate.fits is True
