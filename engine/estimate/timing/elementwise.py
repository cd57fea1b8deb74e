"""Element-wise kernels of a transformer layer by the elements they read and write, which is what bounds them."""

from __future__ import annotations

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number

# Passes over the residual stream around attention and around the feed-forward, one kernel an operation.
# Forward: the norm reads and writes, the addition reads two and writes one.
FORWARD_PASSES = 5.0
# Backward: the norm reads gradient and input and writes a gradient, then reads both again for its own weights;
# the gradients of both branches are added, one of them while it is made.
BACKWARD_PASSES = 7.0


def activation_passes(gated: bool, *, backward: bool) -> Number:
    """Passes over the width of a feed-forward between its products.

    Forward an activation with its bias reads, writes and is read as the product's operand: 3. A gate adds a read and a
    write, and backward another read.
    """
    return 3.0 + gated * (3.0 if backward else 2.0)


@equation(
    "elements = passes · sublayers · hidden + 2 · rotary + traffic · activation · ffn + routing · routed",
    unit="elements",
    source="each operation reads and writes its operands once; the feed-forward's share in caches is fitted",
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
