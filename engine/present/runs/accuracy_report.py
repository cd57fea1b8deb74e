"""The accuracy report as data, Markdown and plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from textwrap import shorten
from types import MappingProxyType
from typing import TypeAlias

from capacity_tui.engine.present.parts import template
from capacity_tui.engine.runs.accuracy import (
    DESCRIBED,
    AccuracyReport,
    FittedConstant,
    Kind,
    LeftOut,
    Pair,
    Prediction,
    Scores,
    VerdictReport,
    first_looks,
    first_sights,
    rival_predictions,
    score,
    share,
)
from capacity_tui.engine.verdict import Verdict

UnseenScores: TypeAlias = Mapping[LeftOut, Scores]
TITLES: Mapping[Kind, str] = {kind: figure.title for kind, figure in DESCRIBED.items()}
PAIR_HEADINGS = ("run", "predicted", "measured", "unit", "error", "what is known of it")
FIRST_SIGHT_HEADINGS = (
    *("figure, and what was run", "by publisher", "in the range", "high/low", "runs", "publishers"),
    *("median error", "each publisher once", "bias"),
)
CONSTANT_HEADINGS = ("constant", "fitted to", "field", "prior", "ships", "runs", "publishers", "learned from them")
VERDICT_HEADINGS = ("published runs that", "runs", "said to fit", "tight", "said not to fit")
_VERDICTS = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)
COMMAND = "uv run python -m tools.calibrate ranges --write"
LEAST_HELD, MOST_HELD = 0.755, 0.865  # Shares of publishers left out that ranges are to hold, to the nearest percent
# Below this share of a prior's variance removed, runs do not identify a constant.
IDENTIFIED = 0.1
_SIZE, _MARGIN = 360, 46
_MOST_WORDS = 110
_MOST_GROUPS = 12


def _share(part: float | None) -> str:
    return "n/a" if part is None else f"{part:.0%}"


SCORE_CELLS: Mapping[str, Callable[[Scores], str]] = {
    "runs": lambda scores: str(scores.count),
    "publishers": lambda scores: str(scores.sources),
    "median error": lambda scores: f"{scores.median:.1%}",
    "each publisher once": lambda scores: f"{scores.source_median:.1%}",
    "mean error": lambda scores: f"{scores.mean:.1%}",
    "90th percentile": lambda scores: f"{scores.p90:.1%}",
    "bias": lambda scores: f"{math.expm1(scores.bias):+.1%}",
    "in the range": lambda scores: _share(scores.coverage),
    "by publisher": lambda scores: _share(scores.source_coverage),
    "high/low": lambda scores: "n/a" if scores.width is None else f"{scores.width:.2f}",
}
"""Columns of tables of scores, and what stands in them."""


def score_cells(scores: Scores) -> tuple[str, ...]:
    """Return scores as the cells under the names of ``SCORE_CELLS``."""
    return tuple(cell(scores) for cell in SCORE_CELLS.values())


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
    """Return the reports as one page."""
    values = {
        "first": _first_sight(),
        "glance": _summary(reports, unseen),
        "verdicts": None if verdicts is None else _verdicts(verdicts),
        "sections": [_section(report, unseen.get(report.kind, {}), plots.get(report.kind)) for report in reports],
        "constants": _constants(constants) if constants else None,
    }
    return template("accuracy.md.jinja").render(values).rstrip("\n") + "\n"


def _first_sight() -> dict[str, object]:
    """Return what was predicted of runs before anybody here had read them."""
    looks = first_looks()
    sights = first_sights(looks)
    rows = (
        (
            f"{sight.quantity.replace('_', ' ')}, {sight.kind}",
            *(f"{share:.0%}" for share in (sight.inside_by_publisher, sight.inside)),
            *(f"{sight.width:.2f}", str(sight.runs), str(sight.publishers)),
            *(_percent(value) for value in (sight.median_error, sight.publisher_error)),
            _percent(sight.bias, "+"),
        )
        for sight in sights
    )
    return {
        "runs": len(looks),
        "inside": f"{sum(sight.inside_by_publisher for sight in sights) / len(sights):.0%}",
        "publishers": ", ".join(sorted({look.source for look in looks})),
        "commits": ", ".join(sorted({look.commit for look in looks})),
        "table": _table(FIRST_SIGHT_HEADINGS, rows),
    }


def _percent(share: float, sign: str = "") -> str:
    """Return a share in percent; what was said not to be served has no error that is a number."""
    return f"{share:{sign}.0%}" if math.isfinite(share) else "unserved"


def _summary(reports: Sequence[AccuracyReport], unseen: Mapping[Kind, UnseenScores]) -> dict[str, object] | None:
    """Return one line a kind: medians of runs and of publishers, and how ranges hold, of unseen publishers if known."""
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
    if len(rows) < 2:
        return None
    remarks = {"Ranges that hold more or less": outside, "Ranges that are wider": wider}
    return {
        "remarks": [f"{what}: {'; '.join(kinds)}" for what, kinds in remarks.items() if kinds],
        "table": _table(("", *SCORE_CELLS), rows),
    }


def _verdicts(report: VerdictReport) -> dict[str, object]:
    counted = Counter(run.measurement.source_key for run in report.refused).most_common(_MOST_GROUPS)
    return {
        "table": _table(VERDICT_HEADINGS, verdict_rows(report)),
        "refused": ", ".join(f"{count} of {name}" for name, count in counted),
        "accepted": [run.measurement.id for run in report.accepted],
    }


def verdict_rows(report: VerdictReport) -> list[tuple[str, ...]]:
    """Return the verdicts on runs whose end is known, as the cells under ``VERDICT_HEADINGS``."""
    return [
        (what, str(len(runs)), *(f"{share(runs, verdict):.1%}" for verdict in _VERDICTS))
        for what, runs in (("ran", report.ran), ("ran out of memory", report.failed))
        if runs
    ]


def _constants(constants: Sequence[FittedConstant]) -> dict[str, object]:
    rows = (
        (
            *(constant.name, constant.fits, f"`{constant.field}`", f"{constant.prior:g}", f"{constant.value:g}"),
            *(str(constant.runs), str(constant.publishers)),
            f"{constant.learned:.0%}" if constant.learned >= IDENTIFIED else "nothing",
        )
        for constant in constants
    )
    return {
        "least": f"{IDENTIFIED:.0%}",
        "unidentified": sum(constant.learned < IDENTIFIED for constant in constants),
        "all": len(constants),
        "alone": sum(constant.publishers == 1 for constant in constants),
        "command": COMMAND,
        "table": _table(CONSTANT_HEADINGS, rows),
    }


def _section(report: AccuracyReport, unseen: UnseenScores, plot: str | None) -> dict[str, object]:
    groups = {tag: list(groups.items())[:_MOST_GROUPS] for tag, groups in report.groups.items() if len(groups) > 1}
    return {
        "title": TITLES[report.kind],
        "scores": "" if report.overall is None else _table(("", *SCORE_CELLS), score_rows(report, unseen)),
        "refused": report.refused,
        "left_out": report.left_out,
        "plot": plot,
        "groups": [
            (tag, _table((tag, *SCORE_CELLS), [(name or "n/a", *score_cells(scores)) for name, scores in shown]))
            for tag, shown in groups.items()
        ],
        "worst": _table(PAIR_HEADINGS, [pair_cells(pair) for pair in report.worst[:10]]),
    }


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
