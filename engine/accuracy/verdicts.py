"""How often the verdict is right: published runs that ran and are refused, and ones that did not and are accepted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capacity_tui.engine.accuracy.published import DESCRIBED, Measurement
from capacity_tui.engine.accuracy.report import AccuracyReport, Predict, scored_measurements
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A published run and the verdict on its plan."""

    measurement: Measurement
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """Verdicts on runs whose end is known.

    Attributes:
        failed: of runs that ran out of memory.
    """

    ran: tuple[Judgement, ...]
    failed: tuple[Judgement, ...]

    @property
    def refused(self) -> tuple[Judgement, ...]:
        """Runs that ran and were predicted not to fit."""
        return _with(self.ran, Verdict.DOES_NOT_FIT)

    @property
    def accepted(self) -> tuple[Judgement, ...]:
        """Runs that ran out of memory and were predicted to fit, not even tightly."""
        return _with(self.failed, Verdict.FITS)


def verdicts_of(reports: Iterable[AccuracyReport], predict: Predict) -> VerdictReport:
    """Return the verdicts on all runs of some reports, each run once, and on those that ran out of memory."""
    ran: dict[tuple[str, str], Judgement] = {}
    for report in reports:
        for pair in report.pairs:
            if pair.prediction.verdict is not None:
                key = DESCRIBED[report.kind].file, pair.measurement.id
                ran.setdefault(key, Judgement(pair.measurement, pair.prediction.verdict))
    return VerdictReport(tuple(ran.values()), tuple(_failed(predict)))


def _failed(predict: Predict) -> Iterable[Judgement]:
    for row in scored_measurements("finetune_fit"):
        try:
            verdict = predict(row).verdict
        except CapacityError:
            continue
        if verdict is not None:
            yield Judgement(row, verdict)


def _with(judged: Sequence[Judgement], verdict: Verdict) -> tuple[Judgement, ...]:
    """Return the runs with a verdict; those that are refused for whatever reason count as not fitting."""
    is_refusal = verdict is Verdict.DOES_NOT_FIT
    return tuple(
        judgement
        for judgement in judged
        if judgement.verdict is verdict or (is_refusal and judgement.verdict.holds is False)
    )


def share(judged: Sequence[Judgement], verdict: Verdict) -> float:
    """Return the share of runs with a verdict; 0 of none."""
    return len(_with(judged, verdict)) / len(judged) if judged else 0.0
