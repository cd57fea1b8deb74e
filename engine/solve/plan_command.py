"""The one command that says a plan."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import DETECTED, Plan, leaves
from capacity_tui.engine.plan.files import apply_settings, setting_text
from capacity_tui.engine.plan.line import PlanFlags, line_of_flags
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes.model_choice import is_written, touched_fields
from capacity_tui.engine.solve.one_line import plan_of_line

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

COMMAND = ("capacity-tui", "plan")
_NOTHING = "null"


def command_words(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> tuple[str, ...] | None:
    """Return the shortest command for a plan; None where no command covers all of it."""
    facts = catalog or load_catalog()
    flags = _flags(plan)
    try:
        base = plan_of_line(line_of_flags(flags, catalog=facts), machine, catalog=facts).plan
    except CapacityError:
        return None
    settings = fewest_settings(base, plan)
    if settings is None:
        return None
    given = {name: getattr(flags, name) for name in ("model", "task", "gpu", "seq", "tokens")}
    words = (word for name, value in given.items() if value is not None for word in (f"--{name}", value))
    return (*COMMAND, *words, *(word for setting in settings for word in ("--set", setting)))


def fewest_settings(base: Plan, plan: Plan) -> tuple[str, ...] | None:
    """Return settings ``KEY=VALUE`` that make one plan of another, none of them needless; None where none do."""
    settings = [*_settings(base, plan)]
    if not _says(base, settings, plan):
        return None
    # What follows from another setting need not be given.
    for setting in tuple(settings):
        fewer = [other for other in settings if other != setting]
        if _says(base, fewer, plan):
            settings = fewer
    return tuple(settings)


def command_text(words: tuple[str, ...]) -> str:
    """Return a command as it is typed into a shell."""
    return shlex.join(words)


def _flags(plan: Plan) -> PlanFlags:
    """Return what the short flags can say of a plan."""
    training, hardware = plan.training, plan.hardware
    is_trained = plan.is_training
    devices = f"{hardware.devices}x" if hardware.devices not in (None, 1) else ""
    return PlanFlags(
        model=plan.model.name or plan.model.config,
        task=(training.method if plan.is_finetuning else None) or plan.task,
        gpu=None if hardware.name in (DETECTED, None) else f"{devices}{hardware.name}",
        seq=str(training.seq_len) if is_trained and training.seq_len != AUTO else None,
        tokens=setting_text(training.tokens) if is_trained and training.tokens not in (None, AUTO) else None,
    )


def _settings(base: Plan, plan: Plan) -> Iterator[str]:
    # Parameters of other hardware or of another model go as a whole.
    lacking = set(base.model.spec) - set(plan.model.spec)
    whole = {Key.HARDWARE_SPEC, *([Key.MODEL_SPEC] if lacking else [])}
    before, wanted = (dict(leaves(one.model_dump(mode="json"), whole)) for one in (base, plan))
    written = _written(plan)
    other = _written(base) ^ written
    for path, value in wanted.items():
        if (before.get(path) != value or path in other) and path != Key.VERSION:
            is_open = path in _decisive() and path not in written and value != AUTO
            yield f"{path}={_NOTHING if value is None or is_open else setting_text(value)}"


def _written(plan: Plan) -> frozenset[str]:
    """Return the fields that somebody wrote, of those where that matters."""
    return frozenset(path for path in _decisive() if is_written(plan, path))


@cache
def _decisive() -> frozenset[str]:
    """Return the fields where a default that is written differs from one that is not.

    What is written modes never give up where nothing fits.
    """
    return touched_fields(load_catalog())


def _says(base: Plan, settings: list[str], plan: Plan) -> bool:
    """Return whether settings make one plan of another, what it leaves to the modes included."""
    try:
        made = apply_settings(base, settings).plan
    except CapacityError:
        return False
    return made == plan and _written(made) == _written(plan)
