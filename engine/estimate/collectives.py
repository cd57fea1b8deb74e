"""Collectives: seconds by payload, group and links (latency plus bandwidth, NCCL's own model)."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.hardware.cluster import Cluster
from capacity_tui.engine.numeric import Number

SOURCE = "Thakur et al. 2005; NCCL tests' bus bandwidth; constants from published collective timings"


@equation("within = clip(per_node / stride, 1, group)", unit="devices", source="rank order tp, cp, dp, pp")
def members_in_node(group: Number, stride: Number, per_node: Number) -> Number:
    """Members of a group that sit in one node, when neighbours in the group are ``stride`` ranks apart."""
    return np.clip(per_node / stride, 1.0, group)


@equation(
    "bandwidth = min(link · share, within · network · share) across nodes, link · share inside one",
    unit="B/s",
    source=SOURCE,
)
def bus_bandwidth(group: Number, within: Number, link: Number, network: Number, share: Number) -> Number:
    """Bus bandwidth of a ring through all members; every member of a node drives its own network port."""
    inside = link * share
    across = np.minimum(np.where(within > 1, inside, np.inf), within * network * share)
    return np.where(group > within, across, inside)


@equation("latency = hop · (within - 1) + node_hop · log2(nodes)", unit="s", source=SOURCE)
def ring_latency(group: Number, within: Number, hop: Number, node_hop: Number) -> Number:
    """Latency of one pass: a ring inside the node, a tree between nodes."""
    return hop * (within - 1.0) + node_hop * np.log2(np.maximum(group / within, 1.0))


@equation("seconds = latency + bytes · (group - 1) / group / bandwidth", unit="s", source=SOURCE)
def one_pass_seconds(payload: Number, group: Number, bandwidth: Number, latency: Number) -> Number:
    """All-gather or reduce-scatter of ``payload`` bytes in total; 0 for a group of one."""
    seconds = latency + payload * (group - 1.0) / group / bandwidth
    return np.where(group > 1, seconds, 0.0)


def all_gather_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-gather or reduce-scatter over a group of ranks ``stride`` apart."""
    reach = cluster.device.reach
    within = members_in_node(group, stride, cluster.per_node)
    bandwidth = bus_bandwidth(
        group, within, cluster.device.link_bandwidth, cluster.node_bandwidth, reach.collective_share
    )
    latency = ring_latency(group, within, reach.collective_hop_seconds, cluster.node_hop_seconds)
    return one_pass_seconds(payload, group, bandwidth, latency)


def all_reduce_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-reduce: a reduce-scatter and an all-gather."""
    return 2.0 * all_gather_seconds(payload, group, stride, cluster)


def all_to_all_seconds(payload: Number, group: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds of an all-to-all of ``payload`` bytes held by each member.

    Inside a node every pair has the full link; between nodes each device sends through its own port.
    """
    reach = cluster.device.reach
    within = members_in_node(group, stride, cluster.per_node)
    outside = np.where(group > within, (group - within) / group, 0.0)
    inside = (within - 1.0) / group
    link = cluster.device.link_bandwidth * reach.collective_share
    network = cluster.node_bandwidth * reach.collective_share
    latency = ring_latency(group, within, reach.collective_hop_seconds, cluster.node_hop_seconds)
    seconds = latency + np.maximum(payload * inside / link, payload * outside / network)
    return np.where(group > 1, seconds, 0.0)


def point_to_point_seconds(payload: Number, stride: Number, cluster: Cluster) -> Number:
    """Seconds to send ``payload`` bytes to the rank ``stride`` further on."""
    reach = cluster.device.reach
    crosses = stride >= cluster.per_node
    bandwidth = np.where(crosses, cluster.node_bandwidth, cluster.device.link_bandwidth) * reach.collective_share
    hop = np.where(crosses, cluster.node_hop_seconds, reach.collective_hop_seconds)
    return hop + payload / bandwidth
