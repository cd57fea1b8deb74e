"""Offers of clouds of the small engine: three machines with round prices."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fake_search import FakeQuestion

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.present import ExplanationText, FormulaInput
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import Cell, Export, Field, Kind, ResultRow, Results, ResultSource, TableColumn

FITTING, ALL = "only what fits", "all"
FIELDS = (
    Field("hours", "Hours a month", "", "720", kind=Kind.INTEGER, choices=("160", "720"), help="How long it runs."),
    Field("spot", "Spot", "", "no", kind=Kind.CHOICE, choices=("no", "yes"), help="Whether spot prices count."),
    Field("shown", "Show", "", FITTING, kind=Kind.CHOICE, choices=(FITTING, ALL), help="Which offers are shown."),
)
COLUMNS = (
    TableColumn("offer", is_number=False),
    TableColumn("n"),
    TableColumn("$/h", -1, rank=1, unit="USD"),
    TableColumn("time", -1, unit="s"),
    TableColumn("cost", -1, unit="USD"),
    TableColumn("saving", 1, rank=1, unit="%"),
    TableColumn("month", -1, rank=3, unit="USD"),
    TableColumn("speed", 1, rank=3, unit="%"),
    TableColumn("risk", -1, is_number=False, rank=2),
    TableColumn("warnings", is_number=False, rank=7),
)
OFFERS = (("detected", 20.0, 10.0, ""), ("h100-sxm-80gb", 8.0, 12.0, "low"), ("a100-sxm-80gb", 12.0, 30.0, "medium"))
"""What an hour costs, how many hours the job takes, and the risk of moving."""


@dataclass(frozen=True)
class FakeOffers(FakeQuestion):
    """What the plan would be worth elsewhere."""

    def fields(self) -> tuple[Field, ...]:
        return tuple(replace(part, text=self.given.get(part.key, part.text)) for part in FIELDS)

    def edited(self, key: str, text: str) -> FakeOffers:
        if key == "hours" and text and not text.isdecimal():
            raise PlanError(f"{text} is no month", hint="such as 160")
        given = {**self.given, key: text}
        return replace(self, given={name: value for name, value in given.items() if value})

    def command(self) -> str:
        return shlex.join(["capacity-tui", "fleet", "migrate", "--hours", self.get("hours")])

    def rows(self) -> list[ResultRow]:
        hours, factor = float(self.get("hours")), 0.5 if self.get("spot") == "yes" else 1.0
        now = OFFERS[0][1] * OFFERS[0][2]
        rows = []
        for name, hourly, took, risk in OFFERS:
            usd = hourly * took * (factor if risk else 1.0)
            saving = 100 * (1 - usd / now)
            about = (f"1 × {name} · Lambda, 2025-01-01, over 90 days old", f"risk {risk}: few hours of notice")
            page = ExplanationText(
                name,
                f"1 × {name}",
                "8 devices, the job fits",
                inputs=(FormulaInput("month", f"${hours * hourly:.0f}", "720 h", key="usd_month"),),
                remarks=(f"risk {risk or 'low'}: few hours of notice",),
            )
            cells = (
                Cell(name),
                Cell("1", 1),
                Cell(f"{hourly:.2f}*", hourly),
                Cell(f"{took:.0f} h", took * 3600),
                Cell(f"${usd:.0f}", usd),
                Cell(f"{saving:+.0f} %" if risk else "now", saving),
                Cell(f"${hours * hourly:.0f}", hours * hourly),
                Cell(f"{100 * (10 / took - 1):+.0f} %", 100 * (10 / took - 1)),
                Cell(risk, float(len(risk))),
                Cell("no network between nodes", 1),
            )
            change = {"hardware.name": name, "hardware.devices": 4}
            rows.append(ResultRow(change, Verdict.FITS, cells, about, page=page))
        if self.get("shown") == ALL:
            short = (Cell("l4"), *(Cell("n/a") for _ in COLUMNS[1:]))
            rows.append(ResultRow({"hardware.name": "l4"}, Verdict.DOES_NOT_FIT, short, ("1 × l4", "12.0 GiB short")))
        return rows

    def results(self, rows: list[ResultRow], count: int) -> Results:
        complete = count == len(rows)
        verdict = "→ move: h100-sxm-80gb saves" if complete else "= stay so far"
        return Results(
            *(COLUMNS, tuple(rows[:count]), 10 * count, count, 0.1 * count),
            is_complete=complete,
            share=count / len(rows),
            remarks=(verdict, "cost: move to h100-sxm-80gb. It costs half."),
            order="saving",
            source=FakeAnswered(),
        )


class FakeAnswered(ResultSource):
    """Explains every figure alike, and writes two files."""

    def explained(self, row: ResultRow, key: str) -> ExplanationText:
        return ExplanationText(key, "Month", "usd = hours · usd_per_hour", "$5760", (FormulaInput("hours", "720"),))

    def exports(self) -> tuple[Export, ...]:
        texts: Mapping[str, str] = {"Offers in Markdown": "offers.md", "Offers as CSV": "offers.csv"}
        return tuple(Export(title, "all offers", {name: f"{title}\n"}) for title, name in texts.items())
