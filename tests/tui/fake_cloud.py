"""Offers of clouds of the small engine: three machines with round prices."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fake_search import FakeQuestion

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.present import ExplanationText, FormulaInput
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.fields import Field, Kind
from capacity_tui.tui.shown.results import Answered, Export, Found, FoundCell, FoundColumn, FoundRow

FITTING, ALL = "only what fits", "all"
FIELDS = (
    Field("hours", "Hours a month", "", "720", kind=Kind.INTEGER, choices=("160", "720"), help="How long it runs."),
    Field("spot", "Spot", "", "no", kind=Kind.CHOICE, choices=("no", "yes"), help="Whether spot prices count."),
    Field("shown", "Show", "", FITTING, kind=Kind.CHOICE, choices=(FITTING, ALL), help="Which offers are shown."),
)
COLUMNS = (
    FoundColumn("offer", is_number=False),
    FoundColumn("n"),
    FoundColumn("$/h", -1, rank=1, unit="USD"),
    FoundColumn("time", -1, unit="s"),
    FoundColumn("cost", -1, unit="USD"),
    FoundColumn("saving", 1, rank=1, unit="%"),
    FoundColumn("month", -1, rank=3, unit="USD"),
    FoundColumn("speed", 1, rank=3, unit="%"),
    FoundColumn("risk", -1, is_number=False, rank=2),
    FoundColumn("warnings", is_number=False, rank=7),
)
OFFERS = (("detected", 20.0, 10.0, ""), ("h100-sxm-80gb", 8.0, 12.0, "low"), ("a100-sxm-80gb", 12.0, 30.0, "medium"))
"""What an hour costs, how many hours the job takes, and the risk of moving."""


@dataclass(frozen=True)
class FakeOffers(FakeQuestion):
    """What the plan would be worth elsewhere."""

    def fields(self) -> tuple[Field, ...]:
        return tuple(replace(part, text=self.said.get(part.key, part.text)) for part in FIELDS)

    def edited(self, key: str, text: str) -> FakeOffers:
        if key == "hours" and text and not text.isdecimal():
            raise PlanError(f"{text} is no month", hint="such as 160")
        said = {**self.said, key: text}
        return replace(self, said={name: value for name, value in said.items() if value})

    def command(self) -> str:
        return shlex.join(["capacity-tui", "fleet", "migrate", "--hours", self.get("hours")])

    def rows(self) -> list[FoundRow]:
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
                FoundCell(name),
                FoundCell("1", 1),
                FoundCell(f"{hourly:.2f}*", hourly),
                FoundCell(f"{took:.0f} h", took * 3600),
                FoundCell(f"${usd:.0f}", usd),
                FoundCell(f"{saving:+.0f} %" if risk else "now", saving),
                FoundCell(f"${hours * hourly:.0f}", hours * hourly),
                FoundCell(f"{100 * (10 / took - 1):+.0f} %", 100 * (10 / took - 1)),
                FoundCell(risk, float(len(risk))),
                FoundCell("no network between nodes", 1),
            )
            change = {"hardware.name": name, "hardware.devices": 4}
            rows.append(FoundRow(change, Verdict.FITS, cells, about, page=page))
        if self.get("shown") == ALL:
            short = (FoundCell("l4"), *(FoundCell("n/a") for _ in COLUMNS[1:]))
            rows.append(FoundRow({"hardware.name": "l4"}, Verdict.DOES_NOT_FIT, short, ("1 × l4", "12.0 GiB short")))
        return rows

    def found(self, rows: list[FoundRow], count: int) -> Found:
        complete = count == len(rows)
        verdict = "→ move: h100-sxm-80gb saves" if complete else "= stay so far"
        return Found(
            *(COLUMNS, tuple(rows[:count]), 10 * count, count, 0.1 * count),
            is_complete=complete,
            share=count / len(rows),
            remarks=(verdict, "cost: move to h100-sxm-80gb. It costs half."),
            order="saving",
            answered=FakeAnswered(),
        )


class FakeAnswered(Answered):
    """Explains every figure alike, and writes two files."""

    def explained(self, row: FoundRow, key: str) -> ExplanationText:
        return ExplanationText(key, "Month", "usd = hours · usd_per_hour", "$5760", (FormulaInput("hours", "720"),))

    def exports(self) -> tuple[Export, ...]:
        texts: Mapping[str, str] = {"Offers in Markdown": "offers.md", "Offers as CSV": "offers.csv"}
        return tuple(Export(title, "all offers", {name: f"{title}\n"}) for title, name in texts.items())
