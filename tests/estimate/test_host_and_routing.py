"""What waits on the host, and how unevenly tokens spread over experts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer
from tests.plans import plan_of

NODE = {
    "task": "train",
    "model.name": "llama-3-8b",
    "hardware.name": "h100-sxm-80gb",
    "hardware.devices": 8,
    "hardware.per_node": 8,
    "training.seq_len": 8192,
    "training.micro_batch": 1,
    "training.global_batch": 8,
    "training.checkpointing": "full",
    "training.framework": "deepspeed",
    "parallelism.zero": 3,
}
MIXTURE = {
    "task": "train",
    "model.name": "qwen-3-30b-a3b",
    "hardware.name": "h100-sxm-80gb",
    "hardware.devices": 64,
    "hardware.per_node": 8,
    "training.seq_len": 4096,
    "training.micro_batch": 4,
    "training.global_batch": 512,
    "training.framework": "megatron",
    "parallelism.ep": 8,
}


def estimate(base: dict[str, object], **changes: object) -> Estimate:
    return estimate_plan(plan_of(base, {path.replace("__", "."): value for path, value in changes.items()})).estimate


def seconds(base: dict[str, object], **changes: object) -> float:
    return float(estimate(base, **changes).computation.step_seconds.value)


def part(base: dict[str, object], name: str, **changes: object) -> float:
    return float(estimate(base, **changes).computation.parts[name])


def kept(base: dict[str, object], **changes: object) -> float:
    return float(estimate(base, **changes).memory.parts["activations"])


def test_an_optimizer_on_the_host_takes_seconds_that_nothing_hides() -> None:
    offloaded = part(NODE, "optimizer", parallelism__offload="optimizer")
    assert offloaded > 20.0 * part(NODE, "optimizer")
    whole = seconds(NODE, parallelism__offload="optimizer") - seconds(NODE)
    assert whole == pytest.approx(offloaded - part(NODE, "optimizer"))


def test_devices_of_a_node_share_its_memory_and_those_of_another_node_do_not() -> None:
    alone = part(NODE, "optimizer", parallelism__offload="optimizer")
    apart = part(NODE, "optimizer", parallelism__offload="optimizer", hardware__devices=16, training__global_batch=16)
    few = part(NODE, "optimizer", parallelism__offload="optimizer", hardware__devices=4, hardware__per_node=4)
    assert apart == pytest.approx(alone / 2.0, rel=0.01)
    assert alone < few < 2.0 * alone


def test_the_link_to_the_host_does_not_bound_the_optimizer() -> None:
    slow = part(NODE, "optimizer", parallelism__offload="optimizer", hardware__spec={"host_gbs": 16})
    assert slow < 1.2 * part(NODE, "optimizer", parallelism__offload="optimizer")


def test_parameters_from_the_host_hide_behind_long_sequences_alone() -> None:
    def slower(length: int) -> float:
        given = {"training__seq_len": length, "training__optimizer": "sgd", "hardware__spec": {"host_gbs": 8}}
        return seconds(NODE, **given, parallelism__zero=0, parallelism__offload="parameters") / seconds(
            NODE, **given, parallelism__zero=0, parallelism__offload="optimizer"
        )

    assert slower(256) > slower(16384) >= 1.0


def test_activations_cross_a_slow_link_in_view_and_a_fast_one_unseen() -> None:
    def slower(link: float) -> float:
        given = {"training__checkpointing": "none", "hardware__spec": {"host_gbs": link}}
        return seconds(NODE, **given, training__activation_offload="all") / seconds(NODE, **given)

    assert slower(8) > 1.2
    assert slower(400) == pytest.approx(1.0, abs=0.02)


def test_natural_routing_costs_more_the_more_ranks_share_the_experts() -> None:
    def over_balanced(ranks: int) -> float:
        balanced = seconds(MIXTURE, parallelism__ep=ranks)
        return seconds(MIXTURE, parallelism__ep=ranks, training__routing="natural") / balanced

    assert over_balanced(1) == pytest.approx(1.0)
    assert 1.0 < over_balanced(4) < over_balanced(16) < 2.0


def test_a_recomputed_mixture_sends_its_tokens_again_and_its_experts_alone_do_not() -> None:
    none = part(MIXTURE, "expert_parallel")
    assert part(MIXTURE, "expert_parallel", training__checkpointing="mlp") > 1.2 * none
    assert part(MIXTURE, "expert_parallel", training__checkpointing="experts") <= none


@pytest.mark.parametrize("module", ["experts", "router"])
def test_modules_of_a_mixture_take_time_and_free_memory(module: str) -> None:
    assert part(MIXTURE, "compute", training__checkpointing=module) > part(MIXTURE, "compute")
    assert kept(MIXTURE, training__checkpointing=module) < kept(MIXTURE)


def test_few_tokens_an_expert_fill_its_tiles_badly() -> None:
    def share(length: int) -> float:
        return float(estimate(MIXTURE, training__seq_len=length, training__micro_batch=1).computation.mfu)

    assert share(512) < share(2048)


@pytest.mark.parametrize("hardware", ["xeon-8480", "apple-m2-ultra-76"])
@pytest.mark.parametrize("offload", ["optimizer", "parameters", "activations"])
def test_where_the_device_computes_in_the_hosts_memory_nothing_can_move_there(hardware: str, offload: str) -> None:
    one = {**NODE, "hardware.name": hardware, "hardware.devices": 1, "hardware.per_node": 1, "parallelism.zero": 0}
    moved, kept = estimate(one, parallelism__offload=offload), estimate(one)
    assert moved.memory == kept.memory
    assert moved.computation.step_seconds == kept.computation.step_seconds
    assert float(np.max(moved.memory.host_bytes)) == 0.0


def test_one_memory_stays_one_whatever_is_said_of_its_bandwidth() -> None:
    one = {**NODE, "hardware.name": "apple-m2-ultra-76", "hardware.devices": 1, "hardware.per_node": 1,
           "hardware.spec": {"bandwidth_gbs": 1600}, "parallelism.zero": 0}  # fmt: skip
    assert estimate(one, parallelism__offload="optimizer").memory == estimate(one).memory


@pytest.mark.parametrize("model", ["resnet50", "llama-3.2-1b"])
def test_offload_in_one_memory_is_told_to_be_in_vain_and_never_advised(model: str) -> None:
    data = {"model": {"name": model}, "task": "train", "hardware": {"name": "xeon-8480"}}
    asked = answer(plan_from_data({**data, "parallelism": {"offload": "optimizer"}}))
    told = [caution for caution in asked.estimate.warnings if caution.code == "ignored"]
    assert any("parallelism.offload" in caution.title for caution in told)
    advised = answer(plan_from_data(data)).estimate.recommendations
    assert not any("host memory" in each.title for each in advised)


@pytest.mark.parametrize("on_device", [0, 4, 12])
def test_weights_that_layers_share_are_read_in_each_of_them(on_device: int) -> None:
    """ALBERT stores one layer of BERT and runs it twelve times, on the device and on the host."""

    def seconds(model: str) -> float:
        sizes = {"prompt_tokens": 512, "output_tokens": 1, "batch": 32, "gpu_layers": on_device}
        data = {"task": "infer", "model": {"name": model}, "inference": sizes, "hardware": {"name": "rtx-4090"}}
        speed = estimate_plan(plan_from_data(data)).estimate.computation.infer
        assert speed is not None
        return float(speed.time_to_first_token_seconds.value)

    assert seconds("albert-base-v2") == pytest.approx(seconds("bert-base"), rel=0.02)


SERVED = {
    "task": "infer",
    "model.name": "deepseek-r1",
    "hardware.name": "rtx-4090",
    "hardware.spec": {"host_memory_gib": 768},
    "inference.weights": "q4_k_m",
    "inference.engine": "llamacpp",
    "inference.gpu_layers": 2,
}


def test_layers_on_the_host_run_as_fast_as_its_processor_reads() -> None:
    def token(**changes: object) -> float:
        return float(estimate(SERVED, **changes).computation.infer.time_per_output_token_seconds.value)

    server, desktop = (token(hardware__host=host) for host in ("epyc-9654", "ryzen-9-7950x"))
    assert 3.0 * server < desktop < token()


def test_an_optimizer_on_the_host_steps_as_fast_as_its_processor_reads() -> None:
    server, desktop = (
        part(NODE, "optimizer", parallelism__offload="optimizer", hardware__devices=1, hardware__host=host)
        for host in ("epyc-9654", "ryzen-9-7950x")
    )
    assert 3.0 * server < desktop


EXPERTS = {
    "task": "infer",
    "model.name": "gpt-oss-120b",
    "hardware.name": "rtx-3090",
    "hardware.spec": {"host_memory_gib": 768},
    "hardware.host": "ryzen-9-7950x",
    "inference.engine": "llamacpp",
    "inference.prompt_tokens": 512,
}


@given(few=st.integers(0, 36), more=st.integers(0, 36), batch=st.sampled_from([1, 8, 64]))
@settings(max_examples=15, deadline=None)
def test_experts_move_from_the_device_to_the_host_and_take_longer_there(few: int, more: int, batch: int) -> None:
    few, more = sorted((few, more))
    here, there = (
        estimate(EXPERTS, inference__host_expert_layers=layers, inference__batch=batch) for layers in (few, more)
    )
    left = here.memory.parts["weights"] - there.memory.parts["weights"]
    assert left == pytest.approx(there.memory.host_bytes - here.memory.host_bytes)
    assert left == pytest.approx((more - few) * 128 * 24.9e6 * 17 / 32, rel=0.05)
    served, slower = here.computation.infer, there.computation.infer
    assert served is not None
    assert slower is not None
    assert np.all(served.time_per_output_token_seconds.value <= slower.time_per_output_token_seconds.value)
    assert np.all(served.time_to_first_token_seconds.value <= slower.time_to_first_token_seconds.value)


@pytest.mark.parametrize(
    ("model", "hardware", "host", "layers", "weights", "published"),
    [
        # ai-maestro.online 2026: llama-bench, 3090, ubatch 512
        ("gpt-oss-120b", "rtx-3090", "ryzen-9-7950x", 26, None, 32.3),
        # r/LocalLLaMA, August 2025, with pull request 15157 of llama.cpp
        ("gpt-oss-120b", "rtx-3090", "i9-14900k", 36, None, 25.6),
        # issue 314 of KTransformers: 12 channels of DDR5-4800, 1k of context
        ("deepseek-r1", "rtx-4090", "epyc-9654", 999, "q4_k_m", 14.0),
        # issue 135 of buun-llama-cpp: 8 channels of DDR4-3200, llama.cpp as released
        ("deepseek-v4-flash", "rtx-3090", "epyc-7742", 999, "q4_k_m", 20.1),
        # pull request 755 of llmfit: an i9-10900X, 102 GB/s as here
        ("qwen3-30b-a3b", "rtx-2080", "threadripper-3970x", 36, "q4_k_m", 36.7),
    ],
)
def test_experts_on_the_host_give_tokens_as_fast_as_published(
    model: str, hardware: str, host: str, layers: int, weights: str | None, published: float
) -> None:
    changes = {"model__name": model, "hardware__name": hardware, "hardware__host": host, "inference__weights": weights}
    served = estimate(EXPERTS, inference__host_expert_layers=layers, **changes).computation.infer
    assert served is not None
    assert 1.0 / served.time_per_output_token_seconds.value == pytest.approx(published, rel=0.12)


def test_experts_of_layers_on_the_host_are_there_already_and_dense_models_have_none() -> None:
    layers = {"inference__gpu_layers": 20}
    half, same = (estimate(EXPERTS, **layers, inference__host_expert_layers=few).memory for few in (None, 16))
    assert half.host_bytes == same.host_bytes
    dense = {**EXPERTS, "model.name": "llama-3.1-8b"}
    assert estimate(dense, inference__host_expert_layers=16).memory == estimate(dense).memory


def test_experts_in_host_memory_are_told_and_limited_by_it() -> None:
    fits = estimate(EXPERTS, inference__host_expert_layers=26)
    assert fits.fits and fits.memory.in_host.startswith("with experts in host memory")
    assert estimate(EXPERTS, inference__host_expert_layers=26, hardware__spec={"host_memory_gib": 32}).fits is False


def test_experts_in_host_memory_are_proposed_where_a_mixture_does_not_fit() -> None:
    advised = answer(plan_of({**EXPERTS, "inference.batch": 1})).estimate.recommendations
    assert any("experts in host memory" in each.title for each in advised)


def test_a_host_is_a_processor_of_the_catalogue() -> None:
    with pytest.raises(CatalogError, match="epyc-1"):
        estimate(SERVED, hardware__host="epyc-1")
