"""Element-wise kernels of a transformer layer by the elements they read and write, which is what bounds them."""

from __future__ import annotations

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number

# Passes over the residual stream around attention and around the feed-forward, one kernel an operation.
FORWARD_PASSES, BACKWARD_PASSES = counted("norm-passes-forward"), counted("norm-passes-backward")
PLAIN_PASSES = counted("activation-passes")
GATE_FORWARD, GATE_BACKWARD = counted("gate-passes-forward"), counted("gate-passes-backward")


def activation_passes(gated: bool, *, backward: bool) -> Number:
    """Passes over the width of a feed-forward between its products, its activation's and its gate's."""
    return PLAIN_PASSES + gated * (GATE_BACKWARD if backward else GATE_FORWARD)


@equation(
    "elements = passes · sublayers · hidden + 2 · rotary + traffic · activation · ffn + routing · routed",
    unit="elements",
    source="each operation reads and writes its operands once; the feed-forward's share in caches is fitted",
    origins={
        "passes": ("counts.norm-passes-forward", "counts.norm-passes-backward"),
        "traffic": "coefficients.feed-forward-traffic",
    },
)
def layer_elements(
    passes: Number,
    sublayers: Number,
    hidden: Number,
    rotary: Number,
    traffic: Number,
    activation: Number,
    ffn: Number,
    routing: Number,
    routed: Number,
) -> Number:
    """Elements that the element-wise kernels of a layer move for a token.

    Args:
        passes: passes over the residual stream around one attention or feed-forward.
        sublayers: attentions and feed-forwards of a layer.
        hidden: elements of the residual stream on the device.
        rotary: elements of queries, keys and values, read and written to turn them.
        traffic: share of the feed-forward's element-wise traffic that reaches memory.
        activation: passes over the width of the feed-forward.
        ffn: width of the feed-forward that a token passes on the device.
        routing: passes that sort routed tokens and bring them back.
        routed: elements of the copies of a token that go to experts.
    """
    return passes * sublayers * hidden + 2.0 * rotary + traffic * activation * ffn + routing * routed


@equation(
    "bytes = passes · tokens · element_bytes · elements",
    unit="B",
    source="frameworks.yaml: passes of the software over those of one kernel an operation",
    units={"element_bytes": "B"},
    origins={"elements": "layer_elements"},
)
def elementwise_bytes(passes: Number, tokens: Number, element_bytes: Number, elements: Number) -> Number:
    """Bytes that the element-wise kernels of a layer move for a micro-batch.

    Args:
        passes: passes of the software's kernels, relative to one kernel an operation.
        tokens: tokens of a micro-batch on the device.
        element_bytes: bytes of an element.
        elements: elements they move for a token, one kernel an operation.
    """
    return passes * tokens * element_bytes * elements
