"""What work in host memory reaches: an optimizer's step beside the devices, and copies over their links to it."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.timing.roofline import reached_bandwidth
from capacity_tui.engine.numeric import Number, any_true, where

HOST_DEVICES = counted("host-devices")


@equation(
    "bandwidth = min(alone, node / sharing)",
    unit="B/s",
    source="Ren et al. 2021, ZeRO-Offload: a vectorised optimizer on two sockets, which all devices of a host share",
    units={"alone": "B/s", "node": "B/s"},
)
def host_share(alone: Number, node: Number, sharing: Number) -> Number:
    """Bytes of host memory that an optimizer's step moves in a second for one device.

    Args:
        alone: most that what stands beside a single device moves, B/s.
        node: what all processors of a host move together, B/s.
        sharing: devices that share them.
    """
    return np.minimum(alone, node / sharing)


def optimizer_bandwidth(cluster: Cluster, offloaded: Number) -> Number:
    """Bytes an optimizer's step moves in a second: in device memory, or in that of the host where it is offloaded."""
    device = cluster.device
    reach = device.efficiency
    own = reached_bandwidth(device.bandwidth, reach.stream * reach.optimizer_stream)
    if not any_true(np.asarray(offloaded) > 0):
        return own
    sharing = np.minimum(np.minimum(cluster.per_node, cluster.devices), HOST_DEVICES)
    shared = host_share(reach.host_optimizer_alone, reach.host_optimizer, sharing)
    return where(np.asarray(offloaded) > 0, shared, own)


def host_link_bandwidth(device: Device) -> Number:
    """Bytes that copies between a device and pinned host memory move in a second."""
    return reached_bandwidth(device.host_bandwidth, device.efficiency.host_stream)
