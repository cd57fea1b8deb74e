"""Documents packed into sequences, at whose ends attention stops."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, any_true, where


@equation(
    "attended = document / seq · (window + (seq - window - document) · left), left = 1 - exp(-window / document)",
    unit="tokens",
    source="documents whose lengths are exponentially distributed, packed one after another and cut at both ends",
)
def attended_in_documents(document: Number, seq: Number, window: Number) -> Number:
    """Tokens that a token attends to before itself in its own document, averaged over positions.

    Args:
        document: mean tokens of a document.
        seq: tokens of a sequence.
        window: most tokens it attends to.
    """
    left = -np.expm1(-window / document)
    return document / seq * (window + (seq - window - document) * left)


def attended_tokens(shape: TransformerShape, seq: Number, document: Number, *, causal: bool) -> Number:
    """Return the tokens a token attends to, averaged over positions and layers.

    Args:
        shape: the model, with its windows.
        seq: tokens of a sequence.
        document: mean tokens of a document, 0 where attention spans the sequence.
        causal: whether a token attends to those before it alone.
    """
    kind = shape.attention_kind
    window = np.minimum(kind.window, seq)
    full = seq / 2.0 if causal else seq
    windowed = window - window * window / (2.0 * seq) if causal else window
    whole = kind.mean_attended(full, windowed)
    if not any_true(document > 0):
        return whole
    length = where(document > 0, document, seq)
    full, windowed = (attended_in_documents(length, seq, limit) for limit in (seq, window))
    packed = kind.mean_attended(full, windowed)
    return where(document > 0, np.minimum(packed * (1.0 if causal else 2.0), seq), whole)
