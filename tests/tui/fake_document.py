"""A document of a plan with round numbers, for the screen's own tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fake_cloud import FakeOffers
from fake_cluster import clustered
from fake_corpus import STORED, FakeCorpus
from fake_fields import DEFAULTS, FIELDS, MICRO_BATCH, MODES, number
from fake_machine import HERE
from fake_runs import TakesRuns
from fake_scaling import scaled_plans
from fake_search import FakeQuestion

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.explain import Amount, MemoryTimeline
from capacity_tui.engine.present import ExplanationText, FormulaInput
from capacity_tui.engine.present.pictures import Picture
from capacity_tui.engine.solve.modes import FieldLimit
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.comparison import (
    Advice,
    Chosen,
    Column,
    Comparison,
    Effect,
    HardwareRow,
    Headline,
    MemoryPart,
    Note,
    Row,
    Trial,
    Usage,
)
from capacity_tui.tui.shown.results import AUTO, Export, Field, SizedModel
from capacity_tui.tui.shown.scale import Clustered, ScaledPlan

if TYPE_CHECKING:
    from fake_engine import FakeEngine

GIB = 2**30


def _new_engine() -> FakeEngine:
    from fake_engine import FakeEngine

    return FakeEngine()


@dataclass(frozen=True)
class FakeDocument(TakesRuns):
    """A plan as a mapping of texts."""

    values: tuple[tuple[str, str], ...] = tuple(DEFAULTS.items())
    engine: FakeEngine = field(default_factory=_new_engine, compare=False, repr=False)
    beside: tuple[tuple[str, Column], ...] = ()
    followed: Mapping[str, str] = field(default_factory=dict, compare=False)
    answered_in: str = ""

    def pins(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.beside)

    def pinned(self, mode: str) -> FakeDocument:
        name = "ABCDEFGH"[len(self.beside)]
        column = replace(self.column(mode), mode=name, is_pinned=True)
        return replace(self, beside=(*self.beside, (name, column)))

    def pinned_with(self, change: Mapping[str, object]) -> FakeDocument:
        return replace(self, beside=(*self.beside, self.changed(change).pinned("balanced").beside[-1]))

    def scaled(self, mode: str, growth: str) -> Iterator[ScaledPlan]:
        return scaled_plans(growth, int(self.get("hardware.devices") or 1), self.engine.scaling)

    def clustered(self, mode: str) -> Iterator[Clustered]:
        yield clustered(int(self.get("hardware.devices") or 1))

    def stored(self, mode: str) -> tuple[Row, ...]:
        return STORED

    def corpus(self, given: Mapping[str, str]) -> FakeCorpus:
        return FakeCorpus(given)

    def question(self, given: Mapping[str, str]) -> FakeQuestion:
        return FakeQuestion(self, given, self.engine.pace)

    def migration(self, mode: str, given: Mapping[str, str]) -> FakeOffers:
        return FakeOffers(self, given, self.engine.pace)

    def unpinned(self, name: str) -> FakeDocument:
        return replace(self, beside=tuple(pin for pin in self.beside if pin[0] != name))

    def taken(self, name: str) -> FakeDocument:
        micro = next(row.text for row in dict(self.beside)[name].rows if row.key == "training.micro_batch").split()[0]
        return self.edited("training.micro_batch", micro)

    def renamed(self, name: str, new: str) -> FakeDocument:
        if not new:
            raise PlanError("not a name", hint="allowed: 1 to 40 characters")
        pins = ((new, replace(column, mode=new)) if old == name else (old, column) for old, column in self.beside)
        return replace(self, beside=tuple(pins))

    @property
    def name(self) -> str:
        return self.get("model.name")

    def get(self, key: str) -> str:
        return dict(self.values)[key]

    def fields(self) -> tuple[Field, ...]:
        return tuple(
            replace(spec, text=self.get(spec.key), value=number(self.get(spec.key)), is_auto=self.get(spec.key) == AUTO)
            for spec in FIELDS
        )

    def changed(self, change: Mapping[str, object]) -> FakeDocument:
        after = self
        for key, value in change.items():
            after = after.edited(key, str(value))
        return after

    def unanswered(self) -> FakeDocument:
        return self

    def foresee(self, change: Mapping[str, object]) -> None:
        self.changed(change)

    def advice(self, mode: str) -> tuple[Advice, ...]:
        self.engine.advised += 1
        before = self.column(mode)
        changes = ({"training.micro_batch": 1, "training.seq_len": 1024}, {"training.seq_len": 2048})
        found = []
        for change in changes:
            after = self.changed(change).column(mode)
            memory, speed = (after.row(key) for key in ("memory.per_device_bytes", "computation.tokens_per_second"))
            saved = memory.value / before.row("memory.per_device_bytes").value - 1
            if saved < -0.01:
                effects = (Effect(f"memory {memory.text} {100 * saved:+.0f} %", 1), Effect(f"speed {speed.text}", -1))
                title = "Shorten the sequence" + (" and the batch" if len(change) > 1 else "")
                found.append(Advice(title, change, after.verdict, effects, "Shorter texts."))
        return tuple(found)

    def sizes(self, key: str) -> tuple[int, ...]:
        return ()

    def edited(self, key: str, text: str) -> FakeDocument:
        spec = next(spec for spec in FIELDS if spec.key == key)
        if spec.minimum is not None and text != AUTO:
            text = text.replace("k", "000") if text.endswith("k") else text
            value = number(text)
            allowed = f"allowed {spec.minimum:g}–{spec.maximum:g}"
            if value is None:
                raise PlanError(f"{text} is not a number", hint=allowed)
            if not spec.minimum <= value <= (spec.maximum or value):
                raise PlanError(f"{text} is out of range", hint=allowed)
        return replace(self, values=tuple({**dict(self.values), key: text}.items()))

    def ladder(self) -> tuple[SizedModel, ...]:
        return (
            SizedModel("fine-tune: QLoRA", "llama-3-8b", "comfortable", "71 %", "782 tok/s", True),
            SizedModel("run: Q4_K_M, llama.cpp", "qwen2.5-14b", "on the edge", "97 %", "43 tok/s", False),
        )

    def limit(self, mode: str, key: str) -> FieldLimit:
        for value in range(1, 1024):
            if self.edited(key, str(value)).column(mode).verdict is Verdict.DOES_NOT_FIT:
                return FieldLimit(key, value - 1 or None, value, Verdict.TIGHT)
        return FieldLimit(key, 1024, None, Verdict.FITS)

    def trial(self, key: str, text: str) -> Trial:
        if text == "broken":
            return Trial(Verdict.CANNOT_RUN, reason="the model has no layers")
        if key.startswith("training."):
            after = self.edited(key, text).column("balanced")
            return Trial(after.verdict, "", after.row("computation.train_time").text, share=after.usage.share)
        size = float(len(text))
        verdict = Verdict.DOES_NOT_FIT if size > 12 else Verdict.FITS
        return Trial(verdict, f"{size:.0f}/80 GiB", f"{size:.0f} h", f"${size:.2f}/h", "", size / 80, size, size)

    def trial_pairs(self, keys, pairs):
        for settled in (False, True):
            changes = {pair: self.changed(dict(zip(keys, pair, strict=True))).column("balanced") for pair in pairs}
            rows = {pair: column.row("computation.train_time") for pair, column in changes.items()}
            yield (
                {
                    pair: Trial(column.verdict, column.usage.text, rows[pair].text, "$2.00/h", "", column.usage.share)
                    for pair, column in changes.items()
                },
                settled,
            )

    def compare(self) -> Comparison:
        self.engine.compared += 1
        self.engine.gate.wait(5)
        if self.get("model.name") == "broken":
            raise PlanError("the model has no layers", hint="choose another model")
        columns = (*(self.column(mode) for mode in MODES), *(column for _, column in self.beside))
        where = self.get("hardware.name")
        simulated = "" if where == "detected" else "not this machine"
        hardware = HERE if not simulated else (HardwareRow("GPU", f"{where}  80 GiB", "catalogue"), *HERE[2:])
        title = f"{self.name} · train · {self.get('hardware.devices')}×{where}"
        return Comparison(title, columns, hardware, simulated)

    def micro(self, mode: str) -> float:
        return number(self.get("training.micro_batch")) or MODES[mode]

    def column(self, mode: str) -> Column:
        micro = self.micro(mode)
        sequence, replicas = float(self.get("training.seq_len")), float(self.get("parallelism.dp"))
        state = 112.0 * GIB / (replicas if self.get("parallelism.zero") == "3" else 1)
        activations = micro * sequence * 4.0 * 2**20
        peak = state + activations
        speed = 20000.0 * micro**0.3 * replicas / 8
        verdict = Verdict.FITS if peak < 60 * GIB else Verdict.TIGHT if peak < 80 * GIB else Verdict.DOES_NOT_FIT
        rows = (
            Row(
                "memory.per_device_bytes", "peak / GPU", gib(peak), peak, interval="± 6 %", better=-1, help="Room used."
            ),
            Row("memory.share", "utilization", f"{peak / GIB / 0.8:.0f} %", indent=1, share=peak / GIB / 80),
            Row("computation.train_time", "time", f"{2e9 / speed / 3600:.1f} h", 2e9 / speed, better=-1),
            Row("cost.usd", "cost", "n/a (no price known)"),
            Row("computation.tokens_per_second", "tokens/s", f"{speed / 1000:.1f} k", speed, better=1),
            Row("bottleneck.kind", "first limit", "compute"),
            Row("training.micro_batch", "micro × accum", f"{micro:.0f} × {64 / 8 / micro:.0f}"),
            Row("memory.parts.weights", "weights", gib(state / 7), state / 7, indent=1, better=-1),
            Row("memory.parts.optimizer", "optimizer", gib(state * 6 / 7), state * 6 / 7, indent=1, better=-1),
            Row("memory.parts.activations", "activations", gib(activations), activations, indent=1, better=-1),
        )
        chosen = {
            "training.micro_batch": Chosen(f"{micro:.0f}", f"{mode}: the largest that leaves its reserve", micro),
            "training.checkpointing": Chosen("none", "everything fits without"),
        }
        is_over = verdict is Verdict.DOES_NOT_FIT
        notes = (Note("shard the optimizer", saves="saves 30 GiB"),) if is_over else ()
        reason = f"needs {gib(peak)}, a device has 80.0 GiB" if is_over else ""
        headlines = (
            Headline(
                f"{2e9 / speed / 3600:.1f} h",
                f"{2e9 / speed / 4000:.1f} h – {2e9 / speed / 3000:.1f} h",
                key="computation.train_time",
            ),
            Headline("no price known", key="cost.usd"),
            Headline(f"{speed / 1000:.1f} k tok/s", rank=5, key="computation.tokens_per_second"),
            Headline("compute-bound", rank=8, key="bottleneck.kind"),
        )
        parts = (("weights", state / 7), ("optimizer", state * 6 / 7), ("activations", activations))
        usage = Usage(
            f"{peak / GIB:.1f}/80.0 GiB",
            peak / GIB / 80,
            tuple(MemoryPart(label, size) for label, size in parts),
            80 * GIB,
            peak * 1.06,
            "80.0 GiB",
            f"{gib(peak * 0.94)} – {gib(peak * 1.06)}",
            "" if is_over else gib(80 * GIB - peak),
            "memory.per_device_bytes",
        )
        brief = "conserv." if mode == "conservative" else ""
        return Column(mode, verdict, reason, rows, chosen, notes, brief=brief, usage=usage, headlines=headlines)

    def explain(self, mode: str, key: str) -> ExplanationText:
        pinned = dict(self.beside).get(mode)
        row = (pinned or self.column(mode)).row(key)
        assert row is not None
        return ExplanationText(
            key,
            f"{row.label} ({mode})",
            f"{row.label} = micro_batch × seq_len × 4 MiB",
            row.text,
            (
                FormulaInput("micro_batch", f"{self.micro(mode):.0f}", "chosen by the mode", MICRO_BATCH),
                FormulaInput("seq_len", self.get("training.seq_len"), "plan"),
            ),
            ("Korthikanti et al. 2022, eq. 2",),
            ("every layer is alike",),
            row.interval,
            "micro_batch: halving it saves half",
        )

    def exports(self, mode: str) -> tuple[Export, ...]:
        return (
            Export("Plan as YAML", "", {f"{self.name}-{mode}.yaml": self.dump(mode)}),
            Export("One-line command", "", {f"{self.name}-{mode}.sh": "capacity-tui plan --model it\n"}),
            Export("Framework files", "", {"run.sh": "run\n", "run.yaml": "a: 1\n"}, "it-run"),
        )

    def pictures(self, mode: str) -> tuple[tuple[str, Picture], ...]:
        return (("Memory", MemoryTimeline((), (Amount("weights", 16.0 * GIB),), (), "in the loss", 80.0 * GIB)),)

    def dump(self, mode: str | None = None) -> str:
        head = f"# {mode}\n" if mode else ""
        return head + "".join(f"{key}: {value}\n" for key, value in self.values)


def gib(value: float) -> str:
    return f"{value / GIB:.1f} GiB"
