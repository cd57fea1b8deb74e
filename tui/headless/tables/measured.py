"""What was measured on this machine, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from capacity_tui.engine.api import format_percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.api import MeasuredEfficiency


def measured_tables(measured: MeasuredEfficiency) -> Iterator[RenderableType]:
    """Yield the constants of a device and how well they fit."""
    software = ", ".join(f"{name} {version}" for name, version in measured.software.items())
    yield Text(f"{measured.device}, measured {measured.date}" + (f" with {software}" if software else ""))
    constants = Table("constant", "value")
    for dtype, share in measured.gemm.items():
        constants.add_row(f"gemm.{dtype}", f"{share:.4g}")
    for name, value in measured.constants.items():
        constants.add_row(name, f"{value:.4g}")
    yield constants
    errors = Table("fitted to", "samples", "median error", "worst", "between samples")
    for error in measured.errors:
        between = "" if error.interpolated is None else format_percent(error.interpolated, 1)
        errors.add_row(
            error.name, str(error.count), format_percent(error.median, 1), format_percent(error.worst, 1), between
        )
    yield errors
