"""Searches of the small engine: round numbers, in steps that tests can hold up."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.solve.search import Rejected
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import Cell, Field, Kind, ResultRow, Results, TableColumn

if TYPE_CHECKING:
    from fake_document import FakeDocument

GOALS = ("cheapest", "fastest")
FIELDS = (
    Field("goal", "Goal", "", "cheapest", kind=Kind.CHOICE, choices=GOALS, help="what the best are chosen by"),
    Field("time", "Deadline", "", "", unit="such as 24h", choices=("", "4h", "24h", "7d"), help="the most it may take"),
    Field("usd", "Budget", "", "", unit="such as 200", choices=("", "50", "200"), help="the most it may cost"),
    Field("hardware", "Hardware", "", "any", catalogue="accelerator", help="on which devices"),
    Field("devices", "Devices", "", "1..8", choices=("1..8", "1..64"), help="how many of them"),
)
COLUMNS = (
    TableColumn("hardware", is_number=False),
    TableColumn("n"),
    TableColumn("layout", is_number=False, rank=3),
    TableColumn("micro", rank=2),
    TableColumn("memory", -1, rank=1),
    TableColumn("time", -1),
    TableColumn("$/h", -1, rank=4),
    TableColumn("cost", -1),
)
DEVICES = {"h100-sxm-80gb": (10.0, 3.0), "a100-sxm-80gb": (24.0, 1.0), "l4": (200.0, 0.5)}
"""Hours on one, and what an hour costs."""


@dataclass
class Pace:
    """How fast the small engine searches."""

    steps: threading.Event = field(default_factory=threading.Event)  # set while it may go on
    searched: int = 0  # how many searches there were
    report: int = 0  # how often the best so far was told

    def __post_init__(self) -> None:
        self.steps.set()


@dataclass(frozen=True)
class FakeQuestion:
    """A question as texts."""

    document: FakeDocument
    given: Mapping[str, str]
    pace: Pace

    def fields(self) -> tuple[Field, ...]:
        return tuple(replace(part, text=self.given.get(part.key, part.text)) for part in FIELDS)

    def get(self, key: str) -> str:
        return next(part.text for part in self.fields() if part.key == key)

    def edited(self, key: str, text: str) -> FakeQuestion:
        if key == "time" and text and not text[:-1].isdigit():
            raise PlanError(f"{text} is not a time", hint="such as 24h")
        given = {**self.given, key: text}
        return replace(self, given={name: value for name, value in given.items() if value})

    def command(self) -> str:
        flags = [f"--{key}={value}" for key, value in self.given.items()]
        return shlex.join(["capacity-tui", "search", "--model", self.document.name, *flags])

    def answer(self, report: Callable[[Results], object], stopped: Callable[[], bool]) -> Results:
        self.pace.searched += 1
        if self.document.name == "broken":
            raise PlanError("the model has no layers", hint="choose another model")
        rows = self.rows()
        for count in range(1, len(rows) + 1):
            so_far = self.results(rows, count)
            self.pace.report += 1
            report(so_far)
            while not self.pace.steps.wait(0.01):
                if stopped():
                    return so_far
        return self.results(rows, len(rows))

    def results(self, rows: list[ResultRow], count: int) -> Results:
        complete, place = count == len(rows), {"cheapest": 7, "fastest": 5}[self.get("goal")]
        kept = sorted(rows[:count], key=lambda row: row.cells[place].number)
        points = [(row.cells[5].number, row.cells[7].number) for row in kept]
        beaten = [next((at for at, b in enumerate(points) if b < a and b[1] <= a[1]), None) for a in points]
        kept = [replace(row, surpassed=by) for row, by in zip(kept, beaten, strict=True)]
        front = frozenset(place for place, by in enumerate(beaten) if by is None)
        excluded = (Rejected("tp must divide the heads", 3000, "tp 3 of 32 heads"),) if complete else ()
        missed = (Rejected("cost.usd <= $1.00", 12, "l4 x 1"),) if not rows else ()
        share = count / max(len(rows), 1)
        return Results(
            *(COLUMNS, tuple(kept), 1284 * count, len(kept), 0.1 * count),
            excluded=excluded,
            missed=missed,
            is_complete=complete,
            share=share,
            weighed=(5, 7),
            front=front,
        )

    def rows(self) -> list[ResultRow]:
        most_hours = float(self.get("time")[:-1] or 1e9) if self.get("time") else 1e9
        most_usd = float(self.get("usd") or 1e9)
        wanted, most = self.get("hardware"), int(self.get("devices").split("..")[-1])
        rows = []
        for name, (hours, price) in DEVICES.items():
            for count in (1, 2, 4, 8, 16, 32, 64):
                took, usd = hours / count * (1 + count / 100), hours * price * (1 + count / 100)
                if wanted in ("any", name) and count <= most and took <= most_hours and usd <= most_usd:
                    rows.append(self.row(name, count, took, price * count, usd))
        return rows

    def row(self, name: str, count: int, took: float, hourly: float, usd: float) -> ResultRow:
        share = 90 / count**0.5
        cells = (
            Cell(name),
            Cell(str(count), count),
            Cell(f"dp{count} zero3"),
            Cell("2", 2),
            Cell(f"{share:.0f} %", share),
            Cell(f"{took:.1f} h", took),
            Cell(f"{hourly:.2f}", hourly),
            Cell(f"${usd:.2f}", usd),
        )
        change = {"hardware.name": name, "hardware.devices": count, "parallelism.dp": count}
        about = (
            f"{name} × {count}, DP {count}, ZeRO 3",
            f"time {took:.1f} h ({took * 0.8:.1f} h – {took * 1.2:.1f} h)",
        )
        return ResultRow(change, Verdict.TIGHT if share > 85 else Verdict.FITS, cells, about)
