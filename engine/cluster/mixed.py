"""Unlike devices or nodes in one cluster: which of them a plan uses, at whose pace, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from capacity_tui.engine.cluster.cluster import FIGURES, Device
from capacity_tui.engine.cluster.hardware_match import HardwareMatch
from capacity_tui.engine.machine import Provenance
from capacity_tui.engine.plan import Mixed
from capacity_tui.engine.units import format_bytes, format_flops


def combined(groups: Sequence[HardwareMatch], mixed: Mixed) -> HardwareMatch:
    """Return what a plan runs on of several groups of equal devices, with the reason where they are not all alike.

    Work is shared out evenly, so that every device waits for the slowest one: together they give as many times its
    arithmetic as there are devices. One group alone gives its own. ``best`` takes whichever is more.

    Args:
        groups: equal devices in equal nodes each; one at least.
        mixed: ``all`` of them, ``one`` group, or the ``best`` of the two.
    """
    if len(groups) == 1:
        return groups[0]
    strongest = max(groups, key=_arithmetic)
    joined = [group for group in groups if group.is_joined]
    together = _together(joined) if len(joined) > 1 else None
    if together is None or (mixed != "all" and (mixed == "one" or _arithmetic(together) <= _arithmetic(strongest))):
        return _alone(strongest, groups, together)
    return replace(together, mix=f"{_listed(joined)} at the pace of the slowest", mix_reason=_why(together, strongest))


def _alone(chosen: HardwareMatch, groups: Sequence[HardwareMatch], together: HardwareMatch | None) -> HardwareMatch:
    others = _listed(group for group in groups if group is not chosen)
    if together is None:
        reason = f"{others} left out: not joined to the others"
    else:
        reason = (
            f"{others} left out: all {together.devices} together would work at the pace of the slowest, "
            f"{_speed(together)} in all, {_count(chosen)} alone {_speed(chosen)}"
        )
    return replace(chosen, mix_reason=reason)


def _why(together: HardwareMatch, strongest: HardwareMatch) -> str:
    memory = together.device.memory_bytes
    least = "" if memory is None else f", and with the least memory of them, {format_bytes(float(memory))}"
    return (
        f"all {together.devices} devices share the work evenly at the pace of the slowest{least}: "
        f"{_speed(together)} in all, {_count(strongest)} alone {_speed(strongest)}"
    )


def _together(groups: Sequence[HardwareMatch]) -> HardwareMatch:
    """Return all groups as so many devices that are each as slow, and each node as small, as the least of them."""
    slowest = min(groups, key=lambda group: _arithmetic(group) / group.devices)
    count = sum(group.devices for group in groups)
    hosts = [group.host_memory_bytes for group in groups]
    nodes = {group.per_node for group in groups}
    return replace(
        slowest,
        device=_least([group.device for group in groups], slowest.device, [group.devices for group in groups]),
        devices=count,
        per_node=count if slowest.is_one_machine else min(nodes),
        network=min((group.network for group in groups), key=lambda network: network.device_bandwidth(min(nodes))),
        host_memory_bytes=None if None in hosts else min(host for host in hosts if host is not None),
        accelerator=None,
        instance=None,
        parts=tuple(groups),
        assumed=tuple(dict.fromkeys(line for group in groups for line in group.assumed)),
    )


def _least(devices: Sequence[Device], slowest: Device, counts: Sequence[int]) -> Device:
    """Return a device that has of every figure the least among some; its power is their mean."""
    # A type that only some multiply in runs in another on the rest.
    kinds = [kind for kind in slowest.peaks if all(kind in device.peaks for device in devices)]
    peaks = {kind: min(device.peaks[kind] * float(device.clock) for device in devices) for kind in kinds}
    known: dict[str, Provenance] = dict(slowest.known)
    least: dict[str, float] = {}
    for name in FIGURES.keys() & slowest.known.keys() - {"tdp_watts"}:
        held = [device for device in devices if getattr(device, name) is not None]
        if held:
            device = min(held, key=lambda device: float(getattr(device, name)))
            least[name], known[name] = float(getattr(device, name)), device.known[name]
    for kind in kinds:
        device = min(devices, key=lambda device: device.peaks[kind] * float(device.clock))
        known[f"peaks.{kind}"] = device.known[f"peaks.{kind}"]
    watts = [device.tdp_watts for device in devices]
    given = [float(watt) * count for watt, count in zip(watts, counts, strict=True) if watt is not None]
    return replace(
        slowest,
        name=" and ".join(dict.fromkeys(device.name for device in devices)),
        peaks=peaks,
        clock=1.0,
        tdp_watts=sum(given) / sum(counts) if len(given) == len(watts) else None,
        known={name: by for name, by in known.items() if not name.startswith("peaks.") or name[6:] in peaks},
        **least,  # type: ignore[arg-type]  # figures of a device by their names
    )


def _arithmetic(match: HardwareMatch) -> float:
    device = match.device
    return device.peaks[device.half_precision] * float(device.clock) * match.devices


def _speed(match: HardwareMatch) -> str:
    return f"{format_flops(_arithmetic(match), per_second=True)} {match.device.half_precision}"


def _count(match: HardwareMatch) -> str:
    return f"{match.devices} x {match.device.id}"


def _listed(groups: Iterable[HardwareMatch]) -> str:
    return " + ".join(map(_count, groups))
