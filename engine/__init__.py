"""What capacity-tui knows and computes; it knows no terminal.

Names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.choose.answers import answer, explain, step_seconds
    from capacity_tui.engine.choose.modes import compare, fill
    from capacity_tui.engine.errors import CapacityError
    from capacity_tui.engine.export.results import result_as_dict
    from capacity_tui.engine.hardware.detect import detect
    from capacity_tui.engine.hardware.sample import Sampler
    from capacity_tui.engine.workload.fields import plan_fields
    from capacity_tui.engine.workload.loading import apply_settings, load_plan, plan_from_data, with_value
    from capacity_tui.engine.workload.plan import Plan
    from capacity_tui.engine.workload.writing import dump_plan

_HOMES = {
    "load_catalog": "catalog",
    "answer": "choose.answers",
    "explain": "choose.answers",
    "step_seconds": "choose.answers",
    "compare": "choose.modes",
    "fill": "choose.modes",
    "CapacityError": "errors",
    "result_as_dict": "export.results",
    "detect": "hardware.detect",
    "Sampler": "hardware.sample",
    "plan_fields": "workload.fields",
    "apply_settings": "workload.loading",
    "load_plan": "workload.loading",
    "plan_from_data": "workload.loading",
    "with_value": "workload.loading",
    "Plan": "workload.plan",
    "dump_plan": "workload.writing",
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
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
