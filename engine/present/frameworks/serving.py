"""Commands that serve a model: vLLM, SGLang, TensorRT-LLM, llama.cpp."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from capacity_tui.engine.present.frameworks.exports import (
    as_yaml,
    command,
    exported,
    exported_arguments,
    known_values,
    script,
)
from capacity_tui.engine.present.frameworks.job import Job, layout_remarks

VLLM = "vLLM 0.10 and later (vllm/engine/arg_utils.py)"
SGLANG = "SGLang 0.5 (srt/server_args.py)"
TENSORRT = "TensorRT-LLM 1.0 and later (tensorrt_llm/commands/serve.py)"
LLAMACPP = "llama.cpp's llama-server of 2026 (tools/server/README.md)"
TENSORRT_OPTIONS = "llm_api_options.yaml"
_SIXTEEN_BITS_AND_MORE = ("bf16", "fp16", "fp32")
_LLAMACPP_CACHE = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8": "q8_0", "int8": "q8_0"}


def vllm_script(job: Job) -> str:
    """Return the command that serves the plan with vLLM."""
    heading = [f"Written for {VLLM}."]
    return script(
        heading,
        list(_vllm_remarks(job)),
        command(["vllm", "serve", _model(job)], exported_arguments("vllm", job, **_values(job))),
    )


def sglang_script(job: Job) -> str:
    """Return the command that serves the plan with SGLang."""
    heading = [f"Written for {SGLANG}."]
    words = ["python3", "-m", "sglang.launch_server"]
    return script(
        heading, list(_sglang_remarks(job)), command(words, exported_arguments("sglang", job, **_values(job)))
    )


def tensorrt_files(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the command that serves the plan with TensorRT-LLM, and the options it reads from a file."""
    heading = [
        f"Written for {TENSORRT}.",
        "The PyTorch backend loads a checkpoint as it is; there is no engine to build with trtllm-build.",
    ]
    body = command(["trtllm-serve", _model(job)], exported_arguments("tensorrt", job, **_values(job)))
    yield "trtllm_serve.sh", script(heading, list(_tensorrt_remarks(job)), body)
    options = exported("tensorrt_options", job, **_values(job))
    yield TENSORRT_OPTIONS, as_yaml(heading[:1], [], options)


def llamacpp_script(job: Job) -> str:
    """Return the command that serves the plan with llama.cpp."""
    heading = [f"Written for {LLAMACPP}."]
    return script(
        heading,
        list(_llamacpp_remarks(job)),
        command(["llama-server"], exported_arguments("llamacpp", job, **_values(job))),
    )


def _model(job: Job) -> str:
    """Return the model's name, or a word the shell asks for: the name of a model on the hub needs no quotes."""
    return job.model if job.on_hub else '"${MODEL:?folder of the checkpoint}"'


def _running(job: Job) -> int | None:
    """Return the requests that one replica takes up at once; None where a rate is given, and the engine decides."""
    inference = job.plan.inference
    if inference.requests_at_once is not None:
        return math.ceil(inference.requests_at_once / job.data_parallel)
    return int(inference.batch) if inference.arrival_rate is None else None


def _length(job: Job) -> int:
    return job.plan.inference.prompt_tokens + job.plan.inference.output_tokens


def _values(job: Job) -> dict[str, object]:
    """Return what the rows of engines read besides the job itself."""
    inference, running = job.plan.inference, _running(job)
    guesses = {"model": "DRAFT", "num_speculative_tokens": inference.num_speculative_tokens}
    split = "row" if job.tensor_parallel > 1 else "layer" if job.pipeline_parallel > 1 else None
    return {
        "inference": inference,
        "length": _length(job),
        "running": running,
        "model_word": _model(job),
        "guesses": json.dumps(guesses) if inference.num_speculative_tokens else None,
        "drafted": inference.num_speculative_tokens + 1,
        "experts_over": min(job.expert_parallel, job.tensor_parallel) if job.shape.experts else None,
        "requests": running or 1,
        "context": _length(job) * (running or 1),
        "gpu_layers": _gpu_layers(job),
        "cache_type": _LLAMACPP_CACHE.get(inference.kv_cache, inference.kv_cache),
        "split_mode": split,
    }


def _vllm_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    if inference.weights_format not in {*_SIXTEEN_BITS_AND_MORE, *known_values("vllm", "--quantization")}:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format, vLLM reads it from there"
    if inference.kv_cache not in {"fp8", _sixteen_bits(job)}:
        yield f"KV cache in {inference.kv_cache}: the type of the weights is written"
    spread = job.tensor_parallel * job.data_parallel
    if job.expert_parallel not in {1, spread}:
        yield f"{job.expert_parallel}-way expert parallel: vLLM spreads the experts over all {spread} devices"


def _sglang_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    if inference.weights_format not in {*_SIXTEEN_BITS_AND_MORE, *known_values("sglang", "--quantization")}:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format; SGLang reads it there"
    if inference.kv_cache not in {*known_values("sglang", "--kv-cache-dtype"), _sixteen_bits(job)}:
        yield f"KV cache in {inference.kv_cache}: the type of the weights is written"
    yield "the share of memory is of weights and cache alone: activations and captured kernels come beside it"


def _tensorrt_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    if job.data_parallel > 1:
        yield f"{job.data_parallel} replicas: start this command once for each"
    if job.expert_parallel > job.tensor_parallel:
        yield f"{job.expert_parallel}-way expert parallel: TensorRT-LLM spreads the experts inside tensor parallel"
    if inference.weights_format not in _SIXTEEN_BITS_AND_MORE:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format"
    if inference.kv_cache not in {"fp8", "int8", _sixteen_bits(job)}:
        yield f"KV cache in {inference.kv_cache}: the type of the weights is written"
    yield "the share of memory is of what weights leave free, not of all memory"


def _llamacpp_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield f"the model: a GGUF file of {job.model} in {inference.weights_format}"
    yield from _serving_remarks(job, by_name=False)
    if job.data_parallel > 1:
        yield f"{job.data_parallel} replicas: start this command once for each"
    if inference.kv_cache in {"fp8", "int8"}:
        yield f"KV cache in {inference.kv_cache}: llama.cpp has q8_0 in its place"


def _gpu_layers(job: Job) -> str:
    given = job.plan.inference.gpu_layers
    if given is not None:
        return str(given)
    return "0" if job.on_cpu else "all"


def _serving_remarks(job: Job, by_name: bool = True) -> Iterator[str]:
    inference = job.plan.inference
    if inference.arrival_rate is not None:
        yield f"{inference.arrival_rate:g} requests a second: whoever sends them decides that"
    if by_name and inference.num_speculative_tokens > 0:
        yield "the draft: put its name in the place of DRAFT"
    yield from layout_remarks(job)
    if job.context_parallel > 1:
        yield f"{job.context_parallel}-way context parallel: not written"
    if by_name and inference.gpu_layers is not None:
        yield f"{inference.gpu_layers} layers on the accelerator: this engine keeps all of them there"
    if by_name and not job.on_hub:
        yield f"the model: set MODEL to the checkpoint of {job.model}"


def _sixteen_bits(job: Job) -> str:
    return job.plan.inference.weights_format if job.plan.inference.weights_format in _SIXTEEN_BITS_AND_MORE else "bf16"
