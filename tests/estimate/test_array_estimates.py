"""One estimate of many plans says of each what an estimate of that plan alone says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plans import TRAINING, plan_of

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, assemble, resolve_plan
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.plan import PricingSection
from capacity_tui.engine.verdict import Verdict

BATCHES, STAGES, ZEROS = (1.0, 4.0, 16.0), (1.0, 4.0), (0.0, 3.0)
SHAPE = (len(BATCHES), len(STAGES), len(ZEROS))


def run_of() -> TransformerRun:
    catalog = load_catalog()
    resolved = resolve_plan(plan_of(TRAINING, {"training.global_batch": 1024}), catalog)
    assert resolved.shape is not None
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)


def with_layout(run: TransformerRun, batch: object, stages: object, zero: object) -> Estimate:
    pp = np.asarray(stages, dtype=np.float64)
    dp = run.cluster.devices / pp
    layout = replace(run.layout, pp=pp, dp=dp, shard=dp, zero=np.asarray(zero, dtype=np.float64))
    varied = replace(run, layout=layout, data=replace(run.data, micro_batch=np.asarray(batch)))
    return assemble(training_work(varied, None), run.cluster, PricingSection())


@pytest.fixture(scope="module")
def together() -> Estimate:
    """Three axes, each of its own array dimension."""
    batch, stages, zero = np.ix_(BATCHES, STAGES, ZEROS)
    return with_layout(run_of(), batch, stages, zero)


def test_verdict_bottleneck_and_peak_have_the_axes_of_the_plans(together: Estimate) -> None:
    verdicts, kinds, peaks = together.verdicts, together.bottleneck.kinds, together.memory.peaks
    for batch, stages, zero in np.ndindex(SHAPE):
        alone = with_layout(run_of(), BATCHES[batch], STAGES[stages], ZEROS[zero])
        place = (batch, stages, zero)
        assert verdicts.words[np.broadcast_to(verdicts.positions, SHAPE)[place]] is alone.verdict
        assert kinds.words[np.broadcast_to(kinds.positions, SHAPE)[place]] == alone.bottleneck.kind
        shown = peaks.words[np.broadcast_to(peaks.positions, SHAPE)[place]]
        assert shown.partition(", on the ")[0] == alone.memory.peak.partition(", on the ")[0]
        assert together.memory.fits is not None
        assert np.broadcast_to(together.memory.fits, SHAPE)[place] == alone.fits
    assert {Verdict.DOES_NOT_FIT, Verdict.FITS} <= {verdicts.words[found] for found in verdicts.positions.flat}


def test_several_plans_have_no_single_verdict(together: Estimate) -> None:
    with pytest.raises(ValueError, match="size 1"):
        _ = together.verdict
