"""What a fit found, in words for whoever runs it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.present.runs import IDENTIFIED
from tools.calibrate.fitting import Fit, Floats, RunT
from tools.calibrate.ranges import RangesOfFigure, coverage
from tools.calibrate.writing import shown


def errors_in_words(residuals: Floats) -> str:
    """Return median and 90th percentile of the relative errors, and the bias."""
    errors = np.abs(np.expm1(residuals))
    return f"{np.median(errors):6.1%} {np.percentile(errors, 90):6.1%} {np.median(residuals):+6.1%}"


def fit_in_words(found: Fit[RunT], shipped: Floats) -> Iterator[str]:
    """Yield the errors of each publisher's runs, then the constants.

    Args:
        found: the fit.
        shipped: residuals with what ships.
    """
    problem = found.problem
    yield f"{'publisher':24s}{'runs':>5s}  median, 90th percentile, bias: shipped | fitted | left out"
    for publisher in ("", *problem.publishers):
        own = problem.places(publisher) if publisher else list(range(len(problem.runs)))
        parts = " | ".join(errors_in_words(each[own]) for each in (shipped, found.errors.residuals, found.unseen))
        yield f"{publisher or 'all':24s}{len(own):5d}  {parts}"
    yield f"\n{'constant':32s}{'prior':>10s}{'shipped':>10s}{'fitted':>10s}{'moved':>8s}  runs of publishers, learned"
    for _, name, _, _, prior, runs, publishers, learned in evidence(found):
        constant = next(each for each in problem.constants if each.id == name)
        old = constant.shipped(problem.catalog)
        new = found.values[constant]
        moved = f"{new / old - 1.0:+.1%}" if old else "n/a"
        told = f"{float(learned):.0%}" if float(learned) >= IDENTIFIED else f"{float(learned):.0%}: the prior"
        yield f"{name:32s}{prior:>10s}{shown(old):>10s}{shown(new):>10s}{moved:>8s}  {runs} of {publishers}, {told}"


def ranges_in_words(found: RangesOfFigure) -> Iterator[str]:
    """Yield the spreads of a kind of figure, and how well its ranges hold the runs of publishers left out."""
    fitted = found.fitted
    told = ", ".join(f"{name} {shown(value)}" for name, value in {**fitted.spreads, **fitted.distances}.items())
    ends = (
        f"{kind or 'ends'} {shown(below)} below and {shown(above)} above"
        for kind, (below, above) in fitted.ends.items()
    )
    yield f"{found.row}: {told}; {', '.join(ends)}"
    unseen = found.unseen
    for words, withheld in (("", False), (", software withheld", True)):
        runs = [each for each in unseen if each.withheld == withheld]
        if runs:
            held = coverage(runs)
            yield (
                f"  holds {held.of_runs:.0%} of {held.runs} runs left out, {held.of_publishers:.0%} by publisher "
                f"({held.publishers}), high over low {held.width:.2f}{words}"
            )


def evidence(found: Fit[RunT]) -> Iterator[tuple[str, str, str, str, str, str, str, str]]:
    """Yield what each constant rests on, as ``fits/constants.csv`` holds it; its value is the one that ships."""
    problem = found.problem
    for constant, learned in zip(problem.constants, found.learned, strict=True):
        readers = [run for run in problem.runs if run.reads(constant)]
        yield (
            constant.fits,
            constant.id,
            f"{constant.table}.{constant.field}",
            shown(constant.shipped(problem.catalog)),
            shown(constant.prior),
            str(len(readers)),
            str(len({run.publisher for run in readers})),
            f"{learned:.2f}",
        )
