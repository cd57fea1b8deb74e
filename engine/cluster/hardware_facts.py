"""What decides which fields of a plan apply on a cluster."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.plan import HardwareFacts


def hardware_facts(cluster: Cluster, has_own_price: bool = False) -> HardwareFacts:
    """Return what is known of a cluster that fields of a plan need.

    Args:
        cluster: what the plan's hardware stands for.
        has_own_price: whether the plan gives a price of its own.
    """
    return HardwareFacts(
        devices=int(np.max(cluster.devices)),
        per_node=int(np.max(cluster.direct_devices)),
        on_processor=cluster.device.kind == "cpu",
        has_own_memory=cluster.device.has_own_memory,
        has_spot_price=has_own_price or cluster.price.spot_usd_per_hour is not None,
        has_committed_price=cluster.price.has_terms,
        has_regional_prices=cluster.price.has_regions,
    )
