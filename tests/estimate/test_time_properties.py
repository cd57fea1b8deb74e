"""What holds for the time of every training plan that may be, and for one estimate of many plans at once."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from plans import TRAINING, plan_of

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, assemble, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.plan import Plan, PricingSection
from capacity_tui.engine.verdict import Verdict

Data = dict[str, dict[str, object]]

# Dense, small, encoder, encoder-decoder, routed, latent attention, sliding windows.
MODELS = ("llama-3-8b", "pythia-70m", "bert-large", "t5-11b", "qwen3-30b-a3b", "deepseek-v3", "gemma-3-27b")
HARDWARE = ("h100-sxm-80gb", "a100-sxm-80gb", "l40s", "mi300x", "tpu-v5e", "cpu-8c-3.5ghz-baseline")
FRAMEWORKS = (None, "megatron", "fsdp", "deepspeed", "unsloth", "torchtitan", "maxtext")
ROUNDING = 1e-9  # Rounding of sums over many operators

# Each kernel waits for its launch, and gradients take as long as everything else.
LAUNCHES_AND_GRADIENTS: Data = {
    "model": {"name": "qwen3-30b-a3b"},
    "hardware": {"name": "l40s", "devices": 8},
    "training": {"seq_len": 2048, "micro_batch": 4, "global_batch": 32, "framework": "unsloth"},
    "parallelism": {"dp": 8, "zero": 1},
}

# So few tokens that each expert has a few rows in a tile that is otherwise empty.
FEW_TOKENS_AN_EXPERT: Data = {
    "model": {"name": "deepseek-v3"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 1},
    "training": {"seq_len": 64, "micro_batch": 1, "global_batch": 1, "precision": "fp32"},
    "parallelism": {"dp": 1, "zero": 0},
}

BATCH = ("training.micro_batch", "training.global_batch")


@st.composite
def plans(draw: st.DrawFn) -> Data:
    """Any training plan of a transformer whose layout is possible."""

    def one(*values: object) -> object:
        return draw(st.sampled_from(values))

    tp, pp, cp, dp = (int(str(one(1, 1, 2, 4))) for _ in range(4))
    micro_batch = draw(st.integers(1, 16))
    training = {
        "seq_len": one(64, 128, 1024, 4096, 16384),
        "micro_batch": micro_batch,
        "global_batch": micro_batch * dp * draw(st.integers(1, 8)),
        "framework": one(*FRAMEWORKS),
        "precision": one("fp32", "tf32", "fp16", "bf16", "fp8"),
        "checkpointing": one("none", "selective", "selective-ops", "mlp", "every-2", "full"),
        "optimizer": one("adamw", "adamw8bit", "adafactor", "sgd", "lion", "muon"),
        "attention": one("flash", "eager"),
        "compile": one(False, True),
    }
    parallelism = {
        "dp": dp,
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "ep": one(1, 2),
        "zero": draw(st.integers(0, 3)),
        "offload": one("none", "none", "optimizer", "parameters"),
    }
    hardware = {"name": one(*HARDWARE), "devices": tp * pp * cp * dp, "per_node": one(2, 8)}
    return {
        "model": {"name": one(*MODELS)},
        "hardware": hardware,
        "training": training,
        "parallelism": parallelism,
        "pricing": {"usd_per_hour": draw(st.floats(0.0, 100.0))},
    }


def estimated(plan: Data) -> Estimate:
    try:
        return estimate_plan(Plan.model_validate({"task": "train", **plan})).estimate
    except CapacityError:
        assume(False)
        raise


def seconds(plan: Data) -> float:
    return float(estimated(plan).computation.step_seconds.value)


def changed(plan: Data, path: str, value: object) -> Data:
    copy = deepcopy(plan)
    section, name = path.split(".")
    copy[section][name] = value
    return copy


def doubled(plan: Data, *paths: str) -> Data:
    for path in paths:
        section, name = path.split(".")
        plan = changed(plan, path, 2 * int(str(plan[section][name])))
    return plan


def no_faster(slower: float, faster: float) -> bool:
    return slower >= faster * (1.0 - ROUNDING)


@settings(max_examples=60, deadline=None)
@given(plans())
def test_figures_of_a_step_agree_with_each_other(plan: Data) -> None:
    found = estimated({**plan, "training": {**plan["training"], "steps": 100}})
    computation = found.computation
    step = float(computation.step_seconds.value)
    assert 0.0 < step < np.inf
    assert min(float(part) for part in computation.parts.values()) >= 0.0
    assert sum(float(part) for part in computation.parts.values()) == pytest.approx(step)
    assert 0.0 < float(computation.mfu) <= 1.0
    assert found.cost.usd == pytest.approx(100 * step / 3600 * float(str(plan["pricing"]["usd_per_hour"])))
    assert found.energy.kwh is None or 0.0 <= float(found.energy.kwh) < np.inf
    assert float(computation.step_seconds.low) <= step <= float(computation.step_seconds.high)


@settings(max_examples=60, deadline=None)
@given(plans())
@example(LAUNCHES_AND_GRADIENTS)
@example(FEW_TOKENS_AN_EXPERT)
def test_more_work_never_takes_less_time(plan: Data) -> None:
    step = seconds(plan)
    assert no_faster(seconds(doubled(plan, *BATCH)), step), "twice the micro-batch"
    assert no_faster(seconds(doubled(plan, "training.global_batch")), step), "twice the batch"
    assert no_faster(seconds(doubled(plan, "training.seq_len")), step), "twice the sequence"
    layers = estimated(plan).model.parameters
    deeper = {**plan, "model": {**plan["model"], "spec": {"layers": 128}}}
    assert estimated(deeper).model.parameters < layers or no_faster(seconds(deeper), step), "more layers"


@settings(max_examples=60, deadline=None)
@given(plans())
def test_recomputing_never_makes_a_step_shorter(plan: Data) -> None:
    nothing, everything = (seconds(changed(plan, "training.checkpointing", kind)) for kind in ("none", "full"))
    assert no_faster(everything, seconds(plan))
    assert no_faster(seconds(plan), nothing)


@settings(max_examples=60, deadline=None)
@given(plans())
def test_faster_memory_and_links_never_make_a_step_longer(plan: Data) -> None:
    step = seconds(plan)
    for column in ("bandwidth_gbs", "link_gbs", "node_gbs"):
        fast = {**plan, "hardware": {**plan["hardware"], "spec": {column: 50_000.0}}}
        assert no_faster(step, seconds(fast)), column


@settings(max_examples=60, deadline=None)
@given(plans())
def test_the_narrow_type_is_no_slower_than_the_wide_one(plan: Data) -> None:
    wide, narrow = (seconds(changed(plan, "training.precision", name)) for name in ("bf16", "fp8"))
    assert no_faster(wide, narrow)


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
