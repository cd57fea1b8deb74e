"""What waits in host memory and crosses the link to it in every micro-batch: parameters, and kept activations."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.timing.host import host_link_bandwidth
from capacity_tui.engine.estimate.transformer.activations import kept_per_token, layer_input
from capacity_tui.engine.estimate.transformer.memory_terms import activation_bytes
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Collective
from capacity_tui.engine.numeric import Number, any_true, where

CROSSINGS = counted("host-crossings")


@equation(
    "seconds = crossings · held / link",
    unit="s",
    source="what is kept on the host crosses the link whole, each time",
    units={"held": "B", "link": "B"},
    origins={"crossings": "counts.host-crossings", "held": "activation_bytes", "link": "reached_bandwidth"},
)
def crossing_seconds(crossings: Number, held: Number, link: Number) -> Number:
    """Seconds in which what waits in host memory crosses the link to it.

    Args:
        crossings: times it crosses in one direction or the other.
        held: bytes that wait there.
        link: bytes a second that copies reach, B/s.
    """
    return crossings * held / link


def host_copies(run: TransformerRun) -> Iterator[Collective]:
    """Yield the copies of a micro-batch between a device and its host: they hide behind kernels where these last."""
    layout = run.layout
    link = host_link_bandwidth(run.cluster.device)
    if any_true(layout.offload_parameters > 0):
        dense = run.layers_per_stage * run.stacked_parameters_per_layer / layout.tp
        experts = run.layers_per_stage * run.expert_parameters_per_layer / (layout.ep * layout.etp)
        held = (dense + experts) * run.numerics.element_bytes / where(layout.zero >= 3, layout.shard, 1.0)
        seconds = crossing_seconds(CROSSINGS, where(layout.offload_parameters > 0, held, 0.0), link)
        yield Collective("parameters from the host", "data_parallel", seconds, 1.0, 1.0, bytes=held)
    if any_true(layout.offload_activations > 0):
        kept = activation_bytes(
            run.tokens,
            run.layers_per_stage,
            run.recompute.full_layers,
            kept_per_token(run, run.recompute),
            layer_input(run),
        )
        seconds = crossing_seconds(CROSSINGS, where(layout.offload_activations > 0, kept, 0.0), link)
        yield Collective("activations to the host and back", "overhead", seconds, 1.0, 1.0, bytes=kept)
