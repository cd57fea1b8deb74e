"""What a change does to the figures, as numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate import METRICS, Estimate, Metric, figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Section, all_fields
from capacity_tui.engine.units import format_percent, format_quantity

# Changes smaller than this are the arithmetic's, not the machine's.
_NOTHING = 1e-6
_WORTH_TELLING = 0.005


def value_of(estimate: Estimate, key: str) -> float | None:
    """Return a figure without its range; None where there is none."""
    if key == Figure.TOKENS_PER_SECOND and estimate.computation.unit != "token":
        return None
    return figure(estimate, key).number


def saves(before: Estimate, after: Estimate) -> dict[str, float]:
    """Return what changes, by result key: new value minus old."""
    savings: dict[str, float] = {}
    for key in _compared(before, after):
        old, new = value_of(before, key), value_of(after, key)
        if old is not None and new is not None and abs(new - old) > _NOTHING * max(abs(old), abs(new)):
            savings[key] = new - old
    return savings


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to one figure.

    Attributes:
        metric: the figure, in the words of the run.
        before: its value without the change.
        after: its value with it.
    """

    metric: Metric
    before: float
    after: float

    @property
    def text(self) -> str:
        """The value with the change."""
        return format_quantity(self.after, self.metric.unit)

    @property
    def percent(self) -> str:
        """The difference, with its sign; empty where there was nothing before."""
        return _signed(self.after / self.before - 1.0) if self.before else ""

    @property
    def gain(self) -> int:
        """1 where the figure got better, -1 where it got worse, 0 where neither is said of it."""
        return self.metric.better * (1 if self.after > self.before else -1)


def effects(before: Estimate, after: Estimate) -> Iterator[Effect]:
    """Yield what changes by more than nothing: time or speed, memory, money."""
    compared = set()
    for key in _compared(before, after):
        subject, old, new = METRICS[key].told, value_of(before, key), value_of(after, key)
        if not subject or subject in compared or old is None or new is None:
            continue
        compared.add(subject)
        if abs(new - old) > _WORTH_TELLING * abs(old):
            yield Effect(figure(before, key).metric, old, new)


def effect_text(before: Estimate, after: Estimate) -> str:
    """Return the change in words."""
    return ", ".join(map(_effect_text, effects(before, after)))


def _effect_text(effect: Effect) -> str:
    percent = f" ({effect.percent})" if effect.percent else ""
    return (
        f"{effect.metric.name} {effect.text} instead of {format_quantity(effect.before, effect.metric.unit)}{percent}"
    )


def _compared(before: Estimate, after: Estimate) -> tuple[str, ...]:
    """Return the keys of the figures that a change is judged by; those of the job only where it is the same work."""
    kinds = ("all", "same work") if _same_work(before, after) else ("all",)
    return tuple(metric.key for metric in METRICS.values() if metric.difference in kinds)


def _same_work(before: Estimate, after: Estimate) -> bool:
    """Whether both jobs work through as many tokens or samples, to a hundredth."""
    old, new = _units(before), _units(after)
    if old is None or new is None:
        return False
    return abs(new - old) <= 0.01 * old


def _units(estimate: Estimate) -> float | None:
    computation = estimate.computation
    return None if computation.steps is None else mean(computation.steps * computation.units_per_step)


def plain_change(change: Mapping[str, object]) -> dict[str, object]:
    """Return a change as plain data."""
    return {
        path: value.model_dump(mode="json") if isinstance(value, Section) else value for path, value in change.items()
    }


def change_text(change: Mapping[str, object]) -> str:
    """Return the fields to set, as the command line takes them."""
    return ", ".join(f"{path}={_written(value)}" for path, value in plain_change(change).items())


def setting_words(change: Mapping[str, object]) -> str:
    """Return what to set in the words of the screen."""
    known = all_fields()
    named = ((known[path].knob.label if path in known else path, value) for path, value in plain_change(change).items())
    return "Set " + ", ".join(f"{label} {_written(value)}" for label, value in named)


def _written(value: object) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(entry)}" for key, entry in value.items()) + "}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _signed(share: float) -> str:
    text = format_percent(share)
    return text if share < 0 else f"+{text}"


def reserved_bytes(estimate: Estimate) -> float:
    """Return the bytes on the fullest device."""
    return float(np.max(np.asarray(estimate.memory.reserved_bytes.value)))


def unit_seconds(estimate: Estimate) -> float:
    """Return the seconds of one token or sample."""
    computation = estimate.computation
    return mean(computation.step_seconds.value / computation.units_per_step)


def cost_ratio(after: Estimate, before: Estimate) -> float:
    """Return how many times as dear a token or sample is: in money, in seconds where devices are free of charge.

    Where not both have a price, device-seconds stand for money.
    """
    priced = None not in (after.cost.usd_per_million_tokens, before.cost.usd_per_million_tokens)
    return _unit_cost(after, priced) / _unit_cost(before, priced)


def _unit_cost(estimate: Estimate, priced: bool) -> float:
    usd = estimate.cost.usd_per_million_tokens
    if not priced or usd is None:
        return unit_seconds(estimate) * mean(estimate.computation.devices)
    return mean(usd) or unit_seconds(estimate)
