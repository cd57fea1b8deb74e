"""Memory of the loss: logits and their gradients, held whole or chunk by chunk."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.numeric import Number, any_true, where

LOSS_CHUNKS = counted("loss-chunks")


all_logits = formula()
gradients_of_loss = formula()
logit_bytes = formula()


def loss_bytes(run: TransformerRun, head: Number) -> Number:
    """Bytes of logits and loss on the last pipeline stage.

    Fused kernels take about as many logits at a time as there are elements in the hidden states, and write the
    gradient of a logit in its place.

    Args:
        head: parameters of the output head on the device.
    """
    layout, numerics = run.layout, run.numerics
    shape, software = run.shape, run.software
    held = all_logits(run.logit_tokens, shape.vocab, layout.tp)
    logit = where(layout.tp > 1, software.sharded_logit_bytes, software.logit_bytes)
    early = np.maximum(software.chunked_loss, software.fused_loss)
    if any_true(early > 0):
        chunk = held / LOSS_CHUNKS
        fused = np.asarray(software.fused_loss) > 0
        held = where(early > 0, where(fused, np.minimum(chunk, run.target_tokens * shape.hidden), chunk), held)
        logit = where(fused, np.minimum(logit, numerics.element_bytes), logit)
    # The gradient of a sharded head has a buffer of its own.
    gradient = where((layout.zero >= 3) & (layout.shard > 1), 0.0, run.trained_ends * numerics.element_bytes * head)
    left = gradients_of_loss(numerics.element_bytes, run.target_tokens, shape.hidden, gradient)
    return logit_bytes(held, logit, early, left, numerics.element_bytes)
