"""Collectives: seconds by payload, group and links (latency plus bandwidth, NCCL's own model)."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number, any_true, where

SOURCE = "Thakur et al. 2005; NCCL tests' bus bandwidth; constants from published collective timings"


@equation("within = clip(per_node / stride, 1, group)", unit="devices", source="rank order tp, cp, dp, pp")
def members_in_node(group: Number, stride: Number, per_node: Number) -> Number:
    """Members of a group that sit in one node, when neighbours in the group are ``stride`` ranks apart.

    Args:
        group: members of the group.
        stride: ranks between neighbours in the group.
        per_node: devices of a node.
    """
    return np.minimum(np.maximum(per_node / stride, 1.0), group)


@equation(
    "bandwidth = link if group <= within else network if within = 1 else min(link, within · network)",
    unit="B/s",
    source=SOURCE,
)
def bus_bandwidth(group: Number, within: Number, link: Number, network: Number) -> Number:
    """Bus bandwidth of rings through all members; every member of a node drives its own network port.

    Args:
        group: members.
        within: members in one node.
        link: what collectives reach inside a node, B/s in one direction.
        network: what they reach through one member's port, B/s in one direction.
    """
    across = np.minimum(where(within > 1, link, np.inf), within * network)
    return where(group > within, across, link)


@equation("latency = hop · (within - 1) + node_hop · steps", unit="s", source=SOURCE)
def ring_latency(within: Number, steps: Number, hop: Number, node_hop: Number) -> Number:
    """Latency of one pass: a ring inside the node, then ``steps`` between nodes.

    Args:
        within: members in one node.
        steps: steps between nodes.
        hop: seconds of one step inside a node.
        node_hop: seconds of one step between nodes.
    """
    return hop * (within - 1.0) + node_hop * steps


@equation(
    "seconds = latency + moved / bandwidth · (1 + half / (payload + half)) if group > 1 else 0, "
    "moved = payload · (group - 1) / group",
    unit="s",
    source=SOURCE + "; the factor stands for the change from latency to bandwidth protocols",
)
def one_pass_seconds(payload: Number, group: Number, bandwidth: Number, latency: Number, half: Number = 0.0) -> Number:
    """All-gather or reduce-scatter of ``payload`` bytes in total; 0 for a group of one.

    Args:
        payload: bytes in total.
        group: members.
        bandwidth: bus bandwidth, B/s.
        latency: seconds before the first byte is through.
        half: bytes at which the protocols change.
    """
    protocol = 1.0 + half / (payload + half) if any_true(half > 0) else 1.0
    seconds = latency + payload * (group - 1.0) / group / bandwidth * protocol
    return where(group > 1, seconds, 0.0)


def all_gather_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-gather or reduce-scatter over a group of ranks ``stride`` apart.

    A ring passes every node once, so that its latency grows with their number.
    """
    reach = cluster.device.efficiency
    within = members_in_node(group, stride, cluster.per_node)
    bandwidth = _ring_bandwidth(group, within, cluster)
    latency = ring_latency(within, group / within - 1.0, reach.collective_hop_seconds, cluster.node_hop_seconds)
    return one_pass_seconds(payload, group, bandwidth, latency, reach.collective_half_bytes)


@equation("seconds = 2 · one_pass", unit="s", source="a reduce-scatter and an all-gather")
def two_passes(one_pass: Number) -> Number:
    """Seconds of an all-reduce.

    Args:
        one_pass: seconds of one of its halves.
    """
    return 2.0 * one_pass


def all_reduce_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-reduce: a reduce-scatter and an all-gather, by trees between nodes.

    Where the switch of a node adds, a group inside the node gains ``switch_reduction``.
    """
    reach = cluster.device.efficiency
    within = members_in_node(group, stride, cluster.per_node)
    bandwidth = _ring_bandwidth(group, within, cluster)
    adding = where((group > 4.0) & (group <= within), reach.switch_reduction, 1.0)
    steps = np.log2(group / within)
    latency = ring_latency(within, steps, reach.collective_hop_seconds, cluster.node_hop_seconds)
    return two_passes(one_pass_seconds(payload, group, bandwidth * adding, latency, reach.collective_half_bytes))


def _ring_bandwidth(group: Number, within: Number, cluster: Cluster) -> Number:
    reach = cluster.device.efficiency
    link = cluster.device.link_bandwidth * reach.collective_share
    return bus_bandwidth(group, within, link, cluster.node_bandwidth * reach.network_share)


@equation(
    "share = (nodes - 1) · (1 - (1 - 1 / nodes)^copies) / copies",
    unit="",
    source="a token crosses to each node once, however many of its experts sit there",
)
def crossing_share(nodes: Number, copies: Number) -> Number:
    """Share of an all-to-all's payload that leaves the node, when ``copies`` of a token go to random places.

    Args:
        nodes: nodes the group spans.
        copies: places each token is sent to.
    """
    return (nodes - 1.0) * (1.0 - (1.0 - 1.0 / nodes) ** copies) / copies


def all_to_all_seconds(
    payload: Number, group: Number, stride: Number, cluster: Cluster, copies: Number = 1.0
) -> Number:
    """Seconds of an all-to-all of ``payload`` bytes held by each member.

    Inside a node every pair has the full link; between nodes each device sends through its own port, and what
    is sent to several members of a node (``copies`` of each token in all) crosses once.
    """
    reach = cluster.device.efficiency
    within = members_in_node(group, stride, cluster.per_node)
    nodes = group / within
    link = cluster.device.link_bandwidth * reach.collective_share
    network = cluster.node_bandwidth * reach.network_share
    hops = ring_latency(within, np.log2(nodes), reach.collective_hop_seconds, cluster.node_hop_seconds)
    inside, outside = payload * (within - 1.0) / within / link, payload * crossing_share(nodes, copies) / network
    return where(group > 1, hops + np.maximum(inside, outside), 0.0)


def point_to_point_seconds(payload: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds to send ``payload`` bytes to the rank ``stride`` further on."""
    reach = cluster.device.efficiency
    crosses = stride >= cluster.per_node
    bandwidth = where(
        crosses,
        cluster.node_bandwidth * reach.network_share,
        cluster.device.link_bandwidth * reach.collective_share,
    )
    hop = where(crosses, cluster.node_hop_seconds, reach.collective_hop_seconds)
    return hop + payload / bandwidth
