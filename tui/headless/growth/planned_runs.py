"""Runs with settings that are fields of a plan: kept beside what was predicted of them, so that they calibrate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless.output import tell
from capacity_tui.tui.headless.plans import read_plan

if TYPE_CHECKING:
    from capacity_tui.engine.growth import Measurement
    from capacity_tui.engine.observe.history import RunRecord


class PlannedRuns:
    """Makes entries of runs that are those of one plan with some fields changed.

    Args:
        plan_name: the plan, as commands take it.

    Raises:
        CapacityError: there is no such plan.
    """

    def __init__(self, plan_name: str) -> None:
        from capacity_tui.engine.catalog import load_catalog
        from capacity_tui.engine.machine import detect

        self._plan = read_plan(plan_name)
        self._machine, self._catalog = detect(), load_catalog()
        self._told: set[str] = set()

    def entry(self, measurement: Measurement, profile: RunRecord) -> RunRecord:
        """Return a run beside what its plan predicts; its profile where its output tells neither step nor memory."""
        from capacity_tui.engine.plan import all_fields
        from capacity_tui.engine.plan.files import apply_settings
        from capacity_tui.engine.sampling import own_run, run_entry
        from capacity_tui.engine.solve.modes import with_auto_resolved

        if measurement.problem or (measurement.step_seconds is None and measurement.device_memory_bytes is None):
            return profile
        fields = all_fields()
        settings = [f"{key}={value}" for key, value in measurement.set.items() if key in fields]
        try:
            changed = apply_settings(self._plan, settings).plan if settings else self._plan
            plan = with_auto_resolved(changed, self._machine, self._catalog)
            run = own_run(plan, measurement.step_seconds, measurement.device_memory_bytes)
            return run_entry(run, self._machine, self._catalog, profile.details)
        except CapacityError as error:
            if (line := error.one_line()) not in self._told:
                self._told.add(line)
                tell(f"capacity-tui: kept without its plan: {line}")
            return profile
