"""The accuracy report as data, Markdown and plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from textwrap import shorten
from types import MappingProxyType
from typing import TypeAlias

from capacity_tui.engine.runs.accuracy.out_of_sample import (
    FittedConstant,
    LeftOut,
    first_looks,
    first_sights,
    rival_predictions,
)
from capacity_tui.engine.runs.accuracy.predictions import VerdictReport, share
from capacity_tui.engine.runs.accuracy.published import DESCRIBED, Kind
from capacity_tui.engine.runs.accuracy.scoring import AccuracyReport, Pair, Prediction, Scores, score
from capacity_tui.engine.verdict import Verdict

UnseenScores: TypeAlias = Mapping[LeftOut, Scores]
TITLES: Mapping[Kind, str] = {kind: figure.title for kind, figure in DESCRIBED.items()}
SCORE_HEADINGS = (
    "runs",
    "publishers",
    "median error",
    "each publisher once",
    "mean error",
    "90th percentile",
    "bias",
    "in the range",
    "by publisher",
    "high/low",
)
PAIR_HEADINGS = ("run", "predicted", "measured", "unit", "error", "what is known of it")
INTRODUCTION = """# Accuracy

Predicted against measured: every published run of the catalogue's measurements that is complete enough to be written
as a plan (quality A or B), estimated as any plan is. Errors are relative to the measurement; the bias is the median of
predicted over measured, less one. *In the range* is the share of the runs inside the estimate's range, which is to
hold eight in ten; *by publisher* is the mean of that over publishers, and *high/low* the median width of ranges: one
that holds everything because it is wide says nothing. *Each publisher once* is the mean of the publishers' own medians,
so that many runs of one do not outweigh the others. The constant rate is the simplest model there is: every device of a
kind reaches one share of its peak, always. Other programs stand beside the estimates where they could be run on the
same plans; those that ask for the share of the peak that will be reached predict no time.

The shipped constants and ranges were made from these very runs. *Unseen* figures are the ones to trust: constants, and
for publishers ranges too, come from all other runs. Left out are, in turn, each publisher; each family of software,
with all that shares its kernels; each generation of hardware. *Software withheld* tells the estimate nothing of the
framework.

This page is written by `capacity-tui accuracy --unseen --format markdown --plots docs -o docs/accuracy.md`.
"""
CONSTANTS = """## Fitted constants

What each constant of training rests on: the published runs whose estimate it changes, their publishers, and how much of
the uncertainty of its prior (what operator timings, or the method itself, give without any run) these runs remove.
Below {least:.0%} they say nothing about it: such a constant is its prior, and published runs cannot tell whether the
term it stands in is right. {unidentified} of {all} are of that kind, and {alone} rest on one publisher, so that leaving
it out leaves the prior. `{command}` makes this table.
"""
FIRST_SIGHT = """Of {runs} published figures that nobody here had read, ranges that were to hold eight in ten
held {inside}, the mean over publishers and what they measured
({publishers}).
They are kept as they were predicted then (commit {commits}) and never written again. *Unserved* are loads of which was
said that they cannot be kept up with. These are the errors that a run of software and hardware not seen before had;
what was changed since because of them shows in the tables below, not here.
"""
FIRST_SIGHT_HEADINGS = (
    *("figure, and what was run", "by publisher", "in the range", "high/low", "runs", "publishers"),
    *("median error", "each publisher once", "bias"),
)
GLANCE = """Publishers left out where constants and ranges are made from published runs. Of a publisher left out,
ranges are to hold 76 to 86 %, and their high over low should be at most 1.6 for times and speeds, 1.35 for memory and
2.2 for latencies of loads. Where errors of publishers left out are too large for both, a range is as wide as it must
be to hold.
"""
VERDICTS = """A plan fits where the whole range of its memory lies below what the device has, does not where the
estimate itself lies above, and is tight where only the upper end does. Of runs that ran, at most 3 % should be
refused; of runs that ran out of memory, at most 5 % should be said to fit.
"""
VERDICT_HEADINGS = ("published runs that", "runs", "said to fit", "tight", "said not to fit")
_VERDICTS = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)
COMMAND = "uv run python -m tools.calibrate ranges --write"
LEAST_HELD, MOST_HELD = 0.755, 0.865  # Shares of publishers left out that ranges are to hold, to the nearest percent
# Below this share of a prior's variance removed, runs do not identify a constant.
IDENTIFIED = 0.1
_SIZE, _MARGIN = 360, 46
_MOST_WORDS = 110
_MOST_GROUPS = 12


def score_cells(scores: Scores) -> tuple[str, ...]:
    """Return scores as the cells under ``SCORE_HEADINGS``."""
    inside, shares = ("n/a" if part is None else f"{part:.0%}" for part in (scores.coverage, scores.source_coverage))
    bias = math.expm1(scores.bias)
    return (
        str(scores.count),
        str(scores.sources),
        f"{scores.median:.1%}",
        f"{scores.source_median:.1%}",
        f"{scores.mean:.1%}",
        f"{scores.p90:.1%}",
        f"{bias:+.1%}",
        inside,
        shares,
        "n/a" if scores.width is None else f"{scores.width:.2f}",
    )


def score_rows(report: AccuracyReport, unseen: UnseenScores = MappingProxyType({})) -> list[tuple[str, ...]]:
    """Return the rows of the overall table: estimates, what was left out, and the baseline."""
    rows = {
        "estimates": report.overall,
        **{f"estimates, unseen {left_out}": scores for left_out, scores in unseen.items()},
        "constant rate": report.baseline,
        "constant rate, unseen publishers": report.baseline_unseen,
    }
    known = [(name, *score_cells(scores)) for name, scores in rows.items() if scores is not None]
    return [*known, *_rivals(report)]


def _rivals(report: AccuracyReport) -> Iterator[tuple[str, ...]]:
    """Yield the rows of other programs, each with our own on the same runs."""
    for program, predicted in rival_predictions(report.kind).items():
        pairs = [pair for pair in report.pairs if pair.measurement.id in predicted]
        if pairs:
            theirs = [Pair(pair.measurement, Prediction(predicted[pair.measurement.id])) for pair in pairs]
            yield program, *score_cells(score(theirs))
            yield "estimates, on the same runs", *score_cells(score(pairs))


def pair_cells(pair: Pair) -> tuple[str, ...]:
    """Return a run as the cells under ``PAIR_HEADINGS``."""
    scale, unit = (2**30, "GiB") if pair.measurement.unit == "bytes" else (1, pair.measurement.unit)
    sign = "+" if pair.prediction.value > pair.measurement.value else "-"
    return (
        pair.measurement.id,
        f"{pair.prediction.value / scale:.4g}",
        f"{pair.measurement.value / scale:.4g}",
        unit,
        f"{sign}{pair.error:.0%}",
        _notes(pair),
    )


def _notes(pair: Pair) -> str:
    """Return the notes on a run in a few words."""
    notes = pair.measurement.tags.get("notes") or pair.measurement.tags.get("assumed", "")
    return shorten(notes, _MOST_WORDS, placeholder=" ...")


def reports_as_data(
    reports: Iterable[AccuracyReport], unseen: Mapping[Kind, UnseenScores], verdicts: VerdictReport | None = None
) -> dict[str, object]:
    """Return the reports as nested dictionaries, by kind, and ``verdicts`` where there are any."""
    data: dict[str, object] = {report.kind: _data(report, unseen.get(report.kind, {})) for report in reports}
    return data if verdicts is None else {**data, "verdicts": _verdict_data(verdicts)}


def _verdict_data(report: VerdictReport) -> dict[str, object]:
    counts = {
        name: {"runs": len(runs), **{verdict.value: share(runs, verdict) for verdict in _VERDICTS}}
        for name, runs in (("ran", report.ran), ("out_of_memory", report.failed))
    }
    return {
        **counts,
        "refused": [run.measurement.id for run in report.refused],
        "accepted": [run.measurement.id for run in report.accepted],
    }


def _data(report: AccuracyReport, unseen: UnseenScores) -> dict[str, object]:
    def plain(scores: Scores | None) -> dict[str, object] | None:
        return None if scores is None else asdict(scores)

    return {
        "overall": plain(report.overall),
        "unseen": {left_out: plain(scores) for left_out, scores in unseen.items()},
        "constant_rate": plain(report.baseline),
        "constant_rate_unseen": plain(report.baseline_unseen),
        "groups": {
            tag: {name: plain(scores) for name, scores in groups.items()} for tag, groups in report.groups.items()
        },
        "worst": [
            {
                "id": pair.measurement.id,
                "predicted": pair.prediction.value,
                "measured": pair.measurement.value,
                "unit": pair.measurement.unit,
                "error": pair.error,
                "source": pair.measurement.source,
            }
            for pair in report.worst
        ],
        "refused": [{"id": refusal.measurement.id, "reason": refusal.reason} for refusal in report.refused],
    }


def reports_as_markdown(
    reports: Sequence[AccuracyReport],
    unseen: Mapping[Kind, UnseenScores],
    plots: Mapping[Kind, str],
    constants: Sequence[FittedConstant] = (),
    verdicts: VerdictReport | None = None,
) -> str:
    """Return the reports as one page.

    Args:
        unseen: scores on publishers, software and hardware left out of the fit, by kind.
        plots: addresses of plots, relative to the page, by kind.
        constants: what was fitted, shown at the end.
        verdicts: those on runs whose end is known.
    """
    parts = [
        INTRODUCTION,
        *_first_sight(),
        *_summary(reports, unseen),
        *(() if verdicts is None else _verdicts(verdicts)),
    ]
    for report in reports:
        parts.extend(_section(report, unseen.get(report.kind, {}), plots.get(report.kind)))
    if constants:
        parts.extend(_constants(constants))
    return "\n".join(parts)


def _first_sight() -> Iterable[str]:
    """Yield what was predicted of runs before anybody here had read them."""
    looks = first_looks()
    commits = ", ".join(sorted({look.commit for look in looks}))
    publishers = ", ".join(sorted({look.source for look in looks}))
    sights = first_sights(looks)
    inside = sum(sight.inside_by_publisher for sight in sights) / len(sights)
    text = FIRST_SIGHT.format(runs=len(looks), inside=f"{inside:.0%}", publishers=publishers, commits=commits)
    yield f"## At first sight\n\n{text}"
    yield _table(
        FIRST_SIGHT_HEADINGS,
        [
            (
                f"{sight.quantity.replace('_', ' ')}, {sight.kind}",
                *(f"{share:.0%}" for share in (sight.inside_by_publisher, sight.inside)),
                *(f"{sight.width:.2f}", str(sight.runs), str(sight.publishers)),
                *(_percent(value) for value in (sight.median_error, sight.publisher_error)),
                _percent(sight.bias, "+"),
            )
            for sight in sights
        ],
    )


def _percent(share: float, sign: str = "") -> str:
    """Return a share in percent; what was said not to be served has no error that is a number."""
    return f"{share:{sign}.0%}" if math.isfinite(share) else "unserved"


def _summary(reports: Sequence[AccuracyReport], unseen: Mapping[Kind, UnseenScores]) -> Iterable[str]:
    """Yield one line a kind: medians of runs and of publishers, and how ranges hold, of unseen publishers if known."""
    rows, outside, wider = [], [], []
    for report in reports:
        scores = unseen.get(report.kind, {}).get("publishers", report.overall)
        if scores is None:
            continue
        title, widest = TITLES[report.kind], DESCRIBED[report.kind].widest
        rows.append((title, *score_cells(scores)))
        if scores.source_coverage is not None and not LEAST_HELD <= scores.source_coverage < MOST_HELD:
            outside.append(f"{title.lower()} {scores.source_coverage:.0%}")
        if scores.width is not None and scores.width > widest:
            wider.append(f"{title.lower()} {scores.width:.2f}")
    if len(rows) > 1:
        yield f"## At a glance\n\n{GLANCE}"
        for what, kinds in (("Ranges that hold more or less", outside), ("Ranges that are wider", wider)):
            if kinds:
                yield f"- {what}: {'; '.join(kinds)}."
        yield ""
        yield _table(("", *SCORE_HEADINGS), rows)


def _verdicts(report: VerdictReport) -> Iterable[str]:
    yield f"## Whether a run fits\n\n{VERDICTS}"
    yield _table(VERDICT_HEADINGS, verdict_rows(report))
    if report.refused:
        counted = Counter(run.measurement.source_key for run in report.refused).most_common(_MOST_GROUPS)
        yield f"Refused although they ran: {', '.join(f'{count} of {name}' for name, count in counted)}.\n"
    for run in report.accepted:
        yield f"Accepted although it ran out of memory: `{run.measurement.id}`.\n"


def verdict_rows(report: VerdictReport) -> list[tuple[str, ...]]:
    """Return the verdicts on runs whose end is known, as the cells under ``VERDICT_HEADINGS``."""
    return [
        (what, str(len(runs)), *(f"{share(runs, verdict):.1%}" for verdict in _VERDICTS))
        for what, runs in (("ran", report.ran), ("ran out of memory", report.failed))
        if runs
    ]


def _constants(constants: Sequence[FittedConstant]) -> Iterable[str]:
    unidentified = sum(constant.learned < IDENTIFIED for constant in constants)
    alone = sum(constant.publishers == 1 for constant in constants)
    yield CONSTANTS.format(
        least=IDENTIFIED, unidentified=unidentified, all=len(constants), alone=alone, command=COMMAND
    )
    yield _table(
        ("constant", "fitted to", "field", "prior", "ships", "runs", "publishers", "learned from them"),
        [
            (
                *(constant.name, constant.fits, f"`{constant.field}`", f"{constant.prior:g}", f"{constant.value:g}"),
                *(str(constant.runs), str(constant.publishers)),
                f"{constant.learned:.0%}" if constant.learned >= IDENTIFIED else "nothing",
            )
            for constant in constants
        ],
    )


def _section(report: AccuracyReport, unseen: UnseenScores, plot: str | None) -> Iterable[str]:
    title = TITLES[report.kind]
    yield f"## {title}\n"
    if report.overall is None:
        yield f"None of the {len(report.refused)} published runs can be estimated yet.\n"
        return
    yield _table(("", *SCORE_HEADINGS), score_rows(report, unseen))
    if report.refused:
        yield f"Not estimated: {len(report.refused)}, such as `{report.refused[0].reason}`.\n"
    if report.left_out:
        first = report.left_out[0]
        yield f"Left out: {len(report.left_out)} published rows, such as `{first.id}`: {first.reason}.\n"
    if plot is not None:
        yield f"![Predicted against measured: {title.lower()}]({plot})\n"
    for tag, groups in report.groups.items():
        if len(groups) > 1:
            shown = list(groups.items())[:_MOST_GROUPS]
            yield f"### By {tag}\n"
            yield _table((tag, *SCORE_HEADINGS), [(name or "n/a", *score_cells(scores)) for name, scores in shown])
    yield "### Furthest off\n"
    yield _table(PAIR_HEADINGS, [pair_cells(pair) for pair in report.worst[:10]])


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def scatter_svg(report: AccuracyReport) -> str:
    """Return predicted against measured as an SVG, both axes logarithmic, with the band of a fifth off."""
    truths = [pair.measurement.value for pair in report.pairs]
    guesses = [max(pair.prediction.value, 1e-12) for pair in report.pairs]
    low = math.floor(math.log10(min(*truths, *guesses)))
    high = max(math.ceil(math.log10(max(*truths, *guesses))), low + 1)

    def position(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * _SIZE

    whole = _SIZE + 2 * _MARGIN
    band = math.log10(1.2) / (high - low) * _SIZE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{whole}" height="{whole}" fill="#ffffff"/>',
        f'<g transform="translate({_MARGIN},{_SIZE + _MARGIN}) scale(1,-1)">',
        f'<clipPath id="frame"><rect width="{_SIZE}" height="{_SIZE}"/></clipPath>',
        f'<polygon clip-path="url(#frame)" fill="#e8eef4" points="0,{-band:.1f} {_SIZE},{_SIZE - band:.1f} '
        f'{_SIZE},{_SIZE + band:.1f} 0,{band:.1f}"/>',
        f'<path d="M0,0 L{_SIZE},{_SIZE}" stroke="#8899aa"/>',
        f'<rect width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#8899aa"/>',
    ]
    parts += [
        f'<circle cx="{position(truth):.1f}" cy="{position(guess):.1f}" r="2.2" fill="#1f5f99" fill-opacity="0.45"/>'
        for truth, guess in zip(truths, guesses, strict=True)
    ]
    parts.append("</g>")
    for power in range(low, high + 1):
        at = position(10.0**power)
        parts.append(f'<text x="{_MARGIN + at:.0f}" y="{whole - 28}" text-anchor="middle">1e{power}</text>')
        parts.append(f'<text x="{_MARGIN - 6}" y="{_SIZE + _MARGIN - at + 4:.0f}" text-anchor="end">1e{power}</text>')
    title = escape(TITLES[report.kind])
    unit = escape(report.pairs[0].measurement.unit)
    parts.append(f'<text x="{_MARGIN}" y="26" font-size="14">{title}: predicted over measured, {unit}</text>')
    parts.append(f'<text x="{whole / 2:.0f}" y="{whole - 10}" text-anchor="middle">measured (band: 20 % off)</text>')
    return "\n".join([*parts, "</svg>", ""])
