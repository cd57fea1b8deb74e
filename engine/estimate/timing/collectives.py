"""Collectives: seconds by payload, group and links (latency plus bandwidth, NCCL's own model).

A group of ranks spans the levels of a cluster from the innermost out. On the direct levels its members reach each
other over their own links; every level around them is crossed by all members of the units inside it at once, each
through its own port, and the level with the least bandwidth left for the group sets the pace. A level that is divided
in two of the same link changes nothing, so that two levels are the case of one network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.cluster import Cluster, Level
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.numeric import Number, any_true, where

SWITCH_GROUP = counted("switch-group")
# Steps of a small all-reduce in which every device reads from all others, in hops of the link.
SMALL_BASE, SMALL_STEP = 1.0, counted("small-all-reduce-hops")


@equation
def members_in_node(group: Number, stride: Number, per_node: Number) -> Number:
    """Members of a group that sit in one node, when neighbours in the group are ``stride`` ranks apart."""
    return np.minimum(np.maximum(per_node / stride, 1.0), group)


@equation
def bus_bandwidth(group: Number, within: Number, link: Number, network: Number) -> Number:
    """Bus bandwidth of rings through all members; every member of a node drives its own network port."""
    across = np.minimum(where(within > 1, link, np.inf), within * network)
    return where(group > within, across, link)


ring_latency = formula()
outer_latency = formula()


@equation
def one_pass_seconds(payload: Number, group: Number, bandwidth: Number, latency: Number, half: Number = 0.0) -> Number:
    """All-gather or reduce-scatter of ``payload`` bytes in total; 0 for a group of one."""
    protocol = 1.0 + half / (payload + half) if any_true(half > 0) else 1.0
    seconds = latency + payload * (group - 1.0) / group / bandwidth * protocol
    return where(group > 1, seconds, 0.0)


def all_gather_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-gather or reduce-scatter over a group of ranks ``stride`` apart.

    A ring passes every node once, so that its latency grows with their number.
    """
    reach = cluster.device.efficiency
    within, crossed = _crossings(group, stride, cluster)
    bandwidth = _ring_bandwidth(group, stride, crossed, cluster)
    steps = [
        (level, group / inside - (1.0 if members is group else group / members)) for level, inside, members in crossed
    ]
    latency = _latency(within, steps, cluster)
    return one_pass_seconds(payload, group, bandwidth, latency, reach.collective_half_bytes)


two_passes = formula()


def all_reduce_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-reduce: a reduce-scatter and an all-gather, by trees between nodes.

    Where the switch of a node adds, a group inside the node gains ``switch_reduction``.
    """
    reach = cluster.device.efficiency
    within, crossed = _crossings(group, stride, cluster)
    bandwidth = _ring_bandwidth(group, stride, crossed, cluster)
    adding = where((group > SWITCH_GROUP) & (group <= within), reach.switch_reduction, 1.0)
    steps = [(level, np.log2(members / inside)) for level, inside, members in crossed]
    latency = _latency(within, steps, cluster)
    return two_passes(one_pass_seconds(payload, group, bandwidth * adding, latency, reach.collective_half_bytes))


def _crossings(
    group: Number, stride: Number, cluster: Cluster
) -> tuple[Number, tuple[tuple[Level, Number, Number], ...]]:
    """Return the members in a node, and each network outwards with those in a unit inside it and in one of its own."""
    *inner, outermost = cluster.networks
    within = inside = members_in_node(group, stride, cluster.direct_devices)
    crossed = []
    for level in inner:
        members = members_in_node(group, stride, level.devices)
        crossed.append((level, inside, members))
        inside = members
    return within, (*crossed, (outermost, inside, group))


class _Crossing(NamedTuple):
    """One level that a group may cross."""

    level: Level
    inside: Number  # members in a unit of the level inside it
    members: Number  # members in one of its own
    before: Number  # bus bandwidth inside it, B/s
    after: Number  # the same with it, B/s


def pacing_level(group: float, stride: float, cluster: Cluster) -> Level | None:
    """Return the level whose link sets the pace of a group's rings; None for a group of one.

    Args:
        group: members.
        stride: ranks between neighbours in the group.
    """
    if group <= 1:
        return None
    _, crossed = _crossings(group, stride, cluster)
    pacing = cluster.levels[0]
    for crossing in _ring_bandwidths(group, stride, crossed, cluster):
        # Where a unit inside holds one member alone, its own link carries nothing.
        if crossing.members > crossing.inside and (crossing.inside <= 1 or crossing.after < crossing.before):
            pacing = crossing.level
    return pacing


def _ring_bandwidth(
    group: Number, stride: Number, crossed: Sequence[tuple[Level, Number, Number]], cluster: Cluster
) -> Number:
    """Bus bandwidth of a group's rings, B/s: that of the slowest level they cross."""
    *_, last = _ring_bandwidths(group, stride, crossed, cluster)
    return last.after


def _ring_bandwidths(
    group: Number, stride: Number, crossed: Sequence[tuple[Level, Number, Number]], cluster: Cluster
) -> Iterator[_Crossing]:
    """Yield what each level around the innermost leaves of the bandwidth inside it."""
    efficiency = cluster.device.efficiency
    bandwidth: Number = cluster.levels[0].bandwidth * efficiency.collective_share
    for below, level in pairwise(cluster.direct):
        inside, members = (members_in_node(group, stride, span.devices) for span in (below, level))
        before = bandwidth
        bandwidth = bus_bandwidth(members, inside, before, level.bandwidth * efficiency.collective_share)
        yield _Crossing(level, inside, members, before, bandwidth)
    for level, inside, members in crossed:
        before = bandwidth
        bandwidth = bus_bandwidth(members, inside, before, level.sustained(efficiency.network_share))
        yield _Crossing(level, inside, members, before, bandwidth)


def _latency(within: Number, steps: Sequence[tuple[Level, Number]], cluster: Cluster) -> Number:
    """Seconds before the first byte is through, by the steps between units of each network."""
    (first, count), *outer = steps
    latency = ring_latency(within, count, cluster.device.efficiency.collective_hop_seconds, first.hop_seconds)
    for level, count in outer:
        latency = outer_latency(latency, count, level.hop_seconds)
    return latency


# Share of an all-to-all's payload that leaves the node, when ``copies`` of a token go to random places.
crossing_share = formula()


def all_to_all_seconds(
    payload: Number, group: Number, stride: Number, cluster: Cluster, copies: Number = 1.0
) -> Number:
    """Seconds of an all-to-all of ``payload`` bytes held by each member.

    Inside a node every pair has the full link; between nodes each device sends through its own port, and what
    is sent to several members of a node (``copies`` of each token in all) crosses once. Levels work side by side.
    """
    efficiency = cluster.device.efficiency
    within, crossed = _crossings(group, stride, cluster)
    steps = [(level, np.log2(members / inside)) for level, inside, members in crossed]
    sent = []
    for level in cluster.direct:
        members = members_in_node(group, stride, level.devices) if level is not cluster.direct[-1] else within
        sent.append(payload * (members - 1.0) / members / (level.bandwidth * efficiency.collective_share))
    for level, inside, _ in crossed:
        share = crossing_share(group / inside, copies)
        sent.append(payload * share / level.sustained(efficiency.network_share))
    return where(group > 1, _latency(within, steps, cluster) + reduce(np.maximum, sent), 0.0)


def point_to_point_seconds(payload: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds to send ``payload`` bytes to the rank ``stride`` further on, over the first level that holds both."""
    efficiency = cluster.device.efficiency
    bandwidth: Number = cluster.levels[0].bandwidth * efficiency.collective_share
    hop: Number = efficiency.collective_hop_seconds
    for below, level in pairwise(cluster.levels):
        crosses = stride >= below.devices
        share = efficiency.collective_share if level.is_direct else efficiency.network_share
        bandwidth = where(crosses, level.sustained(share), bandwidth)
        hop = where(crosses, efficiency.collective_hop_seconds if level.is_direct else level.hop_seconds, hop)
    return hop + payload / bandwidth


@equation
def one_shot_latency(devices: Number, hop: Number, mesh: Number) -> Number:
    """Seconds in which the devices of a group find that all are ready, and read the first bytes of all others."""
    turns = np.where(mesh > 0, 1.0, np.log2(np.maximum(devices, 1.0)))
    return hop * (SMALL_BASE + SMALL_STEP * turns)


@equation
def peer_bandwidth(link: Number, devices: Number, node: Number, mesh: Number) -> Number:
    """Bytes a second that a device reads from all others of its group together."""
    return np.where(mesh > 0, link * np.maximum(devices - 1.0, 1.0) / np.maximum(node - 1.0, 1.0), link)


# Seconds of an all-reduce of few bytes, in which each device reads from all others at once.
one_shot_all_reduce = formula()
two_shot_all_reduce = formula()
