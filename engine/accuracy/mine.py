"""Runs of the user's own as measurements, to be judged like published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.accuracy.published import Kind, Measurement, parallelism_class
from capacity_tui.engine.accuracy.scoring import GROUPS

SOURCE = "own runs"


def own_measurements(
    plan: Mapping[str, object], step_seconds: float | None, peak_bytes: float | None, date: str, number: int
) -> Iterator[Measurement]:
    """Yield what was measured of one run: the time of its step, the memory the driver showed, or both.

    Args:
        plan: the run as data of a plan file.
        step_seconds: time of an optimizer step; None where it was not measured.
        peak_bytes: device memory at its peak; None likewise.
        date: ISO day.
        number: of the run, among the user's.
    """
    if step_seconds is not None:
        yield _measurement(plan, "train_time", "step_seconds", step_seconds, "s", f"{date}, run {number}")
    if peak_bytes is not None:
        yield _measurement(plan, "train_memory", "device_bytes", peak_bytes, "bytes", f"{date}, run {number}")


def _measurement(
    plan: Mapping[str, object], kind: Kind, quantity: str, value: float, unit: str, name: str
) -> Measurement:
    return Measurement(
        id=name,
        kind=kind,
        quantity=quantity,
        value=value,
        unit=unit,
        source_key=SOURCE,
        source=SOURCE,
        url="",
        quality="A",
        plan=dict(plan),
        parameters=0,
        model_flops=None,
        tags={**dict.fromkeys(GROUPS, ""), "source": SOURCE, "parallelism": parallelism_class(plan)},
    )
