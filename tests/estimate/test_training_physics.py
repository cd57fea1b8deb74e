"""Training: what makes a step slower or larger must do so in the estimate, whatever the constants."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan, recording, resolve_plan
from capacity_tui.engine.estimate.timing import gemm_rate
from capacity_tui.engine.estimate.timing.collectives import crossing_share, one_pass_seconds
from capacity_tui.engine.estimate.timing.roofline import alignment, padded
from capacity_tui.engine.estimate.timing.schedule import pipeline_bubble, step_time
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.estimate.transformer.activations import micro_batches_in_flight
from capacity_tui.engine.estimate.transformer.memory_phases import training_memory
from capacity_tui.engine.estimate.transformer.memory_terms import PHASES
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.numeric import largest_label
from capacity_tui.engine.plan import Plan

BASE = {
    "task": "train",
    "model": {"name": "llama-3-8b"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 64, "per_node": 8, "interconnect": "ib-ndr"},
    "training": {"seq_len": 8192, "micro_batch": 1, "global_batch": 128, "framework": "megatron"},
    "parallelism": {"tp": 1, "pp": 1, "zero": 1},
}


def plan(**changes: object) -> Plan:
    """Return the base plan with other values at dotted paths (``training__seq_len=4096``)."""
    data = {name: dict(section) if isinstance(section, dict) else section for name, section in BASE.items()}
    for path, value in changes.items():
        section, name = path.split("__")
        data[section][name] = value
    return Plan.model_validate(data)


def estimate(**changes: object) -> Estimate:
    return estimate_plan(plan(**changes)).estimate


def seconds(**changes: object) -> float:
    return float(estimate(**changes).computation.step_seconds.value)


def gigabytes(**changes: object) -> float:
    return float(estimate(**changes).memory.per_device_bytes.value) / 1e9


def mfu(**changes: object) -> float:
    return float(estimate(**changes).computation.mfu)


def run_of(**changes: object) -> TransformerRun:
    resolved = resolve_plan(plan(**changes), load_catalog())
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())


class TestDirections:
    def test_tensor_parallel_across_nodes_is_slower_than_inside(self) -> None:
        inside = seconds(parallelism__tp=8, hardware__per_node=8)
        across = seconds(parallelism__tp=8, hardware__per_node=4)
        assert across > 1.2 * inside

    def test_a_micro_batch_of_one_wastes_a_large_device_on_a_small_model(self) -> None:
        small = {"model__name": "gpt2", "training__seq_len": 1024, "training__global_batch": 4096}
        assert mfu(**small, training__micro_batch=1) < 0.7 * mfu(**small, training__micro_batch=32)

    def test_long_sequences_lose_model_flops_utilisation(self) -> None:
        short = mfu(training__seq_len=4096, training__global_batch=512)
        assert mfu(training__seq_len=65536, training__global_batch=64) < short

    def test_full_checkpointing_costs_about_a_third_more(self) -> None:
        ratio = seconds(training__checkpointing="full") / seconds(training__checkpointing="none")
        assert 1.2 < ratio < 1.45

    def test_checkpointing_some_layers_lies_between_none_and_all(self) -> None:
        kinds = ("none", "every-4", "every-2", "full")
        times = [seconds(training__checkpointing=kind) for kind in kinds]
        bytes_ = [gigabytes(training__checkpointing=kind) for kind in kinds]
        assert times == sorted(times)
        assert bytes_ == sorted(bytes_, reverse=True)

    def test_a_power_limit_slows_matrix_products(self) -> None:
        assert seconds(hardware__spec={"tdp_w": 400}) > 1.1 * seconds()

    def test_a_slower_network_never_helps(self) -> None:
        times = [seconds(parallelism__zero=3, hardware__interconnect=link) for link in ("ib-ndr", "ib-hdr", "eth-10")]
        assert times == sorted(times)

    def test_eager_attention_is_slower_and_larger_than_flash(self) -> None:
        assert seconds(training__attention="eager") > seconds(training__attention="flash")
        assert gigabytes(training__attention="eager") > gigabytes(training__attention="flash")

    def test_fp8_is_faster_but_not_twice_as_fast(self) -> None:
        ratio = seconds(training__precision="bf16") / seconds(training__precision="fp8")
        assert 1.1 < ratio < 1.8

    def test_dimensions_off_the_matrix_units_grid_are_slower(self) -> None:
        bare = {"layers": 24, "hidden": 2048, "ffn": 8192, "vocab": 50304, "gated": False}
        even = seconds(model__name="transformer_decoder", model__spec={**bare, "heads": 16, "head_dim": 128})
        odd = seconds(model__name="transformer_decoder", model__spec={**bare, "heads": 16, "head_dim": 127})
        assert odd > even

    def test_more_micro_batches_shrink_the_bubble(self) -> None:
        few = estimate(parallelism__pp=8, training__global_batch=64).computation
        many = estimate(parallelism__pp=8, training__global_batch=512).computation
        share = [float(each.parts["pipeline_bubble"]) / float(each.step_seconds.value) for each in (few, many)]
        assert share[1] < 0.7 * share[0]

    def test_interleaving_shrinks_the_bubble_and_needs_more_memory(self) -> None:
        assert seconds(parallelism__pp=8, parallelism__interleave=4) < seconds(parallelism__pp=8)
        assert gigabytes(parallelism__pp=8, parallelism__interleave=4) > gigabytes(parallelism__pp=8)

    @pytest.mark.parametrize("stage", [0, 1, 2])
    def test_every_zero_stage_needs_less_memory(self, stage: int) -> None:
        large = {"model__name": "llama-3-70b"}
        assert gigabytes(**large, parallelism__zero=stage + 1) < gigabytes(**large, parallelism__zero=stage)

    @pytest.mark.parametrize("zero", [0, 1, 2, 3])
    def test_more_devices_never_need_more_memory_each(self, zero: int) -> None:
        found = [
            gigabytes(parallelism__zero=zero, hardware__devices=devices, training__global_batch=devices * 2)
            for devices in (8, 16, 64, 256)
        ]
        assert all(later <= earlier * 1.0001 for earlier, later in pairwise(found))

    def test_adapters_need_less_memory_and_a_quantized_base_less_again(self) -> None:
        single = {"hardware__devices": 1, "training__global_batch": 1, "training__seq_len": 1024}
        full = gigabytes(**single)
        lora = gigabytes(**single, training__adapter={"kind": "lora"})
        qlora = gigabytes(**single, training__adapter={"kind": "qlora"})
        assert qlora < lora < 0.5 * full

    def test_offloading_moves_bytes_to_the_host(self) -> None:
        here, there = estimate().memory, estimate(parallelism__offload="optimizer").memory
        assert float(there.per_device_bytes.value) < float(here.per_device_bytes.value)
        assert float(there.host_bytes) > 0.0


class TestSums:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"parallelism__tp": 4, "parallelism__pp": 4},
            {"parallelism__zero": 3, "training__checkpointing": "full"},
            {"model__name": "mixtral-8x7b", "parallelism__ep": 8},
        ],
    )
    def test_parts_sum_to_the_total(self, changes: dict[str, object]) -> None:
        found = estimate(**changes)
        assert sum(map(float, found.computation.parts.values())) == pytest.approx(
            float(found.computation.step_seconds.value)
        )
        assert sum(map(float, found.memory.parts.values())) == pytest.approx(float(found.memory.reserved_bytes.value))
        assert all(float(value) >= 0.0 for value in found.computation.parts.values())
        assert all(float(value) >= 0.0 for value in found.memory.parts.values())

    def test_the_peak_is_the_largest_of_its_phases_and_is_named(self) -> None:
        memory = training_memory(run_of(parallelism__pp=4))
        largest = max(float(value) for value in memory.timeline.values())
        assert sum(map(float, memory.parts.values())) == pytest.approx(largest)
        peak = largest_label(memory.places).single
        assert any(words in peak for words in PHASES.values())
        assert "pipeline stage" in peak

    def test_stages_with_embedding_and_head_take_fewer_layers_where_they_do_not_divide(self) -> None:
        run = run_of(model__name="llama-3.1-405b", parallelism__pp=8, parallelism__tp=8)
        assert float(run.stages.first) == float(run.stages.last) == 15
        assert float(run.stages.fullest) == 16
        assert set(training_memory(run).stages) == {"first", "second", "last"}
        assert float(run_of(parallelism__pp=4).stages.first) == 8

    def test_a_gradient_buffer_stays_during_the_only_forward_pass(self) -> None:
        once = {"hardware__devices": 8, "training__global_batch": 8}
        megatron = training_memory(run_of(**once)).stages["first"].phases["loss"]
        deepspeed = training_memory(run_of(**once, training__framework="deepspeed")).stages["first"].phases["loss"]
        assert float(megatron["gradients"]) > 0.0
        assert float(deepspeed["gradients"]) == 0.0

    def test_a_flat_gradient_buffer_is_held_beside_the_activations(self) -> None:
        run = run_of(training__framework="deepspeed", training__gradients="bf16")
        phases = training_memory(run).stages["first"].phases
        assert float(phases["loss"]["buffers"]) >= float(phases["optimizer"]["buffers"]) > 0.0

    def test_every_equation_tells_its_inputs(self) -> None:
        with recording() as record:
            estimate()
        assert {"gemm_rate", "sharded_bytes", "activation_bytes"} <= {each.name for each in record}


LAYOUTS = {
    "tp": (1.0, 2.0, 4.0, 8.0),
    "pp": (1.0, 2.0, 4.0, 8.0),
    "micro_batch": (1.0, 2.0, 4.0),
    "zero": (0.0, 1.0, 2.0, 3.0),
    "interleave": (1.0, 2.0),
}


def laid_out(run: TransformerRun, values: dict[str, object], full: object) -> TransformerRun:
    dp = 64.0 / (np.asarray(values["tp"]) * np.asarray(values["pp"]))
    recompute = replace(run.recompute, full_layers=full)
    sizes = {name: values[name] for name in ("tp", "pp", "zero", "interleave")}
    layout = replace(run.layout, **sizes, dp=dp, shard=dp, sequence_parallel=1.0 * (values["tp"] > 1.0))
    return replace(run, layout=layout, data=replace(run.data, micro_batch=values["micro_batch"]), recompute=recompute)


def both(run: TransformerRun) -> tuple[object, object]:
    work = training_work(run, None)
    time = step_time(work)
    return time.seconds, training_memory(run).peak


class TestArrays:
    run = run_of()

    def test_a_hundred_thousand_layouts_are_estimated_in_one_call(self) -> None:
        chance = np.random.default_rng(0)
        values = {name: chance.choice(np.array(choices), 100_000) for name, choices in LAYOUTS.items()}
        time, memory = both(laid_out(self.run, values, chance.choice([0.0, 0.5, 1.0], 100_000)))
        assert time.shape == memory.shape == (100_000,)
        assert np.all(np.isfinite(time) & (time > 0.0))
        assert np.all(np.isfinite(memory) & (memory > 0.0))

    @settings(max_examples=40, deadline=None)
    @given(st.fixed_dictionaries({name: st.sampled_from(choices) for name, choices in LAYOUTS.items()}))
    def test_one_layout_equals_its_place_in_an_array(self, values: dict[str, float]) -> None:
        others = {name: np.array([value, LAYOUTS[name][0], LAYOUTS[name][-1]]) for name, value in values.items()}
        time, memory = both(laid_out(self.run, values, 0.5))
        times, memories = both(laid_out(self.run, others, 0.5))
        assert times[0] == pytest.approx(float(time))
        assert memories[0] == pytest.approx(float(memory))


class TestRanges:
    def test_runs_like_those_measured_have_the_ranges_of_these(self) -> None:
        found = estimate(training__framework="fsdp", training__seq_len=2048, parallelism__zero=3)
        step = found.range_of("computation.step_seconds")
        assert "nearest published: hopper, fsdp, bf16" in step.basis
        assert step.beyond == ()

    def test_hardware_nobody_measured_is_named_and_has_wider_ranges(self) -> None:
        known, unknown = estimate().computation, estimate(hardware__name="l40s")
        step = unknown.computation.step_seconds
        assert float(step.high) / float(step.value) > float(known.step_seconds.high) / float(known.step_seconds.value)
        assert any("outside what was measured" in words for words in unknown.basis.assumed)

    def test_mixtures_of_experts_are_less_sure(self) -> None:
        dense, mixture = estimate().computation.step_seconds, estimate(model__name="mixtral-8x7b")
        step = mixture.computation.step_seconds
        assert float(step.high) / float(step.value) > float(dense.high) / float(dense.value)


class TestGoldens:
    """Figures a pencil gives."""

    def test_rate_of_a_product(self) -> None:
        # 64 x 64 tiles of 128 on 100 units with a quarter wave lost: 4096 / 4121; 8192 / (8192 + 100) of the ramp.
        rate = gemm_rate(8192.0, 8192.0, 8192.0, 1e15, 0.8, 100.0, 0.25, 100.0)
        assert float(rate) == pytest.approx(8e14 * (4096 / 4121) * (8192 / 8292))

    def test_alignment(self) -> None:
        assert float(alignment(128.0, 0.9, 0.2)) == 1.0
        assert float(alignment(72.0, 0.9, 0.2)) == 0.9
        assert float(alignment(108.0, 0.9, 0.2)) == 0.2
        assert float(padded(50257.0)) == 50304.0

    def test_all_gather_of_a_gigabyte_over_eight(self) -> None:
        # 7/8 GB at 200 GB/s and 30 us of latency.
        assert float(one_pass_seconds(1e9, 8.0, 2e11, 3e-5)) == pytest.approx(0.004405)

    def test_tokens_cross_to_each_node_once(self) -> None:
        # Eight copies over four nodes reach 3 (1 - (3/4)^8) = 2.6996 other nodes.
        assert float(crossing_share(4.0, 8.0)) == pytest.approx(2.69966 / 8.0, rel=1e-4)
        assert float(crossing_share(4.0, 1.0)) == pytest.approx(0.75)

    def test_bubble(self) -> None:
        # Three stages wait for one micro-batch of 2 s each, halved by two chunks; even stages.
        assert float(pipeline_bubble(4.0, 2.0, 8.0, 2.0, 2.0)) == pytest.approx(3.0)

    def test_micro_batches_in_flight(self) -> None:
        assert float(micro_batches_in_flight(4.0, 0.0, 8.0, 1.0)) == 4.0
        assert float(micro_batches_in_flight(4.0, 3.0, 8.0, 1.0)) == 1.0
        # (2 (4 - 0 - 1) + (2 - 1) 4 + 1) / 2 chunks.
        assert float(micro_batches_in_flight(4.0, 0.0, 8.0, 2.0)) == 5.5

    def test_states_of_an_8b_model_on_one_device(self) -> None:
        # bf16 weights, fp32 gradients, fp32 copy and two fp32 states: 2 + 4 + 4 + 8 bytes for 8.03e9 parameters.
        parts = training_memory(run_of(hardware__devices=1, training__global_batch=2)).parts
        count = 8_030_261_248
        assert float(parts["weights"]) == pytest.approx(2 * count, rel=1e-3)
        assert float(parts["gradients"]) == pytest.approx(4 * count, rel=1e-3)
        assert float(parts["optimizer"]) == pytest.approx(12 * count, rel=1e-3)

    def test_a_published_step_is_met(self) -> None:
        # MosaicML's table: MPT-7B on 8 A100 80 GB, 96 sequences of 2048 tokens a step in 5.295 s.
        spec = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 16384, "gated": False, "vocab": 50368}
        found = seconds(
            model__name="transformer_decoder",
            model__spec=spec,
            hardware__name="a100-sxm-80gb",
            hardware__devices=8,
            training__seq_len=2048,
            training__micro_batch=6,
            training__global_batch=96,
            training__framework="fsdp",
            parallelism__zero=3,
        )
        assert found == pytest.approx(5.295, rel=0.12)


@pytest.mark.parametrize("attention", ["flash", "eager"])
def test_a_model_without_attention_trains_on_documents_as_on_whole_sequences(attention: str) -> None:
    chosen = {"model__name": "mamba-2.8b", "training__attention": attention, "training__framework": None}
    steps = [
        estimate_plan(plan(training__document_tokens=document, **chosen)).estimate.computation.step_seconds.value
        for document in (None, 293)
    ]
    assert np.isfinite(steps).all()
    assert steps[0] == pytest.approx(steps[1], rel=0.01)


@pytest.mark.parametrize("model", ["falcon-h1-34b", "lfm2-1.2b"])
def test_what_mixes_tokens_beside_attention_is_multiplied_too(model: str) -> None:
    """At the peak of its device, a model with state spaces or convolutions is as busy with its FLOPs as another."""

    def utilization(model: str) -> float:
        training = {"seq_len": 1024, "micro_batch": 1, "global_batch": 1, "precision": "fp32"}
        hardware = {"name": "rpi4-bcm2711", "devices": 1, "efficiency": 1.0}
        document = {"task": "train", "model": {"name": model}, "training": training, "hardware": hardware}
        return float(estimate_plan(Plan.model_validate(document), None, load_catalog()).estimate.computation.mfu)

    assert utilization(model) == pytest.approx(utilization("llama-3.1-8b"), rel=0.03)


def test_gradients_that_are_reduced_once_a_step_cross_the_link_once() -> None:
    """Of 16 micro-batches on devices joined by a slow link, 15 gather parameters alone."""
    seconds = {}
    for framework in ("transformers", "fsdp"):
        plan = Plan.model_validate(
            {
                "task": "train",
                "model": {"name": "llama-3-8b"},
                "hardware": {"name": "l40s", "devices": 8},
                "training": {"framework": framework, "global_batch": 128, "micro_batch": 1, "seq_len": 1024},
                "parallelism": {"zero": 3},
            }
        )
        seconds[framework] = float(estimate_plan(plan).estimate.computation.parts["data_parallel"])
    assert seconds["transformers"] < 0.8 * seconds["fsdp"]
