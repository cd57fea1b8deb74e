"""History entries of plans: predicted and measured figures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from capacity_tui.engine.cluster import device_key
from capacity_tui.engine.estimate import METRICS, Answer, read_figure
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.observe.history.records import Ends, Kind, RunRecord, now, this_host
from capacity_tui.engine.plan import DETECTED
from capacity_tui.engine.uncertainty import Interval


def history_entry(
    answer: Answer,
    kind: Kind = "estimate",
    actual: Mapping[str, float] | None = None,
    details: Mapping[str, object] | None = None,
    started: str = "",
) -> RunRecord:
    """Return the entry of a plan: with what was measured, that of a run.

    Args:
        answer: the plan as it was estimated, with the constants of then.
        actual: figures that were measured, by result key, in the units of the results.
        details: further plain data.
        started: time, UTC, ISO 8601; now by default.
    """
    return RunRecord(
        kind=kind,
        plan=answer.plan.plain_data(),
        machine={**this_host(), "hardware": _hardware(answer)},
        predicted=_predicted(answer),
        actual=actual or {},
        device=device_key(answer.resolved.cluster.device),
        details=details or {},
        started=started or now(),
    )


def _hardware(answer: Answer) -> str:
    """Return the devices in words; what was detected by its own name."""
    return answer.estimate.basis.devices.replace(DETECTED, answer.resolved.cluster.device.name)


def _predicted(answer: Answer) -> dict[str, Ends]:
    figures = {}
    for key, metric in METRICS.items():
        value = read_figure(answer.estimate, key)
        if value is None:
            continue
        ends = _ends(value, whole=metric.unit == "B")
        if all(map(math.isfinite, ends.values())):
            figures[key] = ends
    return figures


def _ends(value: Number | Interval, *, whole: bool) -> Ends:
    named = (
        {"value": value.value, "low": value.low, "high": value.high}
        if isinstance(value, Interval)
        else {"value": value}
    )
    ends = {name: mean(number) for name, number in named.items()}
    return {name: float(round(number)) if whole and math.isfinite(number) else number for name, number in ends.items()}
