"""What more devices bring, as rows and sentences: where the knee is, and where communication dominates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from capacity_tui.engine.estimate import Scaling, limit_label
from capacity_tui.engine.present.parts import TablePart, table_part
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import Curve, curves
from capacity_tui.engine.units import devices_in_words, format_number, format_percent, format_quantity, format_seconds
from capacity_tui.engine.verdict import Verdict


def curve_name(curve: Curve) -> str:
    """Return a curve's batch and kind of parallelism, in words."""
    batch = format_number(curve.batch) if curve.growth == "strong" else f"growing from {format_number(curve.batch)}"
    return f"batch {batch}, {curve.parallelism} parallel"


def scaling_table(points: Sequence[Scaling]) -> TablePart:
    """Return the points of a scalability analysis as a table; time and cost of the job where they are known."""
    columns: list[tuple[str, Iterable[str]]] = [
        ("devices", (f"{format_number(x.devices)}{' (model)' if x.parallelism == 'model' else ''}" for x in points)),
        ("batch", (format_number(x.batch) for x in points)),
        ("step", (format_seconds(x.step_seconds) for x in points)),
    ]
    if any(x.job_seconds is not None for x in points):
        columns.append(("time", (format_seconds(x.job_seconds) for x in points)))
    if any(x.usd is not None for x in points):
        columns.append(("cost", (format_quantity(x.usd, "USD") for x in points)))
    columns += [
        ("speed-up", (format_number(x.speedup, 2) for x in points)),
        ("efficiency", (format_percent(x.efficiency) for x in points)),
        ("exposed comm.", (format_percent(x.communication_share) for x in points)),
        (
            "limited by",
            (limit_label(x.limited_by) if x.fits is not False else Verdict.DOES_NOT_FIT.words for x in points),
        ),
    ]
    heads, cells = zip(*columns, strict=True)
    return table_part(heads, zip(*cells, strict=True), range(len(heads) - 1))


@dataclass(frozen=True, slots=True)
class GrowthRemarks:
    """What to know of one curve."""

    knee: int | None  # devices at its knee; None for none, or while counts are missing
    lines: tuple[str, ...]  # the same in words, with where communication dominates and what an hour less costs


def growth_remarks(points: Sequence[Scaling], *, is_complete: bool = True) -> GrowthRemarks:
    """Return where the knee of a curve is, where communication dominates, and what going faster costs.

    Args:
        points: of one curve, by rising number of devices.
        is_complete: whether all counts are there.
    """
    if not is_complete:
        return GrowthRemarks(None, ())
    if not points:
        return GrowthRemarks(None, ("This runs on one device, and is not split.",))
    curve = Curve(points[0].batch, points[0].parallelism, tuple(points), points[0].growth)
    knee = curve.knee if curve.growth == "strong" else None
    lines = (f"{knee_text(curve)} {_network_text(curve)}".lstrip(), _price_text(curve), _source_text(curve))
    return GrowthRemarks(knee, tuple(line for line in lines if line))


def _network_text(curve: Curve) -> str:
    if curve.network_from is None:
        return "Communication never dominates."
    return f"Communication dominates from {format_number(curve.network_from)} devices on."


def _price_text(curve: Curve) -> str:
    """Return what the fastest costs beside the cheapest."""
    priced = [
        point for point in curve.points if point.fits is not False and point.job_seconds and point.usd is not None
    ]
    if not priced:
        return ""
    cheapest = min(priced, key=lambda point: (point.usd or 0.0, point.job_seconds or 0.0))
    fastest = min(priced, key=lambda point: (point.job_seconds or 0.0, point.usd or 0.0))
    if fastest is cheapest:
        return f"The fastest is also the cheapest:  {devices_in_words(fastest.devices)}."
    return f"Cheapest: {_run_text(cheapest)}. Fastest: {_run_text(fastest)}."


def _source_text(curve: Curve) -> str:
    """Return where the price of a device is somebody else's than for fewer of them; empty where it is one list's."""
    priced = [point for point in curve.points if point.price_source]
    changes = [
        f"up to {format_number(before.devices)} {before.price_source}, from {format_number(after.devices)} on "
        f"{after.price_source}"
        for before, after in pairwise(priced)
        if after.price_source != before.price_source
    ]
    return f"Prices come from several lists: {'; '.join(changes)}." if changes else ""


def _run_text(point: Scaling) -> str:
    cost = format_quantity(point.usd or 0.0, "USD")
    return f"{devices_in_words(point.devices)}, {format_seconds(point.job_seconds)}, {cost}"


def scaling_text(points: Iterable[Scaling]) -> tuple[str, ...]:
    """Return where communication dominates and where the knee is, a line for each curve."""
    return tuple(f"{_taken_over(curve)} {knee_text(curve)}".rstrip() for curve in curves(points))


def knee_text(curve: Curve) -> str:
    """Return where more devices lose more than they bring; empty where the batch grows with them."""
    if curve.growth == "weak" or len(curve.points) < 2:
        return ""
    if curve.knee is None:
        return f"No knee up to {devices_in_words(curve.points[-1].devices)}."
    return f"The knee is at {format_number(curve.knee)}: there speed-up times efficiency is largest."


def _taken_over(curve: Curve) -> str:
    name = curve_name(curve).capitalize()
    devices = curve.network_from
    if devices is None:
        last = curve.points[-1]
        share = format_percent(last.communication_share)
        return f"{name}: communication takes {share} of a step on {devices_in_words(last.devices)}."
    return f"{name}: communication dominates from {format_number(devices)} devices on."
