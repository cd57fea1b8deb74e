"""What all tests have in common: examples of properties, one day on which prices are read, no history of the user's."""

import os
from collections.abc import Iterator
from datetime import date

import pytest
from hypothesis import settings

from capacity_tui.engine.catalog import price_age

SHARED = bool(os.environ.get("CI"))

os.environ["CAPACITY_TUI_HISTORY"] = "off"

settings.register_profile("default", deadline=None, derandomize=SHARED, max_examples=40 if SHARED else 100)
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def _day_of_prices() -> Iterator[None]:
    """Let prices be as old on any day as on this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price_age, "today", lambda: date(2026, 11, 22))
        yield
