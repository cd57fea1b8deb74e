"""Plans side by side: where they differ, and their figures with the differences to the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from capacity_tui.engine.estimate import METRICS, Answer, Estimate, FigureValue, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import OWN_PARAMETERS, Plan, all_fields, plan_values
from capacity_tui.engine.present.parts import (
    Part,
    Section,
    SectionsPart,
    TextPart,
    difference_text,
    table_part,
    write_parts,
)
from capacity_tui.engine.present.results import plan_value_text
from capacity_tui.engine.present.summary import figure_sections, headline
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_count

_LEAST_DIFFERENCE = 0.005  # Differences below half a percent are not reported

_FIGURES = (
    *METRICS,
    Figure.MEMORY_WEIGHTS,
    Figure.MEMORY_GRADIENTS,
    Figure.MEMORY_OPTIMIZER,
    Figure.MEMORY_ACTIVATIONS,
    Figure.MEMORY_LOGITS,
    Figure.MEMORY_KV_CACHE,
)


@dataclass(frozen=True, slots=True)
class Named:
    """One of several answers."""

    name: str  # what it is called beside the others
    answer: Answer


@dataclass(frozen=True, slots=True)
class Differing:
    """A field of the plans that is not the same in all."""

    path: str  # dotted path of the field
    label: str
    values: tuple[object, ...]  # its value in each plan; None where a plan has no such field

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as they are shown."""
        return tuple("–" if value is None else plan_value_text(value) for value in self.values)


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of every plan."""

    key: str  # its result key
    figures: tuple[FigureValue, ...]  # the figure of each

    @property
    def label(self) -> str:
        """What it is called, as the first that has it says."""
        return next(entry for entry in self.figures if entry.number is not None).metric.label

    @property
    def differences(self) -> tuple[float | None, ...]:
        """By how much each exceeds the first, as a share of that; None where one of both is missing."""
        first = self.figures[0].number
        return tuple(
            None if not first or entry.number is None else (entry.number - first) / abs(first) for entry in self.figures
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """Each with its unit, and the difference to the first behind it."""
        return tuple(
            f"{entry.text}{_difference(share)}" if entry.number is not None else "–"
            for entry, share in zip(self.figures, self.differences, strict=True)
        )


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several plans, the first of which is the baseline."""

    entries: tuple[Named, ...]  # the plans and their estimates
    differing: tuple[Differing, ...]  # the fields that are not the same in all
    figures: tuple[Compared, ...]  # those that any of them has

    @property
    def names(self) -> tuple[str, ...]:
        """What the plans are called."""
        return tuple(entry.name for entry in self.entries)

    @property
    def headlines(self) -> tuple[str, ...]:
        """Each plan in a few words."""
        return tuple(headline(entry.answer.plan, entry.answer.estimate) for entry in self.entries)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return tuple(entry.answer.estimate.verdict_text for entry in self.entries)


def side_by_side(entries: Iterable[Named]) -> SideBySide:
    """Return answers beside each other; the first is what the others are compared with."""
    named = tuple(entries)
    return SideBySide(named, tuple(_differing(named)), tuple(_compared(named)))


def as_data(of: SideBySide) -> dict[str, object]:
    """Return plans side by side as plain data: lists in the order of the plans, figures by result key."""
    estimates = [entry.answer.estimate for entry in of.entries]
    return {
        "plans": list(of.names),
        "baseline": of.names[0],
        "fits": [estimate.fits for estimate in estimates],
        "verdicts": [estimate.verdict.value for estimate in estimates],
        "differs": {entry.path: list(entry.values) for entry in of.differing},
        "figures": {
            entry.key: [_data(value, share) for value, share in zip(entry.figures, entry.differences, strict=True)]
            for entry in of.figures
        },
    }


def _data(figure_value: FigureValue, share: float | None) -> dict[str, object] | None:
    """Return a figure with its range where it has one, and its difference to the first; None where there is none."""
    if figure_value.number is None:
        return None
    ends = (
        {"low": float(figure_value.value.low), "high": float(figure_value.value.high)}
        if isinstance(figure_value.value, Interval)
        else {}
    )
    return {"value": figure_value.number, **ends, "difference": share}


def _differing(entries: Sequence[Named]) -> Iterator[Differing]:
    result = [plan_values(entry.answer.plan, entry.answer.resolved.family.kind) for entry in entries]
    for path in dict.fromkeys(path for values in result for path in values):
        values = tuple(entry.get(path) for entry in result)
        if len({plan_value_text(value) for value in values}) > 1:
            known = all_fields().get(path)
            yield Differing(path, known.knob.label if known else path.removeprefix(OWN_PARAMETERS), values)


def _compared(entries: Sequence[Named]) -> Iterator[Compared]:
    for key in _FIGURES:
        values = tuple(figure(entry.answer.estimate, key) for entry in entries)
        if any(value.number for value in values):
            yield Compared(key, values)


def _difference(share: float | None) -> str:
    if share is None or abs(share) < _LEAST_DIFFERENCE:
        return ""
    return f" ({difference_text(share)})"


def comparison_parts(of: SideBySide) -> Iterator[Part]:
    """Yield what a comparison says: what the plans are, where they differ, and their figures."""
    plans = (("plan", *of.headlines), ("verdict", *of.verdicts))
    columns = range(1, len(of.names) + 1)
    yield table_part(("Plans", *of.names), plans)
    yield from _other_method(of)
    yield from _rows_part("Differs", of.names, [(field.label, *field.texts) for field in of.differing])
    yield from _rows_part("Figures", of.names, [(figure.label, *figure.texts) for figure in of.figures], columns)


def _other_method(of: SideBySide) -> Iterator[Part]:
    """Say that some of the plans train by a method that was chosen since they do not fit, and others do not."""
    methods = {entry.name: entry.answer.plan.training.method for entry in of.entries}
    pressed = [entry.name for entry in of.entries if Key.TRAINING_METHOD in entry.answer.estimate.basis.chosen]
    if pressed and len(set(methods.values())) > 1:
        method = methods[pressed[0]]
        yield TextPart(f"Only {method} fits on {', '.join(pressed)}: say {method} to compare the same training on all.")


def _rows_part(
    title: str, names: Sequence[str], rows: Sequence[tuple[str, ...]], right: Iterable[int] = ()
) -> Iterator[Part]:
    if rows:
        yield table_part((title, *names), rows, right)


def write_comparison(form: str, of: SideBySide) -> str:
    """Return a comparison as json, yaml, markdown or html."""
    parts = (TextPart(f"Differences are relative to {of.names[0]}.", "quiet"), *comparison_parts(of))
    return write_parts(form, f"{', '.join(of.names)} side by side", parts, lambda: as_data(of))


def settings_part(columns: Sequence[tuple[str, Plan, Estimate]]) -> SectionsPart:
    """Return the plans of modes in columns: verdict, what the mode chose, and the figures."""
    settings = [_settings(plan) for _, plan, _ in columns]
    labels = dict.fromkeys(label for column in settings for label in column)
    verdicts = ("verdict", *(estimate.verdict.words for _, _, estimate in columns))
    chosen = Section("", (verdicts, *((label, *(column.get(label, "") for column in settings)) for label in labels)))
    figures = [
        {
            (section.title, row[0]): row[1]
            for section in figure_sections(plan, estimate)
            for row in section.rows
            if row[1]
        }
        for _, plan, estimate in columns
    ]
    rows: dict[str, list[tuple[str, ...]]] = {}
    for title, label in dict.fromkeys(key for column in figures for key in column):
        rows.setdefault(title, []).append((label, *(column.get((title, label), "") for column in figures)))
    sections = (Section(title, tuple(entries)) for title, entries in rows.items())
    return SectionsPart(tuple(name for name, _, _ in columns), (chosen, *sections))


def _settings(plan: Plan) -> dict[str, str]:
    """Return what a mode chooses, by its label."""
    training, parallel, serving = plan.training, plan.parallelism, plan.inference
    model = {"model": plan.model.name or plan.model.config or ""}
    if plan.is_inference:
        return {**model, "weights": serving.weights_format, "batch": str(serving.batch)}
    if plan.is_fit:
        return model
    return {
        **model,
        "sequence": f"{training.seq_len} tok",
        "micro / global batch": f"{training.micro_batch} / {training.global_batch}",
        "precision": training.precision,
        "checkpointing": training.checkpointing,
        "dp x tp x pp, ZeRO": f"{parallel.dp} x {parallel.tp} x {parallel.pp}, {parallel.zero}",
        **({"tokens": format_count(float(training.tokens), "tok")} if isinstance(training.tokens, float) else {}),
    }
