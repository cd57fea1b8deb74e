"""The plan on more and fewer devices, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.columns import TableColumn

STRONG, WEAK = "strong", "weak"
GROWTHS = {STRONG: "the same batch for all", WEAK: "the same batch for each device"}
"""Kinds of scaling, each with what stays the same."""
WAITS = "waits"
"""Title of the column with the share of a step that waits for other devices."""


@dataclass(frozen=True, slots=True)
class ScaledRow:
    """The plan on some number of devices.

    Attributes:
        devices: how many.
        change: what makes it of the plan; empty where it is the plan itself.
        verdict: whether it fits.
        cells: what it has in each column.
        efficiency: speed-up over devices; None where it does not fit.
        waits: share of a step that waits for other devices.
        is_own: whether these are the plan's own devices.
        is_knee: whether the knee is here.
        is_bound: whether communication limits.
    """

    devices: int
    change: Mapping[str, object] = field(hash=False)
    verdict: Verdict
    cells: tuple[str, ...]
    efficiency: float | None
    waits: float
    is_own: bool = False
    is_knee: bool = False
    is_bound: bool = False

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows."""
        return tuple((name, str(value)) for name, value in self.change.items())


@dataclass(frozen=True, slots=True)
class ScaledPlan:
    """The plan over device counts, as far as it is known.

    Attributes:
        growth: ``strong`` or ``weak``.
        columns: of the table.
        rows: by rising number of devices.
        remarks: where the knee is, where communication takes over, what an hour less costs.
        is_complete: whether all counts are there.
    """

    growth: str
    columns: tuple[TableColumn, ...] = ()
    rows: tuple[ScaledRow, ...] = ()
    remarks: tuple[str, ...] = ()
    is_complete: bool = False
