"""Commands that serve a model: vLLM, SGLang, TensorRT-LLM, llama.cpp."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from capacity_tui.engine.present.frameworks.job import Job, layout_remarks
from capacity_tui.engine.present.frameworks.text import as_yaml, command, script

VLLM = "vLLM 0.10 and later (vllm/engine/arg_utils.py)"
SGLANG = "SGLang 0.5 (srt/server_args.py)"
TENSORRT = "TensorRT-LLM 1.0 and later (tensorrt_llm/commands/serve.py)"
LLAMACPP = "llama.cpp's llama-server of 2026 (tools/server/README.md)"
TENSORRT_OPTIONS = "llm_api_options.yaml"
Arguments = Iterator[tuple[str, ...]]
_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_VLLM_QUANTIZED = {"fp8": "fp8", "nf4": "bitsandbytes"}
_SGLANG_QUANTIZED = {"fp8": "fp8", "mxfp4": "mxfp4", "mxfp8": "mxfp8"}
_SGLANG_CACHE = {"fp8": "fp8_e4m3", "bf16": "bf16", "nvfp4": "nvfp4", "mxfp8": "mxfp8"}
_TENSORRT_CACHE = {"fp8": "fp8", "int8": "int8"}
_LLAMACPP_CACHE = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8": "q8_0", "int8": "q8_0"}


def vllm_script(job: Job) -> str:
    """Return the command that serves the plan with vLLM."""
    heading = [f"Written for {VLLM}."]
    return script(heading, list(_vllm_remarks(job)), command(["vllm", "serve", _model(job)], _vllm(job)))


def sglang_script(job: Job) -> str:
    """Return the command that serves the plan with SGLang."""
    heading = [f"Written for {SGLANG}."]
    words = ["python3", "-m", "sglang.launch_server"]
    return script(heading, list(_sglang_remarks(job)), command(words, _sglang(job)))


def tensorrt_files(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the command that serves the plan with TensorRT-LLM, and the options it reads from a file."""
    inference = job.plan.inference
    heading = [
        f"Written for {TENSORRT}.",
        "The PyTorch backend loads a checkpoint as it is; there is no engine to build with trtllm-build.",
    ]
    body = command(["trtllm-serve", _model(job)], _tensorrt(job))
    yield "trtllm_serve.sh", script(heading, list(_tensorrt_remarks(job)), body)
    cache: dict[str, object] = {"dtype": _TENSORRT_CACHE.get(inference.kv_cache, "auto")}
    if inference.prefix_cache_hit_rate > 0:
        cache["enable_block_reuse"] = True
    options: dict[str, object] = {"kv_cache_config": cache}
    if inference.max_num_batched_tokens is not None:
        options["enable_chunked_prefill"] = True
    if inference.num_speculative_tokens > 0:
        guesses = {"max_draft_len": inference.num_speculative_tokens, "speculative_model_dir": "DRAFT"}
        options["speculative_config"] = {"decoding_type": "DraftTarget", **guesses}
    yield TENSORRT_OPTIONS, as_yaml(heading[:1], [], options)


def llamacpp_script(job: Job) -> str:
    """Return the command that serves the plan with llama.cpp."""
    heading = [f"Written for {LLAMACPP}."]
    return script(heading, list(_llamacpp_remarks(job)), command(["llama-server"], _llamacpp(job)))


def _model(job: Job) -> str:
    """Return the model's name, or a word the shell asks for: the name of a model on the hub needs no quotes."""
    return job.model if job.on_hub else '"${MODEL:?folder of the checkpoint}"'


def _running(job: Job) -> int | None:
    """Return the requests that one replica takes up at once; None where a rate is given, and the engine decides."""
    inference = job.plan.inference
    if inference.concurrency is not None:
        return math.ceil(inference.concurrency / job.data_parallel)
    return int(inference.batch) if inference.request_rate is None else None


def _length(job: Job) -> int:
    return job.plan.inference.prompt_tokens + job.plan.inference.output_tokens


def _vllm(job: Job) -> Arguments:
    inference = job.plan.inference
    yield "--tensor-parallel-size", str(job.tensor_parallel)
    yield "--pipeline-parallel-size", str(job.pipeline_parallel)
    yield "--data-parallel-size", str(job.data_parallel)
    if job.expert_parallel > 1:
        yield ("--enable-expert-parallel",)
    yield "--max-model-len", str(_length(job))
    if (running := _running(job)) is not None:
        yield "--max-num-seqs", str(running)
    if inference.max_num_batched_tokens is not None:
        yield "--max-num-batched-tokens", str(inference.max_num_batched_tokens)
    if inference.prefix_cache_hit_rate > 0:
        yield ("--enable-prefix-caching",)
    if inference.num_speculative_tokens > 0:
        guessed = {"model": "DRAFT", "num_speculative_tokens": inference.num_speculative_tokens}
        yield "--speculative-config", json.dumps(guessed)
    yield "--gpu-memory-utilization", str(inference.gpu_memory_utilization)
    yield "--dtype", _TYPES.get(inference.weights_format, "auto")
    if inference.weights_format in _VLLM_QUANTIZED:
        yield "--quantization", _VLLM_QUANTIZED[inference.weights_format]
    yield "--kv-cache-dtype", "fp8" if inference.kv_cache == "fp8" else "auto"


def _vllm_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    if inference.weights_format not in _TYPES | _VLLM_QUANTIZED:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format, vLLM reads it from there"
    if inference.kv_cache not in {"fp8", _sixteen_bits(job)}:
        yield f"KV cache in {inference.kv_cache}: the type of the weights is written"
    spread = job.tensor_parallel * job.data_parallel
    if job.expert_parallel not in {1, spread}:
        yield f"{job.expert_parallel}-way expert parallel: vLLM spreads the experts over all {spread} devices"


def _sglang(job: Job) -> Arguments:
    inference = job.plan.inference
    yield "--model-path", _model(job)
    yield "--tp-size", str(job.tensor_parallel)
    yield "--pp-size", str(job.pipeline_parallel)
    yield "--dp-size", str(job.data_parallel)
    if job.expert_parallel > 1:
        yield "--ep-size", str(job.expert_parallel)
    if job.nodes > 1:
        yield "--nnodes", str(job.nodes)
        yield "--node-rank", '"${NODE_RANK:?number of this node}"'
        yield "--dist-init-addr", '"${HEAD:?address and port of the first node}"'
    yield "--context-length", str(_length(job))
    if (running := _running(job)) is not None:
        yield "--max-running-requests", str(running)
    if inference.max_num_batched_tokens is not None:
        yield "--chunked-prefill-size", str(inference.max_num_batched_tokens)
    if inference.prefix_cache_hit_rate == 0:
        yield ("--disable-radix-cache",)
    if inference.num_speculative_tokens > 0:
        yield "--speculative-algorithm", "STANDALONE"
        yield "--speculative-draft-model-path", "DRAFT"
        yield "--speculative-num-steps", str(inference.num_speculative_tokens)
        yield "--speculative-eagle-topk", "1"
        yield "--speculative-num-draft-tokens", str(inference.num_speculative_tokens + 1)
    yield "--mem-fraction-static", str(inference.gpu_memory_utilization)
    yield "--dtype", _TYPES.get(inference.weights_format, "auto")
    if inference.weights_format in _SGLANG_QUANTIZED:
        yield "--quantization", _SGLANG_QUANTIZED[inference.weights_format]
    yield "--kv-cache-dtype", _SGLANG_CACHE.get(inference.kv_cache, "auto")


def _sglang_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    if inference.weights_format not in _TYPES | _SGLANG_QUANTIZED:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format; SGLang reads it there"
    if inference.kv_cache not in {*_SGLANG_CACHE, _sixteen_bits(job)}:
        yield f"KV cache in {inference.kv_cache}: the type of the weights is written"
    yield "the share of memory is of weights and cache alone: activations and captured kernels come beside it"


def _tensorrt(job: Job) -> Arguments:
    inference = job.plan.inference
    yield "--backend", "pytorch"
    yield "--tp_size", str(job.tensor_parallel)
    yield "--pp_size", str(job.pipeline_parallel)
    if job.shape.experts:
        yield "--ep_size", str(min(job.expert_parallel, job.tensor_parallel))
    if (running := _running(job)) is not None:
        yield "--max_batch_size", str(running)
    if inference.max_num_batched_tokens is not None:
        yield "--max_num_tokens", str(inference.max_num_batched_tokens)
    yield "--max_seq_len", str(_length(job))
    yield "--kv_cache_free_gpu_memory_fraction", str(inference.gpu_memory_utilization)
    yield "--extra_llm_api_options", TENSORRT_OPTIONS


def _tensorrt_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    if job.data_parallel > 1:
        yield f"{job.data_parallel} replicas: start this command once for each"
    if job.expert_parallel > job.tensor_parallel:
        yield f"{job.expert_parallel}-way expert parallel: TensorRT-LLM spreads the experts inside tensor parallel"
    if inference.weights_format not in _TYPES:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format"
    if inference.kv_cache not in {*_TENSORRT_CACHE, _sixteen_bits(job)}:
        yield f"KV cache in {inference.kv_cache}: the type of the weights is written"
    yield "the share of memory is of what weights leave free, not of all memory"


def _llamacpp(job: Job) -> Arguments:
    inference = job.plan.inference
    requests = _running(job) or 1
    cache = _LLAMACPP_CACHE.get(inference.kv_cache, inference.kv_cache)
    yield "--model", '"${MODEL:?path of the GGUF file}"'
    yield "--ctx-size", str(_length(job) * requests)
    yield "--parallel", str(requests)
    if inference.max_num_batched_tokens is not None:
        yield "--batch-size", str(inference.max_num_batched_tokens)
    if inference.num_speculative_tokens > 0:
        yield "--model-draft", '"${DRAFT:?path of the draft\'s GGUF file}"'
        yield "--draft-max", str(inference.num_speculative_tokens)
    yield "--n-predict", str(inference.output_tokens)
    yield "--n-gpu-layers", _gpu_layers(job)
    yield "--flash-attn", "on"
    yield "--cache-type-k", cache
    yield "--cache-type-v", cache
    if job.tensor_parallel > 1:
        yield "--split-mode", "row"
    elif job.pipeline_parallel > 1:
        yield "--split-mode", "layer"


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
    if inference.request_rate is not None:
        yield f"{inference.request_rate:g} requests a second: whoever sends them decides that"
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
    return job.plan.inference.weights_format if job.plan.inference.weights_format in _TYPES else "bf16"
