"""The engine's explanations in the words of the screen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from capacity_tui.engine.choose.filled import ModePlan
from capacity_tui.engine.estimate.equation import Derivation
from capacity_tui.engine.estimate.explain import Explanation as EngineExplanation
from capacity_tui.engine.estimate.explain import Term, interval_text
from capacity_tui.engine.estimate.figures import central
from capacity_tui.engine.units import (
    format_bytes,
    format_count,
    format_energy,
    format_flops,
    format_money,
    format_percent,
    format_power,
    format_rate,
    format_seconds,
)
from capacity_tui.tui.view import Explanation, Input

_WRITERS: Mapping[str, Callable[[float], str]] = {
    "B": format_bytes,
    "s": format_seconds,
    "USD": format_money,
    "kWh": format_energy,
    "W": format_power,
    "FLOP": format_flops,
    "tok/s": format_rate,
    "%": lambda value: format_percent(value / 100),
}
_SMALLEST_SHARE = 0.001
"""Terms below this share of the largest are left out."""
_NAME = re.compile(r"[a-z_]+\.[a-z_]+")


def reason(filled: ModePlan, mode: str, key: str) -> Explanation | None:
    """Return why a mode chose a setting; None for a key that is a figure."""
    if key.partition(".")[0] not in {"training", "parallelism", "inference"}:
        return None
    given = "the plan says so"
    why = filled.reasons.get(key, given)
    value = filled.plan.value(key)
    return Explanation(
        key=key,
        title=f"{key} ({mode})",
        formula=why,
        result="" if value is None else str(value),
        lever="" if why != given else "backspace on the field lets the modes choose, where they can",
    )


def explanation(found: EngineExplanation, mode: str) -> Explanation:
    """Return an explanation of a figure."""
    value = central(found.value)
    return Explanation(
        key=found.key,
        title=f"{found.title} ({mode})",
        formula=_formula(found),
        result="n/a" if value is None else _written(float(value), found.unit),
        inputs=tuple(_inputs(found)),
        sources=_sources(found),
        assumptions=found.assumed,
        interval=interval_text(found.value),
        lever=_lever(found),
    )


def _formula(found: EngineExplanation) -> str:
    if found.derivations:
        return "; ".join(derivation.formula for derivation in found.derivations)
    if found.terms:
        return "the sum of its parts"
    return ""


def _inputs(found: EngineExplanation) -> Iterator[Input]:
    for derivation in found.derivations:
        yield from (_input(entry.name, entry.value, derivation) for entry in derivation.inputs)
    largest = max((abs(term.value) for term in found.terms), default=0.0)
    for term in found.terms:
        if abs(term.value) > _SMALLEST_SHARE * largest:
            yield _term(term, found)


def _term(term: Term, found: EngineExplanation) -> Input:
    unit = found.unit if found.unit in {"B", "s"} else "s"
    return Input(term.name, _written(term.value, unit), term.detail)


def _input(name: str, value: object, derivation: Derivation) -> Input:
    words = name.replace("_", " ")
    try:
        return Input(words, format_count(float(str(value)), decimals=3), "")
    except ValueError:
        return Input(words, str(value), derivation.name if _NAME.fullmatch(name) else "")


def _sources(found: EngineExplanation) -> tuple[str, ...]:
    sources = dict.fromkeys(derivation.source for derivation in found.derivations)
    return tuple(text for text in (*sources, found.calibration) if text)


def _lever(found: EngineExplanation) -> str:
    lever = found.lever
    if lever is None:
        return ""
    return f"{lever.label} {lever.before} → {lever.after}: {lever.change:+.0%}"


def _written(value: float, unit: str) -> str:
    writer = _WRITERS.get(unit)
    return writer(value) if writer else f"{format_count(value)} {unit}".strip()
