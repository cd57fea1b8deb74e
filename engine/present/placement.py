"""Where a plan lies on its cluster, as lines, parts of a report, and plain data."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import Crossing, PlacedLevel, PlacedPlan, Placement, Sharing
from capacity_tui.engine.units import format_count, format_number, format_percent

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
    """Yield the placement of a plan as parts of a report."""
    devices = placed.answer.resolved.cluster.words
    yield TextPart(f"Placement on {devices}", "strong")
    if placed.placement is None:
        yield TextPart("the plan runs on one device, or is not split")
    else:
        rows = [(text.name, text.holds, text.divides, text.link, text.busy) for text in level_texts(placed.placement)]
        yield table_part(_HEADS, rows, right=(4,))
    yield from (TextPart(remark) for remark in placement_remarks(placed))


def placement_as_dict(placed: PlacedPlan) -> dict[str, object]:
    """Return the placement of a plan as plain data."""
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
    even, balanced = (f"{format_count(rate)} {_unit(sharing)}" for rate in (sharing.even_rate, sharing.balanced_rate))
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


def _unit(sharing: Sharing) -> str:
    return "tok/s" if sharing.unit == "token" else "samples/s"


def _level_as_dict(placed_level: PlacedLevel) -> dict[str, object]:
    level = placed_level.level
    return {
        "level": level.name,
        "devices": float(level.devices),
        "units": placed_level.units,
        "holds": placed_level.holds,
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
        "unit": sharing.unit,
        "even_rate": sharing.even_rate,
        "balanced_rate": sharing.balanced_rate,
        "groups": [
            {
                "hardware": group.group.name,
                "devices": group.group.devices,
                "rate": group.rate,
                "share": group.share,
                "sequences": group.sequences,
                "fits": group.fits,
            }
            for group in sharing.groups
        ],
    }
