"""The levels of a cluster, from what a plan states and from what is usually built around its devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog.rows import LevelRow
from capacity_tui.engine.cluster.fabric import Network
from capacity_tui.engine.cluster.level import Level
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key

FIELD = Key.HARDWARE_LEVELS
Named = Callable[[str, str], Network]
OUTERMOST = "fabric"


def cluster_levels(
    inner: Level, rows: Sequence[LevelRow], network: Network, devices: int, sharing: int, named: Named
) -> tuple[Level, ...]:
    """Return the levels of a cluster from the innermost out; the last one joins all devices over a network.

    Args:
        inner: the innermost level, whose link is the devices' own.
        rows: the levels around it.
        network: what joins their units where a row names no link.
        devices: devices of the cluster.
        sharing: devices that share the ports of a node.
        named: returns the network of a link by its name and the field that gives it.

    Raises:
        PlanError: the levels do not fit into each other, or a link has no known name.
    """
    _refuse_misfits(inner, rows)
    levels = [inner]
    for row in rows:
        levels.append(_level(row, levels, network, devices, sharing, named))
    held = rows[-1].devices if rows else inner.devices
    if levels[-1].is_direct:
        outermost = LevelRow(name=OUTERMOST, devices=None, link=None, oversubscription=1.0)
        levels.append(_level(outermost, levels, network, devices, sharing, named))
    elif held is not None and held < devices:
        name = f"{FIELD}.{len(rows) - 1}.devices"
        words = f"{levels[-1].name} holds {held} devices, the plan has {devices}"
        raise PlanError(words, hint="make it larger, or add a level around it", place=Place(field=name))
    return tuple(replace(level, devices=min(float(level.devices), float(devices))) for level in levels)


def slower_outside(levels: Sequence[Level]) -> Iterator[str]:
    """Yield which levels have a link that the ports of the level inside do not fill."""
    networks = [level for level in levels if not level.is_direct]
    for inside, level in pairwise(networks):
        if level.bandwidth == inside.bandwidth and level.link != inside.link:
            yield f"{level.name}: what enters it goes through the ports of the {inside.name}, {inside.link}"


def _level(row: LevelRow, inside: Sequence[Level], network: Network, devices: int, sharing: int, named: Named) -> Level:
    """Return one level around those inside; a device's bandwidth never grows from one network to the next."""
    below = inside[-1]
    if row.link is not None:
        network = named(row.link, f"{FIELD}.{len(inside) - 1}.link")
    elif not below.is_direct:
        level = replace(below, name=row.name, devices=float(row.devices or devices))
        return replace(
            level,
            bandwidth=float(below.bandwidth) * below.oversubscription / row.oversubscription,
            oversubscription=row.oversubscription,
        )
    bandwidth = network.device_bandwidth(sharing) / row.oversubscription
    is_direct = row.link is not None and below.is_direct and network.link.direct
    if not below.is_direct:
        bandwidth = min(bandwidth, float(below.bandwidth))
    return Level(
        name=row.name,
        devices=float(row.devices or devices),
        bandwidth=bandwidth,
        hop_seconds=float(below.hop_seconds) if is_direct else network.hop_seconds,
        link=network.name,
        known=network.known,
        is_direct=is_direct,
        oversubscription=row.oversubscription,
        is_measured=network.link.measured and not is_direct,
        error=network.link.error if network.link.measured and not is_direct else None,
    )


def _refuse_misfits(inner: Level, rows: Sequence[LevelRow]) -> None:
    """Check that every level holds whole units of the one inside, and that no two have one name."""
    name, held = inner.name, int(inner.devices)
    names: set[str] = set()
    for index, row in enumerate(rows):
        place = Place(field=f"{FIELD}.{index}")
        if row.name == inner.name:
            told = f"the hardware itself has a level called {row.name}, of {held} devices"
            raise PlanError(told, hint="leave it out, or give this level another name", place=place)
        if row.name in names:
            raise PlanError(f"two levels are called {row.name}", hint="give each a name of its own", place=place)
        names.add(row.name)
        last = index == len(rows) - 1
        if row.devices is None:
            if not last:
                hint = "give devices of every level but the last"
                raise PlanError(f"{row.name} holds all devices, but a level is around it", hint=hint, place=place)
            continue
        if row.devices < held or row.devices % held:
            hint = f"go from the innermost out, in multiples of {held}; hardware.per_node is what one node holds"
            raise PlanError(
                f"{row.name} of {row.devices} devices does not hold whole units of the {name}, {held} each",
                hint=hint,
                place=place,
            )
        name, held = row.name, row.devices
