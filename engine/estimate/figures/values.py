"""The figures of an estimate by result key: value and range, or why there is none; and a plan's limits for them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import overload

from capacity_tui.engine.catalog import key_of, nearest, parse_shipped
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate.figures.table import LESS, METRICS, PARTS, RUNS, Figured, Metric, Value, part_label
from capacity_tui.engine.estimate.memory_estimate import Constraint
from capacity_tui.engine.estimate.result import Estimate, InferenceSpeed, Iteration
from capacity_tui.engine.estimate.serving.memory import SEQUENCES
from capacity_tui.engine.estimate.serving.rates import FIRST, PER_TOKEN, WHOLE, limited, limits_of
from capacity_tui.engine.keys import JOB_LIMITS, SERVING, Figure, Key, Parts
from capacity_tui.engine.numeric import Number, any_true, mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_quantity, not_available
from capacity_tui.engine.verdict import Verdict

_LIMIT_LABELS = {"capacity": "memory capacity", "overhead": "host overhead"}
_OPEN = "length is open"
_GPU, _DEVICE = "GPU", "device"
_SERVED = "infer"
_ENDS = re.compile(r"\.(value|low|high)$")


@dataclass(frozen=True, slots=True)
class FigureValue:
    """A figure of one estimate."""

    metric: Metric  # what it is, in the words of the run
    value: Value  # the number, with its range where it has one; None where there is none
    absence: str = ""  # why there is none; empty where there is

    @property
    def title(self) -> str:
        """The label with a capital letter."""
        return self.metric.label[:1].upper() + self.metric.label[1:]

    @property
    def number(self) -> float | None:
        """The value of a single plan, without its range."""
        value = central(self.value)
        return None if value is None else mean(value)

    @property
    def text(self) -> str:
        """The value with its unit, or ``n/a`` with the reason."""
        return not_available(self.absence) if self.number is None else format_quantity(self.number, self.metric.unit)

    @property
    def range_text(self) -> str:
        """The range with its unit, empty where there is none."""
        if not isinstance(self.value, Interval) or not math.isfinite(low := mean(self.value.low)):
            return ""
        high, unit = mean(self.value.high), self.metric.unit
        if not math.isfinite(high):
            return f"{format_quantity(low, unit)} and more"
        return f"{format_quantity(low, unit)} to {format_quantity(high, unit)}"


def figure(estimate: Figured, key: str) -> FigureValue:
    """Return the figure of a result key, in the words of the run; raises PlanError if no result has that key."""
    if key in METRICS:
        metric, value = _in_words_of(estimate, METRICS[key]), read_figure(estimate, key)
        return FigureValue(metric, value, absence(key, estimate) if value is None else "")
    group, _, part = key.rpartition(".")
    if key in keys(estimate):
        value = read_figure(estimate, key)
        unit = "B" if group.startswith("memory") else "s"
        return FigureValue(Metric(key, part_label(part), unit, lambda _: value, LESS), value)
    near = nearest(key, keys(estimate))
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(keys(estimate))}"
    raise PlanError(f"no result is called {key!r}"[:200], hint=hint)


def figures_of(estimate: Figured) -> dict[str, Interval]:
    """Return the figures of one estimate by result key; where no range is known, both ends are the value itself."""
    known = {key: value for key, metric in METRICS.items() if (value := metric.read(estimate)) is not None}
    return {key: _as_interval(value) for key, value in known.items()}


def _as_interval(value: Number | Interval) -> Interval:
    interval = value if isinstance(value, Interval) else Interval.exactly(value)
    return Interval(mean(interval.value), mean(interval.low), mean(interval.high))


def read_figure(estimate: Figured, key: str) -> Value:
    """Return a figure by its result key; None where there is none, 0 for a part that this kind of run lacks."""
    if key in METRICS:
        return METRICS[key].read(estimate)
    group, _, part = key.rpartition(".")
    return _parts_of(estimate)[group].get(part, 0.0)


def _parts_of(estimate: Figured) -> Mapping[str, Mapping[str, Number]]:
    return {Parts.MEMORY: estimate.memory.parts, Parts.COMPUTATION: estimate.computation.parts}


def panel_figures(estimate: Figured) -> tuple[str, ...]:
    """Return the keys of the figures that the table of a plan shows, in their order."""
    shown = (metric for metric in METRICS.values() if RUNS[metric.panel](estimate))
    return tuple(metric.key for metric in shown if not _says_nothing(metric, estimate))


def block_figures(estimate: Figured, block: str) -> tuple[str, ...]:
    """Return the keys of the figures that reports show under a heading, in their order; some may have no value."""
    return tuple(
        metric.key for metric in METRICS.values() if metric.block == block and not _says_nothing(metric, estimate)
    )


def _says_nothing(metric: Metric, estimate: Figured) -> bool:
    return metric.saying_nothing is not None and metric.saying_nothing(estimate)


def usual_words(text: str, **known: str) -> str:
    """Return a label or a unit in the words of most runs, but for those that are known of one."""
    words = {"unit": "token", "counted": "tokens", "samples": "samples", "iteration": "step", "job": "training"}
    return text.format(**{**words, "tail": "tail", "total": "", "both": "", "device": _GPU, **known})


def _in_words_of(estimate: Figured, metric: Metric) -> Metric:
    """Return the metric with the words that this kind of run uses."""
    model, computation = estimate.model, estimate.computation
    speed = computation.infer
    both = speed is not None and speed.decode_tokens_per_second is not None
    tail = "tail" if speed is None or speed.percentile is None else f"p{mean(speed.percentile):.4g}"
    iteration, kind = computation.iteration, computation.device_kind
    return _in_words(metric.key, model.unit, model.counted, model.samples, iteration, kind, both=both, tail=tail)


@cache
def _in_words(
    key: str, unit: str, counted: str, samples: str, iteration: Iteration, kind: str, *, both: bool, tail: str
) -> Metric:
    metric = METRICS[key]
    words = {
        "unit": unit,
        "counted": counted,
        "samples": samples,
        "iteration": iteration,
        "job": "fit" if iteration == "fit" else "training",
        "device": _GPU if kind == "gpu" else _DEVICE,
        "tail": tail,
        "total": "total " if both else "",
        "both": " (prompts and answers)" if both else "",
    }
    label, unit, brief = (text.format(**words) for text in (metric.label, metric.unit, metric.brief))
    return replace(metric, label=label, unit=_short_tokens(unit), brief=_short_tokens(brief))


def _short_tokens(text: str) -> str:
    return text.replace("tokens", "tok")


def figure_text(key: str) -> str:
    """Return what a figure or part is and why it matters, in two sentences, by its result key; empty without a text."""
    return _texts().get(key, "")


@cache
def _texts() -> Mapping[str, str]:
    return parse_shipped("figure_texts.yaml")


def limit_label(kind: str) -> str:
    """Return what a bottleneck is called."""
    return _LIMIT_LABELS.get(kind, kind.replace("_", " "))


def bound_text(kind: str) -> str:
    """Return what a run is bound by, as ``compute-bound``."""
    return f"{limit_label(kind).replace(' ', '-')}-bound"


def absence(key: str, estimate: Figured) -> str:
    """Return in a few words why an estimate has no figure of this key."""
    cost, energy, computation = estimate.cost, estimate.energy, estimate.computation
    if key.startswith((f"{SERVING}.", "inference.")) or key == Figure.COST_USD_PER_REQUEST:
        if computation.infer is None:
            return "only serving has it"
        if key != Figure.COST_USD_PER_REQUEST:
            return _not_served(key, computation.infer)
    if key == Figure.COST_USD_SPOT and computation.steps is not None and cost.usd_per_hour is not None:
        return cost.why_no_spot or "no spot price known"
    reasons = {
        Figure.MEMORY_HOST_CAPACITY_BYTES: "memory of the host not known",
        Figure.COST_GPU_HOURS: _OPEN,
        Figure.ESTIMATED_TRAIN_TIME_SECONDS: _OPEN,
        Figure.TOTAL_FLOPS: _OPEN,
        Figure.RELIABILITY_CALENDAR_USD: _OPEN if cost.usd_per_hour is not None else "no price known",
        "memory": "memory size not known",
        "carbon": _OPEN if energy.watts_average is not None else "power limit not known",
        "energy": _OPEN if energy.watts_average is not None else "power limit not known",
        "cost": "no price known" if cost.usd_per_hour is None else cost.why_no_spot or _OPEN,
        "reliability": "nothing is trained" if computation.iteration != "step" else _OPEN,
        "training": "the law is of dense language models trained from the start, for a known length",
    }
    return reasons.get(key) or reasons.get(key.partition(".")[0], "not known")


def _not_served(key: str, speed: InferenceSpeed) -> str:
    """Return why something that is served lacks a figure."""
    has_load, panel = speed.request_seconds is not None, METRICS[key].panel
    if key.startswith("inference."):
        return "the load decides the batch" if has_load else "memory size not known"
    if panel in ("loaded", "ending") and not has_load:
        return "the plan gives no load"
    if panel == "ending":
        return "the load goes on"
    endless = getattr(speed, key.rpartition(".")[2]) is not None
    return "more requests arrive than can be answered" if endless else "the model generates no tokens"


def keys(estimate: Figured) -> tuple[str, ...]:
    parts_of_run = _parts_of(estimate)
    parts = (
        f"{group}.{part}" for group, names in PARTS.items() for part in dict.fromkeys((*parts_of_run[group], *names))
    )
    return (*METRICS, *parts)


@overload
def central(value: Number | Interval) -> Number: ...
@overload
def central(value: None) -> None: ...
@overload
def central(value: Value) -> Number | None: ...
def central(value: Value) -> Number | None:
    """Return the value itself, without its range."""
    return value.value if isinstance(value, Interval) else value


def interval_text(value: Value) -> str:
    """Return the range of a value in percent of it, empty where it has none."""
    if not isinstance(value, Interval):
        return ""
    center = mean(value.value) or 1.0
    low, high = (mean(end) / center - 1.0 for end in (value.low, value.high))
    return f"{low:+.0%} to {high:+.0%}"


def figure_keys(name: str, task: str | None = None, known: Iterable[str] = METRICS) -> tuple[str, ...]:
    """Return the result keys that a word, a key or the name that tables show stands for, the usual one first.

    Args:
        name: a short word, a result key, or what a figure is called, as ``training time`` or ``training_time``.
        task: what is done with the model; ``infer`` has other words than all the rest.
        known: the keys that a hint may name.

    Raises:
        PlanError: no figure is called that; the hint tells the nearest.
    """
    words, text = figure_words(task), name.strip()
    if text.casefold() in words:
        return words[text.casefold()]
    key = result_key(text)
    group, _, part = key.rpartition(".")
    if key in METRICS or part in PARTS.get(group, ()):
        return (key,)
    if key_of(text) in _labels():
        return (_labels()[key_of(text)],)
    near = nearest(text, (*words, *known))
    hint = f"did you mean {' or '.join(near)}?" if near else f"short words: {', '.join(words)}"
    raise PlanError("no figure is called", repr(name)[:80], hint)


def named_figure(name: str, estimate: Estimate, task: str | None = None) -> str:
    """Return the result key of a figure of an estimate: of several that a name means the first that it has."""
    if (key := result_key(name.strip())) in keys(estimate):
        return key
    named = figure_keys(name, task, keys(estimate))
    return next((key for key in named if read_figure(estimate, key) is not None), named[0])


def result_key(name: str) -> str:
    """Return the result key a name stands for: its ends and short forms are names of it too."""
    bare = _ENDS.sub("", name)
    if bare.startswith(Figure.MODEL_FORWARD_FLOPS):
        return Figure.MODEL_FORWARD_FLOPS
    group, _, part = bare.partition(".")
    return f"{group}.parts.{part}" if part in PARTS.get(f"{group}.parts", ()) else bare


def open_length(key: str) -> str:
    """Return the figure that leads to the same choice where the length of a job is open: mostly the figure itself."""
    metric = METRICS.get(key)
    return key if metric is None or metric.open_length is None else metric.open_length


@cache
def figure_words(task: str | None = None) -> Mapping[str, tuple[str, ...]]:
    """Return the figures of each short word; of several percentages come first, as bare numbers are read as those."""
    by_word: dict[str, tuple[Metric, ...]] = {}
    for metric in METRICS.values():
        for word in (*metric.words, *(metric.served if task == _SERVED else metric.trained)):
            by_word[word] = (*by_word.get(word, ()), metric)
    return {
        word: tuple(metric.key for metric in sorted(metrics, key=lambda metric: metric.unit != "%"))
        for word, metrics in by_word.items()
    }


@cache
def _labels() -> Mapping[str, str]:
    """Return the figure of each name that tables show, of several the first."""
    return {key_of(usual_words(metric.label)): key for key, metric in reversed([*METRICS.items()])}


RATE, BATCH = Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_BATCH
REQUESTS, SAMPLES = Figure.LARGEST_REQUESTS_PER_SECOND, Figure.SAMPLES_PER_SECOND
NO_NUMBERS: Mapping[str, Number | None] = MappingProxyType({})
_FIELDS = {FIRST: "ttft_seconds", PER_TOKEN: "tpot_seconds", WHOLE: "request_seconds"}


def limit(
    estimate: Figured, key: str, *, most: Number | None = None, least: Number | None = None, why: str = ""
) -> Constraint:
    """Return a limit of one figure beside what an estimate reaches of it; broken where it has no such figure.

    Args:
        estimate: the estimate, of one plan or of several.
        key: result key of the figure.
        most: the most it may be.
        least: the least it must be.
        why: where the limit comes from.

    Raises:
        PlanError: no result has that key.
    """
    value = figure(estimate, key)
    reached = value.value if value.value is None or isinstance(value.value, Interval) else Interval.exactly(value.value)
    label = value.metric.brief or value.metric.label
    why = f"{label}: {value.absence}" if reached is None else why
    return Constraint(key, label, value.metric.unit, reached, most, least, why)


def plan_limits(
    plan: Plan, estimate: Figured, numbers: Mapping[str, Number | None] = NO_NUMBERS
) -> tuple[Constraint, ...]:
    """Return what a plan asks of its figures: of the whole job, and of requests where it serves.

    Args:
        estimate: its estimate, or that of several plans that differ in some numbers.
        numbers: those numbers as arrays, by plan key; None where these have none.
    """
    return (*(_served(plan, estimate, numbers) if plan.is_inference else ()), *_whole_job(plan, estimate))


def _whole_job(plan: Plan, estimate: Figured) -> Iterator[Constraint]:
    """Yield the limits of time and money, of a job that trains or serves; a load that goes on has neither."""
    for path, _, trained, served in JOB_LIMITS.values():
        most, key = plan.value(path), served if plan.is_inference else trained
        if isinstance(most, float) and figure(estimate, key).value is not None:
            yield limit(estimate, key, most=most, why=path)


def _served(plan: Plan, estimate: Figured, numbers: Mapping[str, Number | None]) -> Iterator[Constraint]:
    wanted, speed = plan.inference, estimate.computation.infer
    rate = numbers.get(RATE, wanted.arrival_rate)
    goes_on = rate is not None and wanted.requests is None
    # What answers one batch after another serves as many as it makes in a second.
    served = SAMPLES if speed is None else REQUESTS
    if goes_on and figure(estimate, served).value is not None:
        yield replace(limit(estimate, served, least=rate, why=RATE), label="load served")
    for name, seconds in limits_of(wanted).items():
        path = f"inference.{_FIELDS[name]}"
        limiting = None if speed is None else limited(speed, name)
        if name == WHOLE and speed is not None:  # without a load all begin together, and are answered with the batch
            key = Figure.STEP_SECONDS if speed.request_seconds is None else Figure.REQUEST_SECONDS
            whole = limit(estimate, key, most=numbers.get(path, seconds), why=path)
            yield whole if speed.request_seconds is None else replace(whole, label=f"mean {whole.label}")
        elif limiting is not None:
            yield limit(estimate, limiting[0], most=numbers.get(path, seconds), why=path)
    given = float(wanted.batch) if isinstance(wanted.batch, int) else None
    room, batch = estimate.details.get(SEQUENCES), numbers.get(BATCH, given)
    if room is None:
        return
    cache = Constraint(SEQUENCES, "cache", "sequences", Interval.exactly(room), why=BATCH, broken_as=Verdict.TIGHT)
    one, fits = replace(cache, least=1.0, broken_as=Verdict.DOES_NOT_FIT), estimate.memory.fits
    # An engine without room for one request does not start; where a device is too small, that alone is said.
    if any_true(~one.kept if fits is None else fits & ~one.kept):
        yield one
    if batch is not None and rate is None and any_true(batch > 1.0):
        yield replace(cache, least=batch)
