"""What is known about how sure the figures of a run are, before any of them is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty.intervals import Range
from capacity_tui.engine.uncertainty.likeness import Likeness
from capacity_tui.engine.uncertainty.measured_networks import MeasuredNetworks

FigureName = Literal["step", "prefill", "decode", "memory"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the ranges of a run rest on.

    Attributes:
        rows: spreads of its kind of figures, by figure: ``step``, ``prefill``, ``decode``, ``memory``.
        likeness: what the run is like.
        flags: properties that make it less sure, 1 or 0, by name of their spread.
        here: spreads found on this very machine.
        known: ranges that are given as they are, by figure.
        networks: how sure the networks are, where they were measured.
    """

    rows: Mapping[FigureName, Reliability] = field(default_factory=dict)
    likeness: Likeness = field(default_factory=Likeness)
    flags: Mapping[str, Number] = field(default_factory=dict)
    here: Mapping[str, float] = field(default_factory=dict)
    known: Mapping[FigureName, Range] = field(default_factory=dict)
    networks: MeasuredNetworks | None = None
