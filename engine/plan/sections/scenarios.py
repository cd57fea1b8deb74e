"""Other plans that stand beside a plan, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_SCENARIOS = 8
"""Columns beside the plan's own: more than fit a screen."""
# A dot would end the name in the path of a field.
_NAME = re.compile(r"[^\s.](?:[^.\n]{0,38}[^\s.])?")


def is_scenario_name(name: str) -> bool:
    """Whether a scenario may be called so."""
    return _NAME.fullmatch(name) is not None


def checked_names(scenarios: Mapping[str, object]) -> Mapping[str, object]:
    """Return scenarios as they are; used by the plan's validator.

    Raises:
        ValueError: one cannot be called so, or there are too many.
    """
    for name in scenarios:
        if not is_scenario_name(name):
            raise ValueError("allowed: names of 1 to 40 characters without a dot")
    if len(scenarios) > MOST_SCENARIOS:
        raise ValueError(f"allowed: up to {MOST_SCENARIOS} scenarios")
    return scenarios
