"""Where a plan lies on its cluster, and what more devices bring, as lines, parts of a report, and plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from capacity_tui.engine.estimate import Scaling, limit_label
from capacity_tui.engine.present.parts import Part, TablePart, TextPart, table_part
from capacity_tui.engine.present.results import picked
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import Crossing, Curve, PlacedLevel, PlacedPlan, Placement, Sharing, curves
from capacity_tui.engine.units import (
    count_in_words,
    format_count,
    format_number,
    format_percent,
    format_quantity,
    format_seconds,
)
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
    where = f"{knee_text(curve)} {_network_text(curve)}".lstrip()
    lines = (where, _end_text(curve), _price_text(curve), _source_text(curve))
    return GrowthRemarks(knee, tuple(line for line in lines if line))


def _network_text(curve: Curve) -> str:
    if curve.network_from is None:
        return "Communication never dominates."
    return f"Communication dominates from {format_number(curve.network_from)} devices on."


def _end_text(curve: Curve) -> str:
    """Return why there are no more devices, where a batch that stays has nothing for them to do; empty otherwise."""
    last = curve.points[-1]
    share = f"No more than {count_in_words(last.devices)} share a batch of {format_number(last.batch)}."
    return share if curve.ends_early else ""


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
        return f"The fastest is also the cheapest:  {count_in_words(fastest.devices)}."
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
    return f"{count_in_words(point.devices)}, {format_seconds(point.job_seconds)}, {cost}"


def scaling_text(points: Iterable[Scaling]) -> tuple[str, ...]:
    """Return where communication dominates and where the knee is, a line for each curve."""
    return tuple(f"{_taken_over(curve)} {knee_text(curve)}".rstrip() for curve in curves(points))


def knee_text(curve: Curve) -> str:
    """Return where more devices lose more than they bring; empty where the batch grows with them."""
    if curve.growth == "weak" or len(curve.points) < 2:
        return ""
    if curve.knee is None:
        return f"No knee up to {count_in_words(curve.points[-1].devices)}."
    return f"The knee is at {format_number(curve.knee)}: there speed-up times efficiency is largest."


def _taken_over(curve: Curve) -> str:
    name = curve_name(curve).capitalize()
    devices = curve.network_from
    if devices is None:
        last = curve.points[-1]
        share = format_percent(last.communication_share)
        return f"{name}: communication takes {share} of a step on {count_in_words(last.devices)}."
    return f"{name}: communication dominates from {format_number(devices)} devices on."


DIMENSIONS = {
    "tp": "tensor parallel",
    "cp": "context parallel",
    "dp": "data parallel",
    "pp": "pipeline parallel",
    "ep": "expert parallel",
}
_HEADS = ("level", "of", "dimensions", "link", "busy")
_NOTHING = "–"
_LEAST_WHOLE = 0.015  # Shares below this are written with a decimal


@dataclass(frozen=True, slots=True)
class LevelText:
    """One level of a cluster with what a plan puts on it, in words."""

    name: str  # its name, moved in by what lies around it
    holds: str  # what one of it holds, and how many the plan fills
    divides: str  # the dimensions it divides
    link: str  # what joins what it holds
    busy: str  # share of the time in which its link sets the pace; a dash where it never does
    is_hottest: bool  # whether no other link is as busy


def level_texts(placement: Placement) -> tuple[LevelText, ...]:
    """Return the levels from the outermost in, drawn as what holds what."""
    count = len(placement.levels)
    return tuple(_level(placement, index, count - 1 - index) for index in reversed(range(count)))


def placement_remarks(placed: PlacedPlan) -> Iterator[str]:
    """Yield the hottest link, what it means to cross the fast links, and how unlike devices share the work."""
    if placed.placement is not None:
        yield _hottest(placed.placement)
    if placed.crossing is not None:
        yield _crossing(placed.crossing)
    if placed.answer.resolved.cluster.mix_reason:
        yield placed.answer.resolved.cluster.mix_reason
    if placed.sharing is not None:
        yield from _sharing(placed.sharing)


def placement_parts(placed: PlacedPlan) -> Iterator[Part]:
    devices = placed.answer.resolved.cluster.words
    yield TextPart(f"Placement on {devices}", "strong")
    if placed.placement is None:
        yield TextPart("the plan runs on one device, or is not split")
    else:
        rows = [(text.name, text.holds, text.divides, text.link, text.busy) for text in level_texts(placed.placement)]
        yield table_part(_HEADS, rows, right=(4,))
    yield from (TextPart(remark) for remark in placement_remarks(placed))


def placement_as_dict(placed: PlacedPlan) -> dict[str, object]:
    placement = placed.placement
    hottest = None if placement is None else placement.hottest
    return {
        "hardware": placed.answer.resolved.cluster.words,
        "dimensions": [
            {
                "dimension": entry.name,
                "size": entry.size,
                "stride": entry.stride,
                "ways": list(entry.ways),
                "waited_share": entry.waited,
            }
            for entry in (() if placement is None else placement.dimensions)
        ],
        "levels": [_level_as_dict(entry) for entry in (() if placement is None else placement.levels)],
        "hottest": None if hottest is None else hottest.level.name,
        "crossing": None if placed.crossing is None else _crossing_as_dict(placed.crossing),
        "sharing": None if placed.sharing is None else _sharing_as_dict(placed.sharing),
        "remarks": list(placement_remarks(placed)),
    }


def _level(placement: Placement, index: int, depth: int) -> LevelText:
    result = placement.levels[index]
    inside = "device" if index == 0 else placement.levels[index - 1].level.name
    units = format_number(result.units)
    held = f"{format_number(result.holds)} {inside}{'s' if result.holds != 1 else ''}"
    divides = " · ".join(f"{name} {round(ways, 1):g}" for name, ways in placement.at(index))
    return LevelText(
        name="  " * depth + result.level.name,
        holds=held if result.units == 1 else f"{held} × {units}",
        divides=divides or _NOTHING,
        link=result.level.speed,
        busy=_share(result.busy) if result.busy else _NOTHING,
        is_hottest=result is placement.hottest,
    )


def _hottest(placement: Placement) -> str:
    hottest = placement.hottest
    if hottest is None:
        return "the devices do not communicate"
    carried = ", ".join(DIMENSIONS[name] for name in hottest.carries)
    return f"hottest link: {hottest.level.name}, {hottest.level.speed}, busy {_share(hottest.busy)} with {carried}"


def _crossing(crossing: Crossing) -> str:
    before, after = map(_share, crossing.waited)
    within = f"the {crossing.direct} devices of a {crossing.unit}"
    text = (
        f"tensor parallel {crossing.size} crosses {within}; {crossing.other} would not"
        if crossing.crosses
        else f"tensor parallel {crossing.size} stays within {within}; {crossing.other} would cross them"
    )
    effect = crossing.effect or "no significant change"
    shortage = f", but {crossing.trial.estimate.shortage}" if crossing.trial.estimate.shortage else ""
    return f"{text}: {effect}, waiting for tensor parallel {after} of the time instead of {before}{shortage}"


def _sharing(sharing: Sharing) -> Iterator[str]:
    unit = "tok/s" if sharing.unit == "token" else "samples/s"
    even, balanced = (f"{format_count(rate)} {unit}" for rate in (sharing.even_rate, sharing.balanced_rate))
    shares = " + ".join(
        f"{_share(entry.share)} on {entry.group.devices} x {entry.group.name}" for entry in sharing.groups
    )
    gain = format_number(sharing.balanced_rate / sharing.even_rate, 2)
    yield f"shared evenly over all, at the pace of the slowest: {even}"
    yield f"shared so that all end together, {shares} of the batch: {balanced} at most, {gain} × as much"
    for group in sharing.groups:
        if group.fits is False:
            yield f"{group.group.devices} x {group.group.name} do not hold it on their own"


def _share(value: float) -> str:
    """Return a share; a small one does not read as nothing."""
    return format_percent(value, 0 if value >= _LEAST_WHOLE or not value else 1)


def _level_as_dict(placed_level: PlacedLevel) -> dict[str, object]:
    level = placed_level.level
    return {
        "level": level.name,
        "devices": float(level.devices),
        **picked(placed_level, "units", "holds"),
        "link": level.link,
        "bandwidth": float(level.bandwidth),
        "busy_share": placed_level.busy,
        "carries": list(placed_level.carries),
    }


def _crossing_as_dict(crossing: Crossing) -> dict[str, object]:
    before, after = crossing.waited
    return {
        "size": crossing.size,
        "other": crossing.other,
        "direct_devices": crossing.direct,
        "crosses": crossing.crosses,
        "step_seconds": float(crossing.trial.estimate.computation.step_seconds.value),
        "waited_share": before,
        "other_waited_share": after,
        "fits": crossing.trial.estimate.fits,
    }


def _sharing_as_dict(sharing: Sharing) -> dict[str, object]:
    return {
        **picked(sharing, "unit", "even_rate", "balanced_rate"),
        "groups": [
            {
                "hardware": group.group.name,
                "devices": group.group.devices,
                **picked(group, "rate", "share", "sequences", "fits"),
            }
            for group in sharing.groups
        ],
    }
