"""Served runs that differ in numbers alone, estimated with changing constants in one call.

What a plan stands for does not depend on the constants of serving: it is worked out once a run, and estimates take the
engine and its kernels anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Catalog, Quantization
from capacity_tui.engine.cluster import Price
from capacity_tui.engine.estimate import estimate_run
from capacity_tui.engine.estimate.serving import ServingRun, serving_run
from capacity_tui.engine.estimate.serving.resolve import readings
from capacity_tui.engine.estimate.serving.run import runtime
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.runs.accuracy.predictions import measured_figure
from capacity_tui.engine.solve.space.stacking import can_stack, stacked
from tools.calibrate.constants import Constant
from tools.calibrate.fitting import Batch
from tools.calibrate.runs import Run


@dataclass(frozen=True)
class ServedTogether:
    """Runs of one engine and one format of weights, as arrays."""

    places: tuple[int, ...]  # where they stand among all runs
    like: Run  # one of them, whose figure is that of all
    run: ServingRun  # all of them
    quantization: Quantization  # the format of their weights

    takes_arrays = True

    def reads(self, constant: Constant) -> bool:
        """Whether a constant may change the estimates."""
        return self.like.reads(constant)

    def figures(self, catalog: Catalog) -> Number:
        """Return the figures as estimated with a catalogue; the last dimension is that of the runs."""
        engine, before = catalog.engines[self.like.rows["engines"]], self.run.runtime
        changed = replace(
            runtime(engine, catalog, 0.0),
            claim=before.claim,
            chunk_tokens=before.chunk_tokens,
            mixes_prefill=before.mixes_prefill,
        )
        kernel = catalog.weight_kernels[self.like.rows["weight_kernels"]]
        body, head = readings(engine, self.quantization, kernel, catalog)
        run = replace(self.run, runtime=changed, body=body, head=head)
        return measured_figure(estimate_run(run, self.like.resolved.plan), self.like.measurement).value


def served_together(runs: Sequence[Run], catalog: Catalog) -> Sequence[Batch]:
    """Return the runs in as few calls as there are kinds of them."""
    return tuple(_together(runs, catalog))


def _together(runs: Sequence[Run], catalog: Catalog) -> Iterator[ServedTogether]:
    groups: dict[tuple[object, ...], list[tuple[list[int], list[ServingRun]]]] = {}
    for place, each in enumerate(runs):
        run, key = _single(each, catalog), _key(each)
        for places, others in groups.setdefault(key, []):
            if can_stack(run, others[0]):
                places.append(place)
                others.append(run)
                break
        else:
            groups[key].append(([place], [run]))
    for places, found in (group for kind in groups.values() for group in kind):
        like = runs[places[0]]
        whole = stacked(found, (len(found),))
        yield ServedTogether(tuple(places), like, whole, _format(like, catalog))


def _key(run: Run) -> tuple[object, ...]:
    """Return what estimates in one call have in common beside being alike."""
    plan, measurement = run.resolved.plan, run.measurement
    ends = plan.inference.requests is not None
    rank = measurement.tags.get("rank", "")
    return (*sorted(run.rows.items()), plan.inference.weights, ends, measurement.quantity, rank)


def _format(run: Run, catalog: Catalog) -> Quantization:
    return catalog.quantizations.find(run.resolved.plan.inference.weights_format)


def _single(run: Run, catalog: Catalog) -> ServingRun:
    """Return a run without the words that are told of it."""
    resolved = run.resolved
    if resolved.shape is None:
        raise ValueError(f"{run.measurement.id} serves no transformer")
    found = serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
    device = replace(found.cluster.device, known={}, checked="", confidence="")
    cluster = replace(found.cluster, device=device, price=Price(), rented="", assumed=())
    return replace(found, shape=replace(found.shape, assumed=()), cluster=cluster, calibration="", assumed=())
