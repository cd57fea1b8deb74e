"""The small engine's runs: one that goes on beside its plan, one that is past, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.errors import PlanError
from capacity_tui.tui.shown.results import TableColumn
from capacity_tui.tui.view import Band, RunDevice, RunEvent, RunGraph, RunRow, Standing, WatchedRun

if TYPE_CHECKING:
    from fake_document import FakeDocument
    from fake_engine import FakeEngine

COLUMNS = (
    TableColumn("started (UTC)", rank=2, is_number=False),
    TableColumn("run", is_number=False),
    TableColumn("step", rank=3),
    TableColumn("step time"),
    TableColumn("hardware", rank=8, is_number=False),
)
GOING = RunRow("a1", Standing.GOES_ON, ("2026-11-22 10:00", "llama-3-8b", "40/100", "7.41 s", "8×H100"), has_plan=True)
PAST = RunRow("b2", Standing.PAST, ("2026-11-21 09:00", "python old.py", "–", "2.00 s", "here"))
ALARM = RunEvent("10:00:07", "warning", "memory grows (GPU 0): 2 MB/s, full in 40 min; look for lists that only grow")


class TakesRuns:
    """A plan that takes the plan of a run."""

    def pinned_with_plan(self, other: FakeDocument) -> FakeDocument:
        return replace(self, beside=(*self.beside, *other.pinned("balanced").beside))

    def replaced_by(self, other: FakeDocument) -> FakeDocument:
        return replace(other, beside=self.beside)


class FakeRuns:
    """Runs that have gone on a step further with each look."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    def columns(self) -> tuple[TableColumn, ...]:
        return COLUMNS

    def rows(self) -> tuple[RunRow, ...]:
        self._engine.looks += 1
        return self._engine.run_rows

    def run(self, name: str, window: float) -> WatchedRun:
        if name != "a1":
            return WatchedRun(name, "python old.py on here", remarks=("step time: 2.00 s",))
        steps = range(1 if window == 1 else round(40 * (1 - window)), 41)
        return WatchedRun(
            name,
            "pid 4711 · torchrun train.py · step 40/100 · 1 h 12 min left",
            (
                _graph("step time", steps, lambda step: 7 + step % 3 / 10, Band(5.6, 6.99, 8.3), "inside"),
                _graph("loss", steps, lambda step: 5 / step),
                _graph("tokens/s", steps, lambda step: 9000 + step, Band(20000, 22000, 24000), "slower: 0.41 × of"),
                _graph("device memory", steps, lambda step: 60 + step / 40),
            ),
            (RunDevice("GPU0", "97 %  61.2/79.6 GiB  640/700 W  74 °C", 0.97, "heat", ("4711  python  61.0 GiB",)),),
            (ALARM, RunEvent("10:00:01", "note", "train.log was replaced, and the new file is read")),
            ("why: clocks are held down for heat",),
        )

    def document(self, name: str) -> FakeDocument:
        return self._engine.propose().edited("training.seq_len", "4096")

    def calibrate(self, name: str) -> str:
        if name != "a1":
            raise PlanError("nothing can be learnt from this run", hint="watch it with --plan")
        return "estimates for h100 rest on this run from now on"

    def restore(self, name: str) -> str:
        return "estimates for h100 rest on constants as shipped again"

    def close(self) -> None:
        pass


def _graph(title, steps, value, band=None, verdict=""):
    points = tuple((float(step), float(value(step))) for step in steps)
    values = [y for _, y in points] + ([band.low, band.high] if band else [])
    low, high = min(values), max(values)
    return RunGraph(
        title,
        f"{points[-1][1]:.2f}",
        points,
        (points[0][0], 50.0),
        f"step {steps[0]}",
        f"step {steps[-1]}",
        f"{low:.1f}",
        f"{high:.1f}",
        (low, high),
        band,
        f"{band.value:g} ({band.low:g} – {band.high:g})" if band else "",
        verdict,
        verdict in ("", "inside"),
    )
