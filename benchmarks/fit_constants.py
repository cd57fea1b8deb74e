"""Fit the constants of training to published runs and say how well they do on publishers left out.

Run it with ``python benchmarks/fit_constants.py time`` or ``memory``; ``--write`` puts the fitted values into
``profiles/efficiency.yaml`` and ``frameworks.yaml``, and the errors left into ``reliability.yaml``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from capacity_tui.engine.accuracy.cases import CalibrationRun, memory_bytes, step_seconds, training_cases
from capacity_tui.engine.accuracy.constants import Constant, read_constants
from capacity_tui.engine.accuracy.fit import Fit, Floats, Problem, current_value, fit
from capacity_tui.engine.accuracy.ranges import (
    TAILS,
    coverage,
    memory_class_of,
    memory_ratios,
    ranges_by_class,
    step_class_of,
)
from capacity_tui.engine.catalog import Catalog, load_catalog

PROFILES = Path(__file__).parent.parent / "profiles"
WIDENING = 1.5
DIGITS = 3


def problem_of(fits: str, catalog: Catalog) -> Problem:
    """Return the problem of step times or of memory."""
    if fits == "time":
        cases = training_cases("train_time", catalog) + training_cases("finetune_time", catalog)
        return Problem(cases, read_constants(fits), step_seconds, catalog)
    cases = training_cases("train_memory", catalog) + training_cases("finetune_memory", catalog)
    return Problem(cases, read_constants(fits), memory_bytes, catalog)


def figures(residuals: Floats) -> str:
    errors = np.abs(np.expm1(residuals))
    return f"{np.median(errors):6.1%} {np.percentile(errors, 90):6.1%} {np.median(residuals):+6.1%}"


def report(found: Fit, before: Floats) -> None:
    keys = np.array([case.measurement.source_key for case in found.problem.cases])
    print(f"{'publisher':24s}{'runs':>5s}  median, 90th percentile, bias: before | fitted | left out")
    for key in ("", *dict.fromkeys(keys)):
        own = keys == key if key else np.ones(len(keys), dtype=bool)
        parts = " | ".join(figures(each[own]) for each in (before, found.residuals, found.unseen))
        print(f"{key or 'all':24s}{own.sum():5d}  {parts}")
    for constant, value in found.values.items():
        old = current_value(constant, found.problem.catalog)
        print(f"{constant.id:28s} prior {constant.prior:9.3f}  before {old:9.3f}  fitted {value:9.3f}")


def replaced(text: str, row: str, field: str, value: float) -> str:
    """Return YAML text with another value of one field of one row."""
    name, _, key = field.partition(".")
    block = re.search(rf"(?ms)^{re.escape(row)}:\n(.*?)(?=^\S|\Z)", text)
    if block is None:
        raise KeyError(row)
    shown = f"{float(f'{value:.{DIGITS}g}'):g}"
    if key.isdigit():
        pattern = rf"^(  {name}: \[(?:[^,\]]*,\s*){{{key}}})[-+0-9.e]+"
    elif key:
        pattern = rf"^(  {name}: .*?\b{key}: )[-+0-9.e]+"
    else:
        pattern = rf"^(  {name}: )[-+0-9.e]+"
    body = re.sub(pattern, lambda match: match.group(1) + shown, block.group(1), flags=re.MULTILINE)
    return text[: block.start(1)] + body + text[block.end(1) :]


def write_constants(values: dict[Constant, float]) -> None:
    for constant, value in values.items():
        path = PROFILES / f"{constant.table}.yaml"
        text = path.read_text("utf-8")
        for row in constant.rows:
            text = replaced(text, row, constant.field, value)
        path.write_text(text, "utf-8")


def write_ranges(
    cases: Sequence[CalibrationRun], ratios: Floats, class_of: Callable[[CalibrationRun], str], tail: float
) -> None:
    found = ranges_by_class(cases, ratios, class_of, tail)
    path = PROFILES / "reliability.yaml"
    text = path.read_text("utf-8")
    for name, row in found.items():
        block = (
            f"{name}:\n"
            f"  name: {name.replace('-', ', ')}\n"
            f"  low: {row.low:.{DIGITS}g}\n  high: {row.high:.{DIGITS}g}\n"
            f"  measurements: {row.measurements}\n  publishers: {row.publishers}\n  widening: {WIDENING}\n"
            f"  hardware: [{', '.join(row.hardware)}]\n  frameworks: [{', '.join(row.frameworks)}]\n"
            "  source: profiles/measurements, each publisher left out of the fit in turn\n"
            "  checked: 2026-11-21\n  confidence: B\n"
        )
        text = re.sub(rf"(?ms)^{name}:\n.*?(?=^\S|\Z)", "", text).rstrip("\n") + "\n" + block
    path.write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fits", choices=("time", "memory"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--iterations", type=int, default=5)
    chosen = parser.parse_args()
    problem = problem_of(chosen.fits, load_catalog())
    before = problem.residuals(problem.start())
    found = fit(problem, chosen.iterations)
    report(found, before)
    class_of = step_class_of if chosen.fits == "time" else memory_class_of
    timed = chosen.fits == "time"
    ratios = np.exp(-found.unseen) if timed else memory_ratios(problem.cases, found.unseen, problem.catalog)
    inside = coverage(problem.cases, ratios, class_of, WIDENING, TAILS[chosen.fits])
    print(f"ranges of eight in ten hold {inside[0]:.0%} of the runs left out, {inside[1]:.0%} by publisher")
    if chosen.write:
        write_constants(found.values)
        write_ranges(problem.cases, ratios, class_of, TAILS[chosen.fits])


if __name__ == "__main__":
    main()
