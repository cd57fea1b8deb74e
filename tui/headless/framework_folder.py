"""A plan as a folder of the files that its framework or engine reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.tui.headless.output import tell

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan import Plan


def write_framework_files(plan: Plan, folder: Path, force: bool, machine: Machine | None) -> None:
    """Write the files that run a plan.

    Args:
        plan: every default filled in.
        folder: where they go; made if it is not there.
        force: whether files that are there may be replaced.
        machine: the detected machine, for plans that run on it.

    Raises:
        CapacityError: a file is there already, or cannot be written.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.estimate import resolve_plan
    from capacity_tui.engine.files import make_folder, write_atomically
    from capacity_tui.engine.present.frameworks import framework_files
    from capacity_tui.tui.headless.machine_report import settings_of

    catalog = load_catalog()
    files = framework_files(resolve_plan(plan, catalog, machine), catalog, settings_of(plan, machine))
    make_folder(folder)
    for name, text in files.items():
        path = folder / name
        write_atomically(path, text, overwrite=force)
        tell(f"wrote {path}")
