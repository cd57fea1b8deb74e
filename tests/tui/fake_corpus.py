"""The small engine's storage: round numbers for the plan's data, and for the patterns of a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.comparison import Chosen, Row, Trial
from capacity_tui.tui.shown.results import Field, Kind, TableColumn
from capacity_tui.tui.shown.scale import LogChart, LogCurve, LogLimit, StoredLevel, StoredPatterns

FIELDS = (
    Field("samples", "Samples", "corpus", "", kind=Kind.ROUND, minimum=1, maximum=1e12, can_be_auto=True),
    Field("chunk", "Chunk", "patterns", "", kind=Kind.INTEGER, minimum=2, maximum=100, can_be_auto=True, unit="tokens"),
    Field("alpha", "Exponent", "law", "", kind=Kind.NUMBER, minimum=0, maximum=5, step=0.05, can_be_auto=True),
)
USUAL = {
    "samples": Chosen("1 000 000", "samples of the plan", 1e6),
    "chunk": Chosen("15", "usual", 15),
    "alpha": Chosen("1", "words of many languages", 1),
}
COLUMNS = (
    TableColumn("level", is_number=False),
    TableColumn("unique", rank=2),
    TableColumn("repeated", rank=1),
    TableColumn("size"),
)
DISK = 4e12
STORED = (
    Row("data.bytes", "data set", "7.45 GiB", 8e9, help="Token ids of all samples."),
    Row("data.read", "read", "0.3 GB/s", share=0.25, interval="of 1.2 GB/s", help="What the devices take."),
    Row("checkpoint.bytes", "checkpoint", "1.3 GiB", 1.3 * 2**30, interval="3 kept", help="One of them."),
)


@dataclass(frozen=True)
class FakeCorpus:
    """A corpus of which every sample takes as many bytes as a chunk has tokens, a thousand times."""

    given: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> tuple[Field, ...]:
        return tuple(
            replace(
                each,
                text=self.given.get(each.key, ""),
                value=float(self.given[each.key]) if each.key in self.given else None,
                is_auto=each.key not in self.given,
            )
            for each in FIELDS
        )

    def chosen(self) -> Mapping[str, Chosen]:
        return {key: chosen for key, chosen in USUAL.items() if key not in self.given}

    def edited(self, key: str, text: str) -> FakeCorpus:
        rest = {name: value for name, value in self.given.items() if name != key}
        if not text:
            return FakeCorpus(rest)
        if not text.replace(".", "").isdigit():
            raise PlanError(f"{text} is not a number", hint="such as 100")
        return FakeCorpus({**rest, key: text})

    def command(self) -> str:
        return f"capacity-tui storage estimate --samples {self.number('samples'):.0f}"

    def number(self, key: str) -> float:
        return float(self.given.get(key, USUAL[key].value or 0))

    def trial(self, key: str, text: str) -> Trial:
        size = self.edited(key, text).patterns().growth.here[1]
        return Trial(
            Verdict.FITS if size < DISK else Verdict.DOES_NOT_FIT, time=f"{size / 1e9:.0f} GB", share=size / DISK
        )

    def patterns(self) -> StoredPatterns:
        each = 1000 * self.number("chunk")
        samples, total = self.number("samples"), self.number("samples") * each
        levels = tuple(self.level(f"node{number}", total * share) for number, share in enumerate((0.5, 0.3, 0.2)))
        sizes = [10.0**power for power in range(2, 11)]
        growth = LogChart(
            "size over samples",
            (LogCurve(tuple((size, size * each) for size in sizes)),),
            (LogLimit(DISK, "disk 4.00 TB free"),),
            (samples, total),
            "B",
        )
        everything = replace(self.level("all", total), is_total=True)
        return StoredPatterns(COLUMNS, (*levels, everything), growth, ("The disk is full at 1 M.",), DISK / each)

    def level(self, name: str, size: float) -> StoredLevel:
        curve = LogCurve(tuple((10.0**power, 10.0 ** (6 - power)) for power in range(6)))
        chart = LogChart(f"occurrences over rank, {name}", (curve,))
        total = self.number("samples") * 1000 * self.number("chunk")
        cells = (name, "1.33 M", "60 %", f"{size / 1e9:.1f} GB")
        return StoredLevel(name, cells, size / total, f"Patterns of {name}.", chart)
