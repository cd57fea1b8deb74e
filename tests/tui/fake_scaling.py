"""The small engine's plan on more and fewer devices: round numbers, one count at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import TableColumn
from capacity_tui.tui.shown.scale import STRONG, WAITS, ScaledPlan, ScaledRow

COLUMNS = (
    TableColumn("devices"),
    TableColumn("time"),
    TableColumn("speed-up", rank=4),
    TableColumn("efficiency"),
    TableColumn(WAITS, rank=2),
    TableColumn("cost"),
    TableColumn("$/h saved", rank=1),
    TableColumn("layout", rank=5, is_number=False),
)
COUNTS = (1, 2, 4, 8, 16)
KNEE = 4


def scaled_plans(growth: str, own: int, gate: threading.Event) -> Iterator[ScaledPlan]:
    """Yield a plan of so many devices on more and more of them, each as soon as a gate is open."""
    rows: list[ScaledRow] = []
    for count in COUNTS:
        gate.wait(10)
        rows.append(_row(count, own, growth))
        yield ScaledPlan(growth, COLUMNS, tuple(rows))
    remarks = ("The knee is at 4.", "Communication dominates from 16 devices on.")
    yield ScaledPlan(growth, COLUMNS, tuple(rows), remarks, True)


def _row(count: int, own: int, growth: str) -> ScaledRow:
    efficiency = max(1.0 - (0.05 if growth == STRONG else 0.01) * (count - 1), 0.1)
    cells = (
        str(count),
        f"{64 // count} h",
        f"{efficiency * count:.1f} ×",
        f"{efficiency:.0%}".replace("%", " %"),
        f"{1 - efficiency:.0%}".replace("%", " %"),
        f"${100 + count}",
        "cheaper" if count == KNEE else f"${count}",
        f"dp{count}",
    )
    change = {} if count == own else {"hardware.devices": count}
    verdict = Verdict.DOES_NOT_FIT if count == 1 else Verdict.FITS
    is_knee = growth == STRONG and count == KNEE
    return ScaledRow(
        *(count, change, verdict, cells, efficiency, 1 - efficiency, count == own, is_knee, count == COUNTS[-1]),
        pace=3600 * 64 / count,
        usd=100.0 + count,
        price_source="one list" if count < COUNTS[-1] else "another",
    )
