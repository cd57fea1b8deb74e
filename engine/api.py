"""The public names of the engine: what scripts, the screen and the command line use.

Names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.choose.answers import answer, explain, step_seconds
    from capacity_tui.engine.choose.modes.modes import compare, fill
    from capacity_tui.engine.errors import CapacityError
    from capacity_tui.engine.machine.detect import detect
    from capacity_tui.engine.machine.sample import Sampler
    from capacity_tui.engine.plan.fields import plan_fields
    from capacity_tui.engine.plan.files.loading import apply_settings, load_plan, plan_from_data, with_value
    from capacity_tui.engine.plan.files.writing import dump_plan
    from capacity_tui.engine.plan.plan import Plan
    from capacity_tui.engine.present.results import result_as_dict

_HOMES = {
    "load_catalog": "catalog",
    "answer": "choose.answers",
    "explain": "choose.answers",
    "step_seconds": "choose.answers",
    "compare": "choose.modes.modes",
    "fill": "choose.modes.modes",
    "CapacityError": "errors",
    "result_as_dict": "present.results",
    "detect": "machine.detect",
    "Sampler": "machine.sample",
    "plan_fields": "plan.fields",
    "apply_settings": "plan.files.loading",
    "load_plan": "plan.files.loading",
    "plan_from_data": "plan.files.loading",
    "with_value": "plan.files.loading",
    "Plan": "plan.plan",
    "dump_plan": "plan.files.writing",
}

__all__ = [
    "CapacityError",
    "Plan",
    "Sampler",
    "answer",
    "apply_settings",
    "compare",
    "detect",
    "dump_plan",
    "explain",
    "fill",
    "load_catalog",
    "load_plan",
    "plan_fields",
    "plan_from_data",
    "result_as_dict",
    "step_seconds",
    "with_value",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__package__}.{_HOMES[name]}"), name)
