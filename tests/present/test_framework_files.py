"""Framework files read back: their numbers are the plan's."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import pytest
import yaml
from python_files import parts_of

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import ResolvedPlan, estimate_resolved, resolve_plan
from capacity_tui.engine.machine import Setting
from capacity_tui.engine.plan.files import example_names, example_text, plan_from_data, plan_from_text
from capacity_tui.engine.present.frameworks import framework_files
from capacity_tui.engine.present.frameworks.exports import environment_script

FRAMEWORKS = (None, "transformers", "fsdp", "ddp", "deepspeed", "megatron", "nemo", "torchtitan")


def resolved(data: Mapping[str, object]) -> ResolvedPlan:
    return resolve_plan(plan_from_data(dict(data)), load_catalog())


def job(framework: str | None = None, name: str = "llama-3.1-8b", devices: int = 8, **sections: Any) -> ResolvedPlan:
    training = {"micro_batch": 2, "global_batch": 64, "steps": 100, **sections.pop("training", {})}
    hardware = {"name": "h100-sxm-80gb", "devices": devices, "per_node": 8}
    data = {"model": {"name": name}, "training": {"framework": framework, **training}, "hardware": hardware}
    return resolved({**data, **sections})


def served(engine: str, devices: int = 4, **sections: Any) -> ResolvedPlan:
    inference = {"engine": engine, "batch": 8, **sections.pop("inference", {})}
    model, hardware = {"name": "llama-3.1-70b"}, {"name": "h100-sxm-80gb", "devices": devices, "per_node": 8}
    return resolved({"task": "infer", "model": model, "hardware": hardware, "inference": inference, **sections})


def files_of(plan: ResolvedPlan, *settings: Setting) -> Mapping[str, str]:
    return framework_files(plan, load_catalog(), settings)


def read(name: str, text: str) -> Any:
    """Read a file as the program it is for would: data, or options with their values."""
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith(".yaml"):
        return yaml.safe_load(text)
    if name.endswith(".py"):
        return parts_of(text)
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    found: dict[str, Any] = {"words": words}
    for word, after in zip(words, [*words[1:], "--"], strict=False):
        if word.startswith("--"):
            assert word not in found, f"{word} twice"
            found[word] = True if after.startswith("--") else after
    return found


def remarks(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("# - "))


def world_and_batch(name: str, data: Any, plan: ResolvedPlan) -> tuple[int | None, int | None]:
    """Return the number of processes and the global batch that a file amounts to; None where it has none."""
    replicas = int(plan.plan.parallelism.dp or 1)
    if name == "megatron.sh":
        sizes = [int(data[f"--{kind}-parallel-size"]) for kind in ("tensor-model", "pipeline-model", "context")]
        world = int(data["--nproc_per_node"]) * int(data["--nnodes"])
        assert world == replicas * sizes[0] * sizes[1] * sizes[2]
        assert int(data["--global-batch-size"]) % (int(data["--micro-batch-size"]) * replicas) == 0
        return world, int(data["--global-batch-size"])
    if name == "accelerate.yaml":
        split = data.get("parallelism_config")
        if split and plan.plan.parallelism.pp == 1:
            assert prod(split.values()) == data["num_processes"]
        return data["num_processes"], None
    if name == "training_arguments.yaml":
        return None, data["per_device_train_batch_size"] * data["gradient_accumulation_steps"] * replicas
    if name == "ds_config.json":
        micro_batches = data["train_micro_batch_size_per_gpu"] * data["gradient_accumulation_steps"]
        assert data["train_batch_size"] == micro_batches * replicas
        return None, data["train_batch_size"]
    if name == "torchtitan_config.py":
        kinds = ("data_parallel_replicate", "data_parallel_shard", "tensor_parallel", "context_parallel")
        world = prod(data["parallelism"][f"{kind}_degree"] for kind in (*kinds, "pipeline_parallel"))
        training = data["training"]
        assert training["global_batch_size"] % (training["local_batch_size"] * replicas) == 0
        return world, training["global_batch_size"]
    return None, None


def check(plan: ResolvedPlan) -> Mapping[str, str]:
    found = files_of(plan)
    for name, text in found.items():
        world, batch = world_and_batch(name, read(name, text), plan)
        assert world in (None, plan.plan.hardware.devices), name
        assert batch in (None, plan.plan.training.global_batch), name
    return found


@pytest.mark.parametrize("name", example_names())
def test_every_example_reads_back_with_its_numbers(name: str) -> None:
    plan = resolve_plan(plan_from_text(example_text(name), name), load_catalog())
    found = check(plan)
    assert "environment.sh" in found
    assert (len(found) > 1) == (plan.shape is not None)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("offload", ["none", "optimizer", "parameters"])
def test_every_framework_keeps_the_numbers(framework: str | None, zero: int, offload: str) -> None:
    check(job(framework, parallelism={"zero": zero, "offload": offload}))
    check(job(framework, devices=32, parallelism={"zero": zero, "tp": 2, "cp": 2, "offload": offload}))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16", "fp8", "fp4"])
def test_every_framework_keeps_the_precision_or_says_so(framework: str | None, precision: str) -> None:
    found = check(job(framework, training={"precision": precision}))
    if precision == "fp4" and framework not in ("megatron", "nemo"):
        assert any("fp4" in remarks(text) for text in found.values())


def test_megatron_has_layout_shape_and_recomputation() -> None:
    plan = resolve_plan(plan_from_text(example_text("pretrain_70b_512_h100"), "example"), load_catalog())
    options = read("megatron.sh", files_of(plan)["megatron.sh"])
    assert options["--num-virtual-stages-per-pipeline-rank"] == "5"
    assert (options["--num-layers"], options["--hidden-size"], options["--num-query-groups"]) == ("80", "8192", "8")
    assert (options["--recompute-granularity"], options["--recompute-modules"]) == ("selective", "core_attn")
    assert options["--use-distributed-optimizer"] is True and options["--overlap-grad-reduce"] is True
    assert "CUDA_DEVICE_MAX_CONNECTIONS=1" in options["words"]


def test_megatron_has_experts() -> None:
    options = read("megatron.sh", files_of(job("megatron", "deepseek-v3", 64, parallelism={"ep": 64}))["megatron.sh"])
    assert (options["--num-experts"], options["--moe-router-topk"]) == ("256", "8")
    assert (options["--expert-model-parallel-size"], options["--expert-tensor-parallel-size"]) == ("64", "1")
    assert options["--moe-layer-freq"] == "([0]*3+[1]*58)"
    assert options["--multi-latent-attention"] is True


def test_megatron_shards_parameters_by_its_fsdp_alone() -> None:
    options = read("megatron.sh", files_of(job("megatron", parallelism={"zero": 3}))["megatron.sh"])
    assert options["--data-parallel-sharding-strategy"] == "optim_grads_params"
    assert "CUDA_DEVICE_MAX_CONNECTIONS=1" not in options["words"]
    exposed = read("megatron.sh", files_of(job("megatron", training={"overlap": False}))["megatron.sh"])
    assert "--overlap-grad-reduce" not in exposed


def test_a_pipeline_without_a_framework_goes_to_megatron() -> None:
    assert "megatron.sh" in files_of(job(None, parallelism={"pp": 2}))


def test_a_pipeline_that_cannot_be_had_is_said() -> None:
    assert "2 pipeline stages" in remarks(files_of(job("fsdp", parallelism={"pp": 2}))["accelerate.yaml"])


@pytest.mark.parametrize(
    ("framework", "parallelism", "backend"),
    [
        ("ddp", {}, "MULTI_GPU"),
        ("fsdp", {}, "FSDP"),
        ("deepspeed", {}, "DEEPSPEED"),
        (None, {"zero": 0}, "MULTI_GPU"),
        (None, {"zero": 1}, "DEEPSPEED"),
        (None, {"zero": 3}, "FSDP"),
        (None, {"zero": 3, "offload": "optimizer"}, "DEEPSPEED"),
    ],
)
def test_accelerate_runs_it_by(framework: str | None, parallelism: dict[str, object], backend: str) -> None:
    found = files_of(job(framework, parallelism=parallelism))
    assert read("accelerate.yaml", found["accelerate.yaml"])["distributed_type"] == backend
    assert ("ds_config.json" in found) == (backend == "DEEPSPEED")


def test_a_processor_needs_no_backend_and_no_flash_attention() -> None:
    plan = resolve_plan(plan_from_text(example_text("cpu_smollm2"), "example"), load_catalog())
    found = files_of(plan)
    launch = read("accelerate.yaml", found["accelerate.yaml"])
    assert (launch["distributed_type"], launch["use_cpu"]) == ("NO", True)
    assert 'attn_implementation="sdpa"' in found["training_arguments.yaml"]


def test_deepspeed_offloads_and_raises_the_stage_it_needs() -> None:
    found = files_of(job("deepspeed", parallelism={"zero": 1, "offload": "parameters"}))
    zero = read("ds_config.json", found["ds_config.json"])["zero_optimization"]
    assert zero["stage"] == 3
    assert zero["offload_param"]["device"] == zero["offload_optimizer"]["device"] == "cpu"
    assert "ZeRO stage 3" in remarks(found["accelerate.yaml"])


def test_deepspeed_on_several_nodes_is_started_on_each() -> None:
    launch = read("accelerate.yaml", files_of(job("deepspeed", devices=16))["accelerate.yaml"])
    assert launch["num_machines"] == 2
    assert launch["deepspeed_config"]["deepspeed_multinode_launcher"] == "standard"
    assert "mixed_precision" not in launch  # refused beside a DeepSpeed file


def test_layers_are_recomputed_by_one_switch() -> None:
    sharded = files_of(job("fsdp", training={"checkpointing": "full"}))
    assert read("accelerate.yaml", sharded["accelerate.yaml"])["fsdp_config"]["fsdp_activation_checkpointing"] is True
    assert read("training_arguments.yaml", sharded["training_arguments.yaml"])["activation_checkpointing"] is False
    plain = files_of(job("ddp", training={"checkpointing": "full"}))
    assert read("training_arguments.yaml", plain["training_arguments.yaml"])["activation_checkpointing"] is True


def test_a_fused_loss_is_switched_on_or_said() -> None:
    found = files_of(job("transformers", training={"loss": "fused", "sequence_tiles": 4, "activation_offload": "all"}))
    assert read("training_arguments.yaml", found["training_arguments.yaml"])["use_liger_kernel"] is True
    said = remarks(found["training_arguments.yaml"])
    assert "4 tiles of the sequence" in said
    assert "host memory" in said


def test_torchtitan_counts_the_micro_batches_of_a_pipeline_as_one_local_batch() -> None:
    plan = job("torchtitan", devices=16, parallelism={"pp": 2, "interleave": 2, "tp": 2})
    config = read("torchtitan_config.py", text := files_of(plan)["torchtitan_config.py"])
    assert 'model_spec = llama3.model_registry("8B")' in text
    assert config["training"]["local_batch_size"] == 64 // 4
    assert config["parallelism"]["pipeline_parallel_microbatch_size"] == 2
    assert config["parallelism"]["pipeline_parallel_layers_per_stage"] == 8
    assert config["parallelism"]["pipeline_parallel_schedule"] == "Interleaved1F1B"


def test_torchtitan_writes_nothing_for_a_model_it_has_not() -> None:
    [(name, text)] = files_of(job("torchtitan", "gpt2-small")).items()
    assert name == "environment.sh" and "no flavor" in text


def test_torchtitan_replicates_sharding_groups() -> None:
    text = files_of(job("torchtitan", devices=32, parallelism={"zero": 3, "shard": 8}))["torchtitan_config.py"]
    parts = read("torchtitan_config.py", text)["parallelism"]
    assert (parts["data_parallel_replicate_degree"], parts["data_parallel_shard_degree"]) == (4, 8)


@pytest.mark.parametrize(
    ("framework", "file", "where"),
    [
        ("transformers", "training_arguments.yaml", ("save_steps",)),
        ("torchtitan", "torchtitan_config.py", ("checkpoint", "interval")),
        ("megatron", "megatron.sh", ("--save-interval",)),
    ],
)
def test_checkpoints_are_saved_as_often_as_the_plan_says(framework: str, file: str, where: tuple[str, ...]) -> None:
    plan = job(framework, recovery={"checkpoint_every": "10min"})
    found = read(file, files_of(plan)[file])
    for name in where:
        found = found[name]
    step = estimate_resolved(plan, load_catalog()).computation.step_seconds.value
    assert int(found) == pytest.approx(600 / float(step), abs=1)
    assert "save" not in files_of(job(framework))[file]


def test_vllm_serves_the_plan() -> None:
    inference = {"weights": "fp8", "kv_cache": "fp8", "prompt_tokens": 1000, "output_tokens": 24}
    plan = served("vllm", devices=8, inference=inference, parallelism={"tp": 4})
    options = read("vllm_serve.sh", files_of(plan)["vllm_serve.sh"])
    assert options["words"][:3] == ["set", "-euo", "pipefail"]
    assert options["words"][3:6] == ["vllm", "serve", "meta-llama/Llama-3.1-70B"]
    assert (options["--tensor-parallel-size"], options["--data-parallel-size"]) == ("4", "2")
    assert (options["--max-model-len"], options["--max-num-seqs"]) == ("1024", "8")
    assert (options["--quantization"], options["--kv-cache-dtype"]) == ("fp8", "fp8")


def test_sglang_serves_the_plan() -> None:
    inference = {"weights": "fp8", "kv_cache": "fp8", "num_speculative_tokens": 3, "max_num_batched_tokens": 4096}
    plan = served("sglang", devices=16, inference=inference, parallelism={"tp": 8})
    options = read("sglang_serve.sh", files_of(plan)["sglang_serve.sh"])
    assert (options["--tp-size"], options["--dp-size"], options["--nnodes"]) == ("8", "2", "2")
    assert (options["--max-running-requests"], options["--chunked-prefill-size"]) == ("8", "4096")
    assert (options["--quantization"], options["--kv-cache-dtype"]) == ("fp8", "fp8_e4m3")


@pytest.mark.parametrize(
    ("checkpointing", "policy"), [("full", "Full"), ("selective-ops", "Selective"), ("every-2", "")]
)
def test_torchtitan_recomputes_as_planned_or_says_so(checkpointing: str, policy: str) -> None:
    text = files_of(job("torchtitan", training={"checkpointing": checkpointing}))["torchtitan_config.py"]
    assert f"activation_checkpoint={policy or 'Selective'}AC.Config()," in text
    assert (f"checkpointing {checkpointing}" in remarks(text)) is (checkpointing == "every-2")


@pytest.mark.parametrize(("context", "is_written"), [("all_gather", True), ("ring", False), ("all_to_all", False)])
def test_torchtitan_says_that_it_gathers_sequences(context: str, is_written: bool) -> None:
    text = files_of(job("torchtitan", parallelism={"cp": 2, "context": context}))["torchtitan_config.py"]
    assert (f"context {context}" in remarks(text)) is not is_written


def test_a_load_is_written_as_flags_of_engines():
    inference = {"concurrency": 64, "max_num_batched_tokens": 4096, "prefix_cache_hit_rate": 0.5,
                 "num_speculative_tokens": 3}  # fmt: skip
    options = files_of(served("vllm", 1, inference=inference))["vllm_serve.sh"]
    assert "--max-num-seqs 64" in options
    assert "--max-num-batched-tokens 4096" in options
    assert "--enable-prefix-caching" in options
    assert '"num_speculative_tokens": 3' in options
    assert "--max-num-seqs" not in files_of(served("vllm", inference={"request_rate": 5}))["vllm_serve.sh"]
    assert "--max_num_tokens 4096" in files_of(served("tensorrt-llm", inference=inference))["trtllm_serve.sh"]
    assert "--spec-draft-n-max 3" in files_of(served("llamacpp", 1, inference=inference))["llama_server.sh"]


def test_tensorrt_reads_the_cache_from_its_options_file() -> None:
    found = files_of(served("tensorrt-llm", inference={"kv_cache": "fp8"}, parallelism={"tp": 4}))
    options = read("trtllm_serve.sh", found["trtllm_serve.sh"])
    assert (options["--tp_size"], options["--max_batch_size"]) == ("4", "8")
    assert read("x.yaml", found[options["--extra_llm_api_options"]]) == {"kv_cache_config": {"dtype": "fp8"}}


def test_llamacpp_has_the_context_of_all_requests() -> None:
    inference = {"weights": "q4_k_m", "kv_cache": "q8_0", "gpu_layers": 30, "host_expert_layers": 24}
    options = read("x.sh", files_of(served("llamacpp", 1, inference=inference))["llama_server.sh"])
    assert int(options["--ctx-size"]) == 8 * (2048 + 512)
    assert options["--n-cpu-moe"] == "24"
    assert (options["--n-gpu-layers"], options["--cache-type-k"], options["--parallel"]) == ("30", "q8_0", "8")


def test_engines_that_read_no_file_are_said() -> None:
    hardware, model = {"name": "apple-m3-ultra-80"}, {"name": "llama-3.1-70b"}
    inference = {"engine": "mlx", "batch": 8}
    found = files_of(resolved({"task": "infer", "model": model, "hardware": hardware, "inference": inference}))
    assert list(found) == ["environment.sh"]
    assert "mlx" in found["environment.sh"]


def test_settings_become_exports_and_the_rest_comments() -> None:
    found = files_of(
        job(),
        Setting("NCCL_IB_DISABLE", "1", "no adapter"),
        Setting("OMP_PLACES", "cores and more", "near\nmemory"),
        Setting("attention", "flash", "fast"),
    )
    words = shlex.split(found["environment.sh"], comments=True)
    assert words == ["export", "NCCL_IB_DISABLE=1", "export", "OMP_PLACES=cores and more"]
    assert "# attention: flash (fast)" in found["environment.sh"]


def test_a_share_of_power_becomes_a_command_for_an_administrator() -> None:
    found = files_of(job(watch={"power_share": 0.4}))
    assert "\n# nvidia-smi -pl 280\n" in found["environment.sh"]
    assert "nvidia-smi" not in files_of(job(watch={"power_share": 1.0}))["environment.sh"]


def test_a_batch_that_does_not_divide_is_rounded_and_said() -> None:
    found = files_of(job("megatron", training={"global_batch": 60}))
    assert "60 is no multiple" in remarks(found["megatron.sh"])
    assert int(read("megatron.sh", found["megatron.sh"])["--global-batch-size"]) % 16 == 0


def test_names_from_a_plan_cannot_run_as_commands(tmp_path: Path) -> None:
    folder = tmp_path / 'mine\necho "$(id)"; '
    folder.mkdir()
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 100}
    config = folder / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "intermediate_size": 128, **sizes}))
    for plan in (
        job("megatron", model={"config": str(config)}, devices=1),
        served("vllm", 1, model={"config": str(config)}),
    ):
        for name, text in files_of(plan).items():
            assert "echo" not in read(name, text)["words"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_that_reads_the_environment_stays_whole_where_a_library_is_missing(tmp_path: Path, shell: str) -> None:
    setting = Setting("LD_PRELOAD", "libthere-is-none.so", "fewer page faults")
    script = environment_script([setting], [])
    (tmp_path / "environment.sh").write_text(script)
    command = [shell, "-c", f". {tmp_path / 'environment.sh'} && env"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
    assert done.stderr == ""
    assert "LD_PRELOAD" not in done.stdout


@pytest.mark.parametrize(
    ("engine", "name", "remark"),
    [
        ("llamacpp", "llama_server.sh", "add --lora"),
        ("ollama", "Modelfile", "ADAPTER"),
        ("tgi", "tgi_launcher.sh", "--lora-adapters"),
    ],
)
def test_an_engine_that_takes_adapters_by_their_files_says_so(engine: str, name: str, remark: str) -> None:
    text = files_of(served(engine, inference={"adapters": 3, "adapter_rank": 8}))[name]
    assert "3 adapters of rank 8: " in remarks(text)
    assert remark in remarks(text)
    assert "adapters of rank" not in remarks(files_of(served(engine))[name])


def test_tensorrt_keeps_room_for_adapters() -> None:
    text = files_of(served("tensorrt-llm", inference={"adapters": 3, "adapter_rank": 8}))["llm_api_options.yaml"]
    assert yaml.safe_load(text)["lora_config"] == {"max_loras": 3, "max_lora_rank": 8, "max_cpu_loras": 3}
