"""A small engine with round numbers, for the screen's own tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fake_document import FakeDocument
from fake_fields import DEFAULTS
from fake_machine import HERE
from fake_runs import GOING, PAST, FakeRuns
from fake_sampler import FakeSampler
from fake_search import Pace

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.files import config_folder, storage_error
from capacity_tui.engine.plan.files import write_plan_file
from capacity_tui.engine.present import TextPart
from capacity_tui.tui.shown.comparison import HardwareRow, Row
from capacity_tui.tui.shown.results import Choice, Suggestion, Understood
from capacity_tui.tui.view import BenchmarkOutcome, BenchmarkStep

BENCHMARKS = {"memory": "memory triad 41.4 GB/s (34.7 GB/s – 44.6 GB/s)", "cpu": "CPU matrix product 200 GFLOP/s"}


class FakeEngine:
    """Answers at once, unless its gate is closed.

    The benchmarks wait for ``measuring`` after each figure, or until they are stopped.
    """

    def __init__(self) -> None:
        self.compared = 0
        self.advised = self.looks = 0
        self.run_rows = (GOING, PAST)
        self.measured: list[str] = []
        self.unexpected: Exception | None = None
        self.measuring = threading.Event()
        self.measuring.set()
        self.busy = 0.0
        self.doubt = ""
        self.pace = Pace()
        self.gate, self.scaling = threading.Event(), threading.Event()
        self.gate.set()
        self.scaling.set()

    def detect(self) -> tuple[HardwareRow, ...]:
        return HERE

    def machine_report(self, document: FakeDocument | None, ascii_only: bool) -> tuple[TextPart, ...]:
        tree = "`- GPU 0" if ascii_only else "└─ GPU 0"
        plan = document.name if document else "none"
        return (
            *(TextPart(f"measured: {figure}") for figure in self.measured),
            TextPart("Facts:", "strong"),
            *(TextPart(f"{row.label} {row.text or f'n/a ({row.reason})'} {row.origin}") for row in HERE),
            TextPart(f"Predicted bottleneck for {plan}: compute"),
            TextPart(tree),
            *(TextPart(f"setting {number}") for number in range(60)),
        )

    def machine_load(self) -> tuple[Row, ...]:
        return (Row("", "CPU", f"{100 * self.busy:.0f} %", share=self.busy), Row("", "RAM", "300 GiB", share=0.15))

    def benchmark(self, progress: Callable[[BenchmarkStep], None], cancelled: threading.Event) -> BenchmarkOutcome:
        if self.unexpected is not None:
            raise self.unexpected
        self.measured = []
        for place, (name, figure) in enumerate(BENCHMARKS.items(), start=1):
            progress(BenchmarkStep(name, place, len(BENCHMARKS)))
            self.measured.append(figure)
            progress(BenchmarkStep(name, place, len(BENCHMARKS), figure))
            while not self.measuring.wait(0.01):
                if cancelled.is_set():
                    return BenchmarkOutcome(len(self.measured), is_complete=False)
        return BenchmarkOutcome(len(self.measured), is_complete=True, doubt=self.doubt)

    def renewed(self, document: FakeDocument) -> FakeDocument:
        return replace(document)

    def propose(self, hardware: str | None = None) -> FakeDocument:
        proposed = FakeDocument(engine=self)
        return proposed.edited("hardware.name", hardware) if hardware else proposed

    def read_line(self, text: str, cursor: int) -> Understood:
        word = text[:cursor].rsplit(" ", maxsplit=1)[-1]
        names = [entry.id for entry in self.catalogue("model") if word and entry.id.startswith(word)]
        before = text[: cursor - len(word)]
        found = (Suggestion(name, "model", f"{before}{name} ", len(before) + len(name) + 1) for name in names)
        models = [name for name in text.split() if name in {entry.id for entry in self.catalogue("model")}]
        faults = () if models or not text.strip() else (f"not understood: {text!r}; name a model",)
        return Understood(" · ".join(f"model {name}" for name in models), (), faults, tuple(found))

    def is_line(self, name: str) -> bool:
        return " " in name

    def plan_of_line(
        self, text: str, document: FakeDocument | None, hardware: str | None = None, *, leaves_out: bool = False
    ) -> tuple[FakeDocument, tuple[str, ...]]:
        understood = self.read_line(text, 0)
        if understood.faults and not leaves_out:
            raise PlanError(f"not understood: {text!r}", hint="name a model")
        name = understood.words.removeprefix("model ")
        document = FakeDocument(engine=self).edited("model.name", name)
        return (document.edited("hardware.name", hardware), ()) if hardware else (document, ("on this machine",))

    def locate(self, source: Path) -> Path | str:
        return source

    def open(self, source: Path | str) -> FakeDocument:
        try:
            text = source.read_text() if isinstance(source, Path) else source
        except OSError as error:
            raise storage_error(error, source, "cannot be read") from error
        values = dict(DEFAULTS)
        for entry in text.splitlines():
            key, colon, value = entry.partition(": ")
            if colon and key in values:
                values[key] = value
            elif not entry.startswith("#"):
                values["model.name"] = entry
        return FakeDocument(tuple(values.items()), self)

    def catalogue(self, name: str) -> tuple[Choice, ...]:
        names = {
            "model": ("llama-3-8b", "llama-3.1-70b", "mistral-7b", "mixtral-8x7b", "gpt2", "broken"),
            "accelerator": ("detected", "h100-sxm-80gb", "a100-sxm-80gb", "l4"),
            "profile": ("quickstart", "finetune-8b"),
            "line": ("qlora 4090",),
        }
        return tuple(Choice(entry, entry, f"a {name}") for entry in names[name])

    def save(self, path: Path, text: str) -> Path | None:
        return write_plan_file(path, text, overwrite=True)

    def plans_folder(self) -> Path:
        return config_folder() / "plans"

    def sampler(self) -> FakeSampler:
        return FakeSampler()

    def runs(self, history: str) -> FakeRuns:
        return FakeRuns(self)


if __name__ == "__main__":
    import sys

    from capacity_tui.tui.app import CapacityApp

    CapacityApp(engine=FakeEngine, ascii_only="--ascii" in sys.argv).run()
