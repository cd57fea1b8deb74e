"""What was measured on this machine, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from capacity_tui.engine.units import format_percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.machine import MeasuredEfficiency


def measured_tables(measured: MeasuredEfficiency, before: MeasuredEfficiency | None) -> Iterator[RenderableType]:
    """Yield the constants of a device with what they were, and how well they fit."""
    software = ", ".join(f"{name} {version}" for name, version in measured.software.items())
    yield Text(f"{measured.device}, measured {measured.date}" + (f" with {software}" if software else ""))
    constants = Table("constant", "value", "before")
    known = {} if before is None else _constants(before)
    for name, value in _constants(measured).items():
        constants.add_row(name, f"{value:.4g}", f"{known[name]:.4g}" if name in known else "as shipped")
    yield constants
    errors = Table("fitted to", "samples", "median error", "worst", "between samples")
    for error in measured.errors:
        between = "" if error.interpolated is None else format_percent(error.interpolated, 1)
        # What one number was fitted to it meets, whatever that is worth.
        spread = [format_percent(each, 1) if error.count > 1 else "n/a" for each in (error.median, error.worst)]
        errors.add_row(error.name, str(error.count), *spread, between)
    yield errors


def _constants(measured: MeasuredEfficiency) -> dict[str, float]:
    return {**{f"gemm.{dtype}": share for dtype, share in measured.gemm.items()}, **measured.constants}
