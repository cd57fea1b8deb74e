"""How much of a forward pass runs a second time, in the backward pass."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.numeric import Number

RECOMPUTED_PRODUCTS = counted("recomputed-products")


def recomputed_share(run: TransformerRun, module: Number, *, product: bool) -> Number:
    """Share of a module's forward pass that runs a second time."""
    operations = run.recompute.operations * (RECOMPUTED_PRODUCTS if product else 1.0)
    rest = np.maximum(module, operations)
    return run.recompute.full_layers + (1.0 - run.recompute.full_layers) * rest
