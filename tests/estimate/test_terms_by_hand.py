"""The terms of an estimate against figures worked out with a pencil."""

from __future__ import annotations

import numpy as np
import pytest
from plans import SERVING, TRAINING, plan_of

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.estimate.estimate import work_of
from capacity_tui.engine.estimate.money import job_kwh
from capacity_tui.engine.estimate.result import Verdict
from capacity_tui.engine.estimate.serving import decode_pass, serving_memory, serving_run
from capacity_tui.engine.estimate.serving.operators import pass_operators, prefill_pass
from capacity_tui.engine.estimate.serving.speed import expert_parallel_collective, tensor_parallel_collective
from capacity_tui.engine.estimate.timing.collectives import all_gather_seconds
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.estimate.transformer.activations import feed_forward_elements
from capacity_tui.engine.estimate.transformer.memory_phases import training_memory

# Llama 3 8B and Mixtral 8x7B: layers, width, feed-forward, width of keys and values of a token.
LAYERS, HIDDEN, FFN, KEYS_AND_VALUES = 32, 4096, 14336, 2 * 8 * 128
LLAMA_8B, LLAMA_8B_LAYER, LLAMA_2_7B = 8_030_261_248, 218_112_000, 6_738_415_616


def resolved(base, **changes):
    return resolve_plan(
        plan_of(base, {path.replace("__", "."): value for path, value in changes.items()}), load_catalog()
    )


def run_of(**changes):
    found = resolved(TRAINING, **changes)
    return transformer_run(found.plan, found.shape, found.cluster, load_catalog())


def work(**changes):
    return work_of(resolved(TRAINING, **changes), load_catalog())


def collective(name, **changes):
    return next(each for each in work(**changes).collectives if each.name == name)


def seconds(found):
    return float(found.seconds * found.count)


def operator(name, **changes):
    return next(each for each in work(**changes).operators if each.name == name)


def serving(**changes):
    found = resolved(SERVING, **changes)
    return serving_run(found.plan, found.shape, found.cluster, load_catalog())


def estimated(base, **changes):
    return estimate_plan(plan_of(base, {path.replace("__", "."): value for path, value in changes.items()})).estimate


class TestCollectives:
    def test_tensor_parallelism_adds_up_activations_four_times_a_layer_and_six_with_recomputation(self):
        plain = collective("all-reduce of activations", parallelism__tp=8)
        again = collective("all-reduce of activations", parallelism__tp=8, training__checkpointing="full")
        assert float(plain.count) == 4 * LAYERS
        assert float(again.count) == 6 * LAYERS
        assert float(plain.bytes) == 8192 * HIDDEN * 2

    def test_sharded_parameters_are_gathered_forward_and_backward_and_their_gradients_scattered(self):
        run = run_of(parallelism__zero=3)
        forward = collective("gather sharded parameters", parallelism__zero=3)
        backward = collective("gather and reduce in the backward pass", parallelism__zero=3)
        assert float(forward.bytes) == float(backward.bytes) == pytest.approx(2 * LLAMA_8B, rel=1e-4)
        gather = all_gather_seconds(forward.bytes / LAYERS, 64.0, 1.0, run.cluster)
        scatter = all_gather_seconds(2 * forward.bytes / LAYERS, 64.0, 1.0, run.cluster)  # gradients in fp32
        moved = sum(float(found.seconds * found.count) for found in (forward, backward))
        assert moved == pytest.approx(LAYERS * float(2 * gather + scatter))

    def test_replicated_gradients_are_added_up_once_a_step(self):
        found = collective("reduce gradients", parallelism__zero=0, training__global_batch=512)
        assert found.per_step
        assert float(found.count) == 1
        assert float(found.bytes) == pytest.approx(4 * LLAMA_8B, rel=1e-4)

    def test_tokens_travel_to_their_experts_and_back_in_both_directions(self):
        found = collective("all-to-all of tokens", model__name="mixtral-8x7b", parallelism__ep=8)
        assert float(found.count) == 4 * LAYERS
        assert float(found.bytes) == 8192 * 2 * HIDDEN * 2  # each token goes to two experts

    def test_context_parallel_keys_and_values_go_around_and_come_back_with_gradients(self):
        forward = collective("exchange of keys and values", parallelism__cp=4)
        backward = collective("exchange of keys, values and gradients", parallelism__cp=4)
        assert float(forward.count) == float(backward.count) == LAYERS
        assert float(forward.bytes) == 8192 * KEYS_AND_VALUES * 2
        assert float(backward.bytes) == 2 * float(forward.bytes)
        assert float(forward.seconds) > float(forward.bytes) * 3 / 4 / 450e9  # NVLink: 450 GB/s each way

    def test_stages_hand_activations_on_and_gradients_back(self):
        found = collective("activations between stages", parallelism__pp=4)
        assert float(found.count) == 2
        assert float(found.bytes) == 8192 * HIDDEN * 2

    @pytest.mark.parametrize(
        "layout", [{"tp": 8}, {"zero": 3}, {"zero": 0}, {"cp": 8}, {"pp": 4}, {"tp": 2, "pp": 2, "cp": 2}], ids=str
    )
    def test_no_collective_is_faster_than_its_wires(self, layout):
        changes = {f"parallelism__{name}": value for name, value in layout.items()}
        cluster = run_of(**changes).cluster
        fastest = max(float(cluster.device.link_bandwidth), 8 * float(cluster.node_bandwidth))
        for each in work(**changes).collectives:
            assert float(each.seconds) >= float(each.bytes) / 2 / fastest or float(each.seconds) == 0.0, each.name


class TestKernels:
    @pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b"])
    def test_no_kernel_is_faster_than_the_datasheet(self, model):
        device = run_of(model__name=model).cluster.device
        for each in work(model__name=model).operators:
            assert float(each.bandwidth) <= float(device.bandwidth), each.name
            assert float(each.rate) <= max(device.peaks.values()), each.name

    def test_a_step_multiplies_six_flops_for_each_weight_and_token(self):
        """Twice forward, four times backward; the head belongs to the last stage."""
        operators = [each for each in work().operators if each.part == "compute"]
        flops = sum(float(np.asarray(each.flops * each.count)) for each in operators)
        assert flops == pytest.approx(6 * 8192 * (LAYERS * LLAMA_8B_LAYER + 128256 * HIDDEN), rel=1e-3)

    def test_causal_attention_reads_half_the_sequence_and_computes_two_and_a_half_times_more_backward(self):
        forward, backward = operator("attention"), operator("attention, backward")
        assert float(forward.flops) == pytest.approx(2 * 2 * 8192 * 8192 / 2 * HIDDEN, rel=1e-3)
        assert float(backward.flops) == pytest.approx(2.5 * float(forward.flops))

    def test_full_checkpointing_runs_every_layer_forward_again(self):
        again = [each for each in work(training__checkpointing="full").operators if each.phase == "recompute"]
        flops = sum(float(np.asarray(each.flops * each.count)) for each in again if each.part == "compute")
        assert flops == pytest.approx(2 * 8192 * LAYERS * LLAMA_8B_LAYER, rel=1e-3)

    def test_adamw_reads_and_writes_thirty_bytes_for_each_parameter_of_its_shard(self):
        """Two states and the master copy read and written, the gradient read, the bf16 copy written: 16 + 8 + 4 + 2."""
        found = operator("optimizer")
        assert float(np.asarray(found.bytes)) == pytest.approx(30 * LLAMA_8B / 64, rel=1e-3)
        whole = operator("optimizer", parallelism__zero=0)
        assert float(np.asarray(whole.bytes)) == pytest.approx(30 * LLAMA_8B, rel=1e-3)

    def test_a_full_optimizer_step_takes_as_long_as_its_traffic(self):
        """8.03e9 parameters x 30 B at 3.35 TB/s are 72 ms at the least, and at half of that bandwidth 144 ms."""
        seconds = float(estimated(TRAINING, parallelism__zero=0).computation.parts["optimizer"])
        assert 0.072 < seconds < 0.2


class TestTrainingMemory:
    def test_a_parameter_keeps_eighteen_bytes_and_shares_twelve_with_zero_1(self):
        """Weight 2, gradient 4, and 12 of AdamW: two states and the fp32 copy."""
        alone = estimated(TRAINING, parallelism__zero=0).memory.parts
        shared = estimated(TRAINING, parallelism__zero=1).memory.parts
        everything = estimated(TRAINING, parallelism__zero=3).memory.parts
        for part, each in {"weights": 2, "gradients": 4, "optimizer": 12}.items():
            assert float(alone[part]) == pytest.approx(each * LLAMA_8B, rel=1e-3)
            assert float(everything[part]) == pytest.approx(each * LLAMA_8B / 64, rel=1e-3)
        assert float(shared["optimizer"]) == pytest.approx(12 * LLAMA_8B / 64, rel=1e-3)
        assert float(shared["weights"]) == pytest.approx(2 * LLAMA_8B, rel=1e-3)

    def test_a_token_keeps_what_two_experts_keep(self):
        run = run_of(model__name="mixtral-8x7b")
        kept = float(run.software.saved_activation)  # gate, up and product in widths of the expert
        into_experts = 1  # a token's weight is multiplied inside the expert, so that what comes out is not kept
        by_hand = 2 * (kept * FFN + into_experts * HIDDEN) + 2 * 8
        assert float(feed_forward_elements(run, run.recompute)) == pytest.approx(by_hand)

    def test_the_first_of_four_stages_holds_four_micro_batches(self):
        deep = {"parallelism__pp": 4, "training__global_batch": 512}
        stages = training_memory(run_of(**deep)).stages
        activations = {name: float(np.asarray(stage.phases["loss"]["activations"])) for name, stage in stages.items()}
        one = float(np.asarray(training_memory(run_of()).stages["first"].phases["loss"]["activations"]))
        # A fourth of the layers, for four micro-batches: as much as one micro-batch through all layers.
        assert activations["first"] == pytest.approx(one, rel=0.05)
        assert activations["last"] < 0.5 * activations["first"]

    def test_logits_of_a_large_vocabulary_are_kept_with_their_gradients(self):
        logits = float(estimated(TRAINING).memory.parts["logits"])
        assert 8192 * 128256 * 4 <= logits <= 8192 * 128256 * 12


class TestServing:
    def test_decode_reads_every_cached_key_and_value_once(self):
        """Llama 2 7B keeps 2 x 32 layers x 4096 x 2 B = 512 KiB a token."""
        run = serving()
        read = float(np.asarray(decode_pass(run, 8.0).cache_read))
        assert read == pytest.approx(8 * float(run.decode_context) * 2 * 32 * 4096 * 2)
        kernels = {each.name: each for each in pass_operators(run, decode_pass(run, 8.0))}
        assert float(np.asarray(kernels["attention"].bytes)) == pytest.approx(read)

    def test_decode_reads_every_weight_but_the_embedding_once(self):
        run = serving()
        kernels = pass_operators(run, decode_pass(run, 1.0))
        read = sum(float(np.asarray(each.bytes * each.count)) for each in kernels if each.part == "compute")
        assert read == pytest.approx(2 * (LLAMA_2_7B - 32000 * 4096), rel=0.01)

    def test_prompts_multiply_two_flops_for_each_weight_and_token(self):
        run = serving()
        kernels = pass_operators(run, prefill_pass(run, 1024.0))
        flops = sum(float(np.asarray(each.flops * each.count)) for each in kernels if each.part == "compute")
        assert flops == pytest.approx(2 * 1024 * (LLAMA_2_7B - 2 * 32000 * 4096), rel=0.01)

    def test_no_token_is_faster_than_memory(self):
        """13.2 GB of weights at 3.35 TB/s: 254 tokens a second at the most."""
        speed = estimated(SERVING, inference__batch=1, inference__prompt_tokens=1).computation.infer
        assert 100 < float(speed.decode_tokens_per_second.value) < 254

    def test_memory_is_weights_and_a_cache_of_full_length(self):
        parts = serving_memory(serving()).parts
        assert float(np.asarray(parts["weights"])) == pytest.approx(2 * LLAMA_2_7B, rel=1e-3)
        assert float(np.asarray(parts["kv_cache"])) == pytest.approx(8 * (1024 + 256) * 524288, rel=1e-3)

    def test_two_stages_and_two_tensor_parallel_devices_share_weights_and_cache(self):
        alone = serving_memory(serving()).parts
        for layout in ({"parallelism__tp": 2}, {"parallelism__pp": 2}):
            split = serving_memory(serving(hardware__devices=2, **layout)).parts
            assert float(np.asarray(split["kv_cache"])) == pytest.approx(float(np.asarray(alone["kv_cache"])) / 2)
            assert float(np.asarray(split["weights"])) == pytest.approx(
                float(np.asarray(alone["weights"])) / 2, rel=0.02
            )

    def test_every_layer_adds_up_twice_and_mixtures_send_twice(self):
        dense = serving(hardware__devices=4, parallelism__tp=4)
        device = dense.cluster.device
        hop, share = float(device.efficiency.collective_hop_seconds), float(device.efficiency.collective_share)
        link = float(device.link_bandwidth)
        payload = 8 * 4096 * 2 * 3 / (link * share)
        # One shot among four: hops and three other payloads; 32 layers, two each.
        assert seconds(tensor_parallel_collective(dense, 8.0)) == pytest.approx(64 * (3.8 * hop + payload), rel=1e-3)
        mixture = serving(model__name="mixtral-8x7b", hardware__devices=8, parallelism__ep=8, parallelism__tp=1)
        wire = 1e6 * 2 * HIDDEN * 2 * 7 / 8 / (link * share)
        assert seconds(expert_parallel_collective(mixture, 1e6)) == pytest.approx(64 * wire, rel=0.05)


class TestMoneyAndPower:
    def test_a_job_costs_its_hours_and_uses_its_watts(self):
        found = estimated(TRAINING, training__steps=1000, pricing__usd_per_hour=128.0, pricing__usd_per_kwh=0.2)
        hours = 1000 * float(found.computation.step_seconds.value) / 3600
        assert float(found.cost.usd) == pytest.approx(128.0 * hours)
        tokens = 1000 * 128 * 8192
        assert float(found.cost.usd_per_million_tokens) == pytest.approx(float(found.cost.usd) / tokens * 1e6)
        assert float(found.energy.kwh) == pytest.approx(float(found.energy.watts_average) * hours / 1000)
        assert float(found.energy.usd) == pytest.approx(0.2 * float(found.energy.kwh))

    def test_a_kilowatt_for_an_hour_is_a_kilowatt_hour(self):
        assert float(job_kwh(1000.0, 3600.0)) == pytest.approx(1.0)

    def test_accelerators_that_train_draw_most_of_their_limit(self):
        """Devices that train draw 70 to 100 % of their limit, those that decode one sequence less."""
        trains = float(estimated(TRAINING).energy.watts_average) / (64 * 700)
        decodes = float(estimated(SERVING, inference__batch=1).energy.watts_average) / 700
        assert 0.7 < trains <= 1.0
        assert 0.1 < decodes < trains

    def test_a_spot_job_costs_its_hours_and_some_for_interruptions(self):
        spot = {"hardware__name": "aws-g6e-48xlarge", "hardware__devices": 8, "model__name": "llama-3.2-1b"}
        found = estimated(TRAINING, training__steps=1000, **spot)
        hours = 1000 * float(found.computation.step_seconds.value) / 3600
        price = load_catalog().instances["aws-g6e-48xlarge"].spot_usd_per_hour
        assert 1.0 < float(found.cost.usd_spot) / (hours * price) < 1.5


class TestVerdict:
    @pytest.mark.parametrize(
        ("place", "verdict"),
        [(1.1, Verdict.FITS), (0.9, Verdict.TIGHT), (0.1, Verdict.DOES_NOT_FIT), (-0.1, Verdict.DOES_NOT_FIT)],
    )
    def test_a_run_fits_where_all_its_range_does(self, place, verdict):
        """The device has what lies between the lower end of the range (0) and the upper one (1)."""
        reserved = estimated(TRAINING, parallelism__zero=3).memory.reserved_bytes
        capacity = float(reserved.low) + place * float(reserved.high - reserved.low)
        found = estimated(TRAINING, parallelism__zero=3, hardware__spec={"memory_mib": int(capacity / 2**20)})
        assert found.verdict is verdict
