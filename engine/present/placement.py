"""Where a plan lies on its cluster, as lines, parts of a report, and plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capacity_tui.engine.explain import PlacedLevel, Placement
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.solve import Crossing, PlacedPlan, Sharing
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
_LEAST_WHOLE = 0.015
"""Shares below this are told with a decimal."""


@dataclass(frozen=True, slots=True)
class LevelText:
    """One level of a cluster with what a plan puts on it, in words.

    Attributes:
        name: its name, moved in by what lies around it.
        holds: what one of it holds, and how many the plan fills.
        divides: the dimensions it divides.
        link: what joins what it holds.
        busy: share of the time in which its link sets the pace; a dash where it never does.
        is_hottest: whether no other link is as busy.
    """

    name: str
    holds: str
    divides: str
    link: str
    busy: str
    is_hottest: bool


def level_texts(placement: Placement) -> tuple[LevelText, ...]:
    """Return the levels from the outermost in, drawn as what holds what."""
    count = len(placement.levels)
    return tuple(_level(placement, place, count - 1 - place) for place in reversed(range(count)))


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
        yield TextPart("the plan runs on one device, or is not divided")
    else:
        rows = [(text.name, text.holds, text.divides, text.link, text.busy) for text in level_texts(placed.placement)]
        yield table_part(_HEADS, rows, right=(4,))
    yield from (TextPart(remark) for remark in placement_remarks(placed))


def placement_as_dict(placed: PlacedPlan) -> dict[str, object]:
    """Return the placement of a plan as plain data."""
    found = placed.placement
    hottest = None if found is None else found.hottest
    return {
        "hardware": placed.answer.resolved.cluster.words,
        "dimensions": [
            {
                "dimension": each.name,
                "size": each.size,
                "stride": each.stride,
                "ways": list(each.ways),
                "waited_share": each.waited,
            }
            for each in (() if found is None else found.dimensions)
        ],
        "levels": [_level_as_dict(each) for each in (() if found is None else found.levels)],
        "hottest": None if hottest is None else hottest.level.name,
        "crossing": None if placed.crossing is None else _crossing_as_dict(placed.crossing),
        "sharing": None if placed.sharing is None else _sharing_as_dict(placed.sharing),
        "remarks": list(placement_remarks(placed)),
    }


def _level(placement: Placement, place: int, depth: int) -> LevelText:
    found = placement.levels[place]
    inside = "device" if place == 0 else placement.levels[place - 1].level.name
    units = format_number(found.units)
    held = f"{format_number(found.holds)} {inside}{'s' if found.holds != 1 else ''}"
    divides = " · ".join(f"{name} {round(ways, 1):g}" for name, ways in placement.at(place))
    return LevelText(
        name="  " * depth + found.level.name,
        holds=held if found.units == 1 else f"{held} × {units}",
        divides=divides or _NOTHING,
        link=found.level.speed,
        busy=_share(found.busy) if found.busy else _NOTHING,
        is_hottest=found is placement.hottest,
    )


def _hottest(placement: Placement) -> str:
    found = placement.hottest
    if found is None:
        return "the devices exchange nothing"
    carried = ", ".join(DIMENSIONS[name] for name in found.carries)
    return f"hottest link: {found.level.name}, {found.level.speed}, busy {_share(found.busy)} with {carried}"


def _crossing(crossing: Crossing) -> str:
    before, after = map(_share, crossing.waited)
    within = f"the {crossing.direct} devices of a {crossing.unit}"
    said = (
        f"tensor parallel {crossing.size} crosses {within}; {crossing.other} would not"
        if crossing.crosses
        else f"tensor parallel {crossing.size} stays within {within}; {crossing.other} would cross them"
    )
    told = crossing.effect or "nothing that counts changes"
    shortage = f", but {crossing.trial.estimate.shortage}" if crossing.trial.estimate.shortage else ""
    return f"{said}: {told}, waiting for tensor parallel {after} of the time instead of {before}{shortage}"


def _sharing(sharing: Sharing) -> Iterator[str]:
    even, balanced = (f"{format_count(rate)} {_unit(sharing)}" for rate in (sharing.even_rate, sharing.balanced_rate))
    shares = " + ".join(f"{_share(each.share)} on {each.group.devices} x {each.group.name}" for each in sharing.groups)
    gain = format_number(sharing.balanced_rate / sharing.even_rate, 2)
    yield f"shared evenly over all, at the pace of the slowest: {even}"
    yield f"shared so that all end together, {shares} of the batch: {balanced} at most, {gain} × as much"
    for each in sharing.groups:
        if each.fits is False:
            yield f"{each.group.devices} x {each.group.name} do not hold it by themselves"


def _share(value: float) -> str:
    """Return a share; a small one does not read as nothing."""
    return format_percent(value, 0 if value >= _LEAST_WHOLE or not value else 1)


def _unit(sharing: Sharing) -> str:
    return "tok/s" if sharing.unit == "token" else "samples/s"


def _level_as_dict(found: PlacedLevel) -> dict[str, object]:
    level = found.level
    return {
        "level": level.name,
        "devices": float(level.devices),
        "units": found.units,
        "holds": found.holds,
        "link": level.link,
        "bandwidth": float(level.bandwidth),
        "busy_share": found.busy,
        "carries": list(found.carries),
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
                "hardware": each.group.name,
                "devices": each.group.devices,
                "rate": each.rate,
                "share": each.share,
                "sequences": each.sequences,
                "fits": each.fits,
            }
            for each in sharing.groups
        ],
    }
