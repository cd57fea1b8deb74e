"""Serving estimates: known sizes, how speeds and memory move, arrays and scalars alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, assemble, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.serving import ServingRun, serving_memory, serving_run, serving_work
from capacity_tui.engine.estimate.serving.memory import kv_cache_bytes, rounded_up
from capacity_tui.engine.estimate.serving.operators import distinct_experts
from capacity_tui.engine.estimate.serving.resolve import choose_engine, kernel_id, stored_bytes
from capacity_tui.engine.estimate.serving.speed import decode, prefill
from capacity_tui.engine.estimate.timing import phase_time
from capacity_tui.engine.models.transformer import cache_elements
from capacity_tui.engine.plan import Plan, PricingSection

GIB = 2**30
PARTS = {"weights", "kv_cache", "activations", "logits", "buffers", "context", "reserve"}


def plan(model: str, hardware: str = "h100-sxm-80gb", **changes: Any) -> Plan:
    """Return a serving plan; keyword arguments go to its inference section, or to a section of that name."""
    sections = {"parallelism": changes.pop("parallelism", {}), "spec": changes.pop("spec", {})}
    devices = changes.pop("devices", 1)
    return Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": model},
            "inference": changes,
            "parallelism": sections["parallelism"],
            "hardware": {"name": hardware, "devices": devices, "spec": sections["spec"]},
        }
    )


def run_of(*arguments: Any, **changes: Any) -> ServingRun:
    """Return the numbers of a plan."""
    catalog = load_catalog()
    resolved = resolve_plan(plan(*arguments, **changes), catalog)
    assert resolved.shape is not None
    return serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)


def estimate_of(*arguments: Any, **changes: Any) -> Estimate:
    """Return the estimate of a plan."""
    return estimate_plan(plan(*arguments, **changes)).estimate


def decode_speed(*arguments: Any, **changes: Any) -> float:
    """Return the output tokens of the whole batch a second."""
    speed = estimate_of(*arguments, **changes).computation.infer
    assert speed is not None
    assert speed.decode_tokens_per_second is not None
    return float(speed.decode_tokens_per_second.value)


def test_llama_2_7b_keeps_half_a_mebibyte_of_cache_a_token() -> None:
    run = run_of("llama-2-7b", kv_cache="fp16")
    per_token = kv_cache_bytes(1.0, cache_elements(run.shape, 1.0), run.numerics.cache_bytes, 1.0, 1.0)
    assert per_token == 2 * 32 * 4096 * 2 == 524288


def test_grouped_queries_share_keys_and_values() -> None:
    assert cache_elements(run_of("llama-3-8b").shape, 1.0) == 2 * 32 * 8 * 128


def test_tensor_parallel_devices_beyond_the_key_heads_hold_copies() -> None:
    caches = [
        serving_memory(run_of("llama-3-8b", parallelism={"tp": size}, devices=size)).parts["kv_cache"]
        for size in (1, 8, 16)
    ]
    assert caches[1] == pytest.approx(caches[0] / 8)
    assert caches[2] == pytest.approx(caches[1])


@pytest.mark.parametrize(
    ("model", "weights", "gib"),
    # Sizes of the published files.
    [("llama-3-8b", "q4_k_m", 4.58), ("llama-3-8b", "fp16", 14.96), ("llama-3-70b", "q4_k_m", 39.59)],
)
def test_files_have_their_published_size(model: str, weights: str, gib: float) -> None:
    run = run_of(model, weights=weights, engine="llamacpp")
    widths = (run.numerics.body_bytes, run.numerics.embedding_bytes, run.numerics.head_bytes)
    assert stored_bytes(run.counts, run.shape, widths) / GIB == pytest.approx(gib, rel=0.015)


def test_mixtures_read_few_experts_for_one_token_and_nearly_all_for_many() -> None:
    assert distinct_experts(8.0, 2.0, 1.0) == pytest.approx(2.0)
    assert distinct_experts(8.0, 2.0, 64.0) > 7.99


def test_a_mixture_decodes_faster_than_a_dense_model_of_its_size() -> None:
    layout = {"parallelism": {"tp": 4}, "devices": 4, "engine": "vllm"}
    assert decode_speed("mixtral-8x7b", **layout) > 2 * decode_speed("llama-3-70b", **layout)


def test_paged_caches_round_up_to_whole_blocks() -> None:
    assert rounded_up(np.array([1.0, 16.0, 17.0]), 16.0).tolist() == [16.0, 16.0, 32.0]


def test_decode_of_a_quantized_8b_on_an_rtx_4090_is_near_the_published_130_tokens_a_second() -> None:
    speed = decode_speed(
        "llama-3-8b", "rtx-4090", weights="q4_k_m", engine="llamacpp", prompt_tokens=1, output_tokens=512
    )
    assert speed == pytest.approx(130.6, rel=0.15)


def test_parts_add_up_to_the_reserved_memory_and_to_the_batch() -> None:
    estimate = estimate_of("llama-3-70b", parallelism={"tp": 4, "pp": 2}, devices=8, batch=6, engine="vllm")
    memory, time = estimate.memory, estimate.computation
    assert set(memory.parts) == PARTS
    assert sum(memory.parts.values()) == pytest.approx(float(memory.reserved_bytes.value))
    assert sum(time.parts.values()) == pytest.approx(float(time.step_seconds.value))
    assert time.units_per_step == 6 * (2048 + 512)


def test_decode_is_bound_by_memory_and_long_prefill_by_arithmetic() -> None:
    assert estimate_of("llama-3-8b", engine="vllm").bottleneck.kind == "memory_bandwidth"
    long = estimate_of("llama-3-8b", engine="vllm", prompt_tokens=32768, output_tokens=1, batch=4)
    assert long.bottleneck.kind == "compute"


def test_what_does_not_fit_is_limited_by_capacity() -> None:
    estimate = estimate_of("llama-3-70b", "rtx-4090", weights="fp16")
    assert estimate.fits is False
    assert estimate.bottleneck.kind == "capacity"


def test_layers_on_the_host_free_the_device_and_slow_decode() -> None:
    whole = estimate_of("llama-3-70b", "rtx-4090", weights="q4_k_m", engine="llamacpp")
    half = estimate_of("llama-3-70b", "rtx-4090", weights="q4_k_m", engine="llamacpp", gpu_layers=40)
    assert half.fits and not whole.fits
    assert half.memory.host_bytes > 15 * GIB
    assert any("processor" in assumed for assumed in half.basis.assumed)
    few, more = (
        decode_speed("llama-3-70b", "rtx-4090", weights="q4_k_m", engine="llamacpp", gpu_layers=layers)
        for layers in (20, 40)
    )
    assert few < more


def test_no_layer_on_the_device_leaves_it_without_weights_or_cache() -> None:
    memory = serving_memory(run_of("llama-3-8b", "rtx-4090", weights="q4_k_m", engine="llamacpp", gpu_layers=0))
    assert memory.parts["kv_cache"] == 0
    assert memory.parts["weights"] < 0.6 * GIB


def test_packed_weights_on_a_processor_use_its_tiles_for_bf16() -> None:
    """Both have 7 to 9 TFLOP/s in fp32; one has AMX too. Few rows pay for the unpacking all the same."""

    def prompts_a_second(hardware: str, tokens: int) -> float:
        served = estimate_of("llama-2-7b", hardware, engine="autoawq", weights="awq-4", prompt_tokens=tokens)
        assert served.computation.infer is not None
        return float(served.computation.infer.prefill_tokens_per_second.value)

    with_tiles, without = (prompts_a_second(name, 2048) for name in ("xeon-8480", "epyc-9654"))
    assert with_tiles > 1.5 * without
    assert with_tiles > 2.0 * prompts_a_second("xeon-8480", 32)


def test_few_bits_of_cache_help_where_vector_units_are_fast_for_the_memory() -> None:
    """L40S has five times the vector rate of A100, and less than half of its bandwidth."""

    def gain(hardware: str) -> float:
        served = {"engine": "qserve", "weights": "w4a8", "prompt_tokens": 1024, "output_tokens": 512, "batch": 64}
        four, eight = (decode_speed("llama-3-8b", hardware, kv_cache=kind, **served) for kind in ("kv4", "int8"))
        return four / eight

    assert gain("l40s") > gain("a100-sxm-80gb") + 0.05


def test_splitting_layers_over_devices_does_not_speed_one_sequence() -> None:
    one = decode_speed("llama-3-8b", "rtx-4090", weights="q4_k_m", engine="llamacpp")
    two = decode_speed("llama-3-8b", "rtx-4090", weights="q4_k_m", engine="llamacpp", parallelism={"pp": 2}, devices=2)
    assert 0.8 * one < two <= one


def test_eager_engines_are_bound_by_launches() -> None:
    eager = decode_speed("llama-2-7b", "a100-sxm-80gb", weights="bf16", engine="transformers")
    compiled = decode_speed("llama-2-7b", "a100-sxm-80gb", weights="bf16", engine="gpt-fast")
    assert compiled > 1.5 * eager


@pytest.mark.parametrize(
    ("hardware", "engine"),
    [
        ("apple-m3-max-40", "llamacpp"),
        ("apple-m3-max-40", "mlx"),
        ("i9-13900k", "llamacpp"),
        ("mi300x", "vllm"),
        ("tpu-v5e", "vllm"),
    ],
)
def test_devices_of_other_makers_are_estimated_too(hardware: str, engine: str) -> None:
    weights = {"llamacpp": "q4_k_m", "mlx": "mlx-4", "vllm": "fp8"}[engine]
    assert 3 < decode_speed("llama-3-8b", hardware, weights=weights, engine=engine) < 1000


def test_an_engine_takes_its_share_and_says_when_the_batch_does_not_fit_into_it() -> None:
    roomy = estimate_of("llama-3-8b", engine="vllm", batch=8)
    assert roomy.details["inference.claimed_bytes"] == pytest.approx(0.9 * float(roomy.memory.capacity_bytes or 0))
    assert not roomy.warnings
    tight = estimate_of("llama-3-8b", engine="vllm", batch=8, gpu_memory_utilization=0.25)
    assert [note.code for note in tight.warnings] == ["cache_too_small"]


def test_rows_for_a_maker_come_before_the_general_one() -> None:
    catalog = load_catalog()
    rows = catalog.engine_rows("llama.cpp")
    assert choose_engine(rows, "llama.cpp", "Apple").id == "llamacpp-metal"
    assert choose_engine(rows, "llama.cpp", "NVIDIA").id == "llamacpp"
    with pytest.raises(PlanError, match="does not run on this hardware"):
        choose_engine(catalog.engine_rows("neuron"), "neuron", "NVIDIA")


def test_formats_have_kernels_of_their_own_and_the_rest_those_of_packed_weights() -> None:
    catalog = load_catalog()
    eager = catalog.engines["transformers"]
    found = {name: kernel_id(eager, catalog.quantizations.find(name)) for name in ("bf16", "gptq-4", "gptq-8", "q4_0")}
    assert len(set(found.values())) == 4
    assert found["q4_0"] == eager.kernels["packed"]


def test_every_kernel_an_engine_names_is_known() -> None:
    catalog = load_catalog()
    for row in catalog.engines.values():
        assert {"plain", "packed"} <= set(row.kernels)
        assert set(row.kernels.values()) <= set(catalog.weight_kernels), row.id


def test_names_stand_for_engines_and_an_unknown_one_for_the_average() -> None:
    def speed(engine: str) -> float:
        return decode_speed("llama-3-8b", "rtx-4090", weights="q4_k_m", engine=engine)

    assert speed("ollama") == speed("llamacpp")
    unknown = estimate_of("llama-3-8b", engine="something-new")
    assert any("something-new" in line for line in unknown.basis.assumed)
    known = estimate_of("llama-3-8b", engine="Ollama", weights="q8_0")
    assert not any("not known" in line for line in known.basis.assumed)


def test_eager_engines_copy_the_cache_for_every_head_of_queries() -> None:
    def slowdown(engine: str, model: str) -> float:
        short, long = (
            decode_speed(model, "a100-sxm-80gb", weights="gptq-4", engine=engine, prompt_tokens=length)
            for length in (128, 60000)
        )
        return short / long

    assert slowdown("transformers", "qwen2.5-72b") > 2 * slowdown("vllm", "qwen2.5-72b")
    assert slowdown("transformers", "llama-3-8b") > slowdown("transformers", "llama-2-7b") / 4


def test_eager_engines_loop_over_all_experts_of_a_mixture() -> None:
    hardware = {"hardware": "h100-sxm-80gb", "weights": "bf16"}
    grouped = decode_speed("qwen3-30b-a3b", engine="vllm", **hardware)
    assert grouped > 20 * decode_speed("qwen3-30b-a3b", engine="transformers", **hardware)


def test_formats_with_kernels_launched_from_python_slow_eager_engines() -> None:
    def speed(weights: str) -> float:
        return decode_speed("llama-2-7b", "a100-sxm-80gb", weights=weights, engine="transformers")

    assert speed("int8") < speed("nf4") < 0.8 * speed("bf16")
    assert speed("gptq-4") > 0.9 * speed("bf16")
    assert speed("gptq-4") > speed("awq-4") > speed("fp8")


def test_encoders_generate_nothing() -> None:
    estimate = estimate_of("bert-base", prompt_tokens=512, batch=4)
    assert estimate.memory.parts["kv_cache"] == 0
    assert estimate.computation.units_per_step == 4 * 512
    assert estimate.computation.infer is not None
    assert estimate.computation.infer.decode_tokens_per_second is None


batches = st.integers(1, 256)
lengths = st.integers(16, 16384)
engines = st.sampled_from(["vllm", "transformers", "tensorrt-llm", "llamacpp", "sglang"])


@settings(max_examples=40, deadline=None)
@given(batches, batches, engines)
def test_a_larger_batch_never_slows_decode_as_a_whole(first: int, second: int, engine: str) -> None:
    small, large = sorted((first, second))
    run = run_of("llama-3-8b", engine=engine)
    speeds = [batch / phase_time(decode(replace(run, batch=float(batch)))).seconds for batch in (small, large)]
    assert speeds[1] >= speeds[0] * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(lengths, lengths, engines)
def test_longer_prompts_need_more_memory_and_time(first: int, second: int, engine: str) -> None:
    short, long = sorted((first, second))
    run = run_of("llama-3-8b", engine=engine)
    totals = [sum(serving_memory(replace(run, prompt=float(length))).parts.values()) for length in (short, long)]
    assert totals[1] >= totals[0]
    seconds = [phase_time(prefill(replace(run, prompt=float(length)))).seconds for length in (short, long)]
    assert seconds[1] >= seconds[0] * (1 - 1e-9)


@pytest.mark.parametrize("pair", [("fp16", "fp8"), ("fp8", "awq-4"), ("q8_0", "q4_k_m"), ("q4_k_m", "q2_k")])
def test_fewer_bits_need_less_memory(pair: tuple[str, str]) -> None:
    wide, narrow = (float(serving_memory(run_of("llama-3-8b", weights=name)).parts["weights"]) for name in pair)
    assert narrow < wide


def test_arrays_of_runs_agree_with_single_runs() -> None:
    run = run_of("mixtral-8x7b", engine="vllm", parallelism={"tp": 4}, devices=4)
    batch, prompt = np.array([[1.0], [8.0], [64.0]]), np.array([128.0, 4096.0])
    together = assemble(serving_work(replace(run, batch=batch, prompt=prompt)), run.cluster, PricingSection())
    for row, column in np.ndindex(3, 2):
        one = replace(run, batch=float(batch[row, 0]), prompt=float(prompt[column]))
        alone = assemble(serving_work(one), run.cluster, PricingSection())
        seconds = np.broadcast_to(together.computation.step_seconds.value, (3, 2))
        assert seconds[row, column] == pytest.approx(float(alone.computation.step_seconds.value))
        reserved = np.broadcast_to(together.memory.reserved_bytes.value, (3, 2))
        assert reserved[row, column] == pytest.approx(float(alone.memory.reserved_bytes.value))


def test_an_engine_of_static_shapes_reads_and_computes_all_experts() -> None:
    static = run_of("mixtral-8x7b", "gaudi2", batch=1, engine="optimum-habana", devices=8, parallelism={"tp": 8})
    routed = replace(static, runtime=replace(static.runtime, computes_all_experts=0.0))
    one, few = (decode(run) for run in (static, routed))

    def moved(phase: Any) -> float:
        return float(sum(operator.bytes * operator.count for operator in phase.operators if "routed" in operator.name))

    assert moved(one) == pytest.approx(moved(few) * static.shape.experts / static.shape.experts_active, rel=0.05)


def test_adapters_lie_beside_the_model_and_are_read_by_the_requests_that_chose_them() -> None:
    """Rank 16 beside every matrix of Llama 3.1 8B: 41.9 M parameters an adapter."""
    settings_of_all = {"engine": "vllm", "batch": 32}
    plain, few, many = (estimate_of("llama-3.1-8b", **settings_of_all, adapters=number) for number in (0, 4, 40))
    one = 2 * 41_943_040
    for found, number in ((few, 4), (many, 40)):
        assert float(found.memory.parts["weights"] - plain.memory.parts["weights"]) == pytest.approx(number * one)
    speeds = [decode_speed("llama-3.1-8b", **settings_of_all, adapters=number) for number in (0, 1, 4, 40)]
    assert speeds == sorted(speeds, reverse=True)
    wide = estimate_of("llama-3.1-8b", **settings_of_all, adapters=4, adapter_rank=64)
    assert float(wide.memory.parts["weights"] - plain.memory.parts["weights"]) == pytest.approx(16 * one)


def test_a_draft_model_takes_memory_on_all_devices_that_share_the_layers() -> None:
    guesses = {"num_speculative_tokens": 4, "devices": 2, "parallelism": {"tp": 2}}
    heads = estimate_of("llama-3.1-70b", **dict(guesses))
    draft = estimate_of("llama-3.1-70b", **dict(guesses), draft_parameters=1e9)
    assert float(draft.memory.parts["weights"] - heads.memory.parts["weights"]) == pytest.approx(2 * 1e9 / 2)
    assert any("draft" in text for text in draft.basis.assumed)


def test_weights_that_layers_share_are_multiplied_in_each_of_them() -> None:
    """ALBERT has one layer that a token passes 24 times: it saves memory, and no time over BERT of its sizes."""
    shared, own = (estimate_of(name, batch=32, prompt_tokens=512) for name in ("albert-large-v2", "bert-large"))
    assert float(shared.memory.parts["weights"]) < 0.2 * float(own.memory.parts["weights"])
    seconds = [float(one.computation.step_seconds.value) for one in (shared, own)]
    assert seconds[0] == pytest.approx(seconds[1], rel=0.2)
