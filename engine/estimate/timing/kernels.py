"""Which packed formats of weights a device has kernels for."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Quantization
from capacity_tui.engine.cluster import Device


def why_not_read(weights: Quantization, engine: str, device: Device, catalog: Catalog) -> str:
    """Return why an engine cannot read a format of weights on a device; empty where it can, or nothing is known."""
    # Engines go by other names too.
    row_of_engine = catalog.engines.find_id(engine)
    known = engine if row_of_engine is None else catalog.engines[row_of_engine].engine
    if weights.engines and known not in weights.engines:
        return f"{engine} does not read it; these do: {', '.join(weights.engines)}"
    row = catalog.accelerators.get(device.id)
    least, capability = weights.min_compute_capability, "" if row is None else row.compute_capability or ""
    # Only versions can be compared: the names of other vendors' targets have no order.
    if least is None or not re.fullmatch(r"\d+\.\d+", capability) or float(capability) >= least:
        return ""
    return f"its kernels need compute capability {least}, {device.name} has {capability}"
