"""Commands that start a training on every node and have it go on, and commands that serve a model."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import counted, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.exports import (
    as_yaml,
    command,
    comment,
    exported,
    exported_arguments,
    known_values,
    limits,
    script,
)
from capacity_tui.engine.present.frameworks.job import Job, layout_remarks
from capacity_tui.engine.present.frameworks.trainer import ACCELERATE_FILE, DEEPSPEED_FILE
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard import CHECKPOINT

DEFAULT_COMMAND = ("train.py",)
_PYTHON = ("python", "python3")
PORT = round(counted("meeting-port"))
_VARIABLE = "checkpoint"


def resuming(words: Sequence[str]) -> str:
    """Return a command as text of a shell that fills in the newest checkpoint where there is one.

    A word that asks for it is left out with the option before it where there is none.
    """
    mark, parts = f"{{{CHECKPOINT}}}", list[str]()
    for word in words:
        before, is_asked, after = word.partition(mark)
        if not is_asked:
            parts.append(shlex.quote(word))
            continue
        filled = "".join((before and shlex.quote(before), f'"${_VARIABLE}"', after and shlex.quote(after)))
        takes = word == mark and parts and parts[-1].startswith("-") and "=" not in parts[-1]
        option = f"{parts.pop()} " if takes else ""
        parts.append(f"${{{_VARIABLE}:+{option}{filled}}}")
    return " ".join(parts)


def newest_checkpoint(folder: str) -> str:
    """Return lines of bash that find the newest complete checkpoint in a folder, by what the catalogue knows of them.

    Raises:
        PlanError: no folder is named.
    """
    if len(folder.split()) != 1:
        raise PlanError(
            f"the command has {{{CHECKPOINT}}}, but the checkpoint folder is not given",
            hint="add --checkpoints DIR, without blanks",
        )
    rows = [row for row in load_catalog().checkpoint_files.values() if row.holds or row.newest]
    globs = " ".join(f"{shlex.quote(folder)}/{name}" for row in rows for name in row.names)
    lines = [f"{_VARIABLE}=", f"for found in $(ls -td {globs} 2>/dev/null); do", "case ${found##*/} in"]
    for row in rows:
        tests = [f'ls "$found"/{glob} >/dev/null 2>&1' for glob in row.holds]
        if row.newest:
            tests.append(f'[[ "$found" =~ [a-z_]0*"$(tr -dc 0-9 <"${{found%/*}}/{row.newest}")"$ ]]')
        lines.append(f"{'|'.join(row.names)}) {' && '.join(tests)} || continue ;;")
    lines += ["esac", f"{_VARIABLE}=$found", "break", "done", ""]
    return "\n".join(lines)


def script_words(words: Sequence[str]) -> Sequence[str]:
    """Return a command as launchers take it: a script of Python without Python itself; other programs as they are."""
    is_script = len(words) > 1 and words[0] in _PYTHON and words[1].endswith(".py")
    return words[1:] if is_script else words or DEFAULT_COMMAND


def launch_command(program: str, job: Job, words: Sequence[str]) -> str:
    """Return the command that starts a training on every node of a plan with one of the usual programs."""
    script, head = list(script_words(words)), '"${MASTER_ADDR:?first node}"'
    rank, several = '"${NODE_RANK:?number of this node}"', job.nodes > 1
    options: list[Sequence[str]] = []
    if program == "torchrun":
        meeting = (("--node-rank", rank), ("--master-addr", head), ("--master-port", str(PORT)))
        options = [(f"--nnodes={job.nodes}",), *meeting] if several else [("--standalone",)]
        return command(["torchrun"], [(f"--nproc-per-node={job.per_node}",), *options, script])
    if program == "accelerate":
        meeting = (("--machine_rank", rank), ("--main_process_ip", head), ("--main_process_port", str(PORT)))
        options = [("--config_file", ACCELERATE_FILE), *(meeting if several else ())]
        return command(["accelerate", "launch"], [*options, script])
    if program == "deepspeed":
        options = [("--num_nodes", str(job.nodes)), ("--hostfile", "hostfile")] if several else []
        script += ["--deepspeed", DEEPSPEED_FILE]
        return command(["deepspeed"], [*options, ("--num_gpus", str(job.per_node)), script])
    options = [("--hostfile", "hostfile")] if several else []
    counts = (("-np", str(job.devices)), ("--map-by", f"ppr:{job.per_node}:node"))
    return command(["mpirun"], [*counts, *options, ("-x", "MASTER_ADDR"), ["python3", *script]])


LAUNCHERS: Mapping[str, str] = {
    "torchrun": "PyTorch 2 (torch/distributed/run.py)",
    "accelerate": "Accelerate 1 (accelerate/commands/launch.py)",
    "deepspeed": "DeepSpeed 0.17 (deepspeed/launcher/runner.py)",
    "mpirun": "Open MPI 4 and 5",
}
"""Programs that start the processes of a training, and the release that their command is written for."""


VLLM = "vLLM 0.10 and later (vllm/engine/arg_utils.py)"
SGLANG = "SGLang 0.5 (srt/server_args.py)"
TENSORRT = "TensorRT-LLM 1.0 and later (tensorrt_llm/commands/serve.py)"
LLAMACPP = "llama.cpp's llama-server of 2026 (tools/server/README.md)"
TGI = "Text Generation Inference 3 (launcher/src/main.rs)"
OLLAMA = "Ollama 0.12 (docs/modelfile.md and docs/faq.md)"
MODELFILE = "Modelfile"
TENSORRT_OPTIONS = "llm_api_options.yaml"
_SIXTEEN_BITS_AND_MORE = ("bf16", "fp16", "fp32")
_LLAMACPP_CACHE = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8": "q8_0", "int8": "q8_0"}


@dataclass(frozen=True, slots=True)
class Server:
    """A program that serves a model."""

    heading: str  # for which release its command is written
    words: Callable[[Job], Sequence[str]]  # the program, and what stands before its options
    block: str  # rows of its options
    remarks: Callable[[Job], Iterator[str]]  # yields what of a plan it has no option for

    def command(self, job: Job) -> str:
        """Return the command, one option a line."""
        return command(self.words(job), exported_arguments(self.block, job, **_values(job)))

    def script(self, job: Job) -> str:
        """Return the command as a script, with what it does not say."""
        return script([f"Written for {self.heading}."], list(self.remarks(job)), self.command(job))


def tensorrt_options(job: Job) -> str:
    """Return the options that TensorRT-LLM reads from a file."""
    options = exported("tensorrt_options", job, **_values(job))
    return as_yaml([f"Written for {TENSORRT}."], [], options)


def ollama_files(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the Modelfile of a plan, and the commands that serve it with Ollama."""
    heading, remarks = [f"Written for {OLLAMA}."], list(_gguf_remarks(job))
    remarks += _adapter_remarks(job, "a Modelfile has one (ADAPTER), and the weights are loaded for each again")
    parameters = exported("ollama", job, **_values(job)).items()
    lines = (f"PARAMETER {name} {value}\n" for name, value in parameters)
    yield MODELFILE, f"{comment(heading)}{limits(remarks)}FROM ./model.gguf\n{''.join(lines)}"
    variables = exported("ollama_environment", job, **_values(job)).items()
    exports = "".join(f"export {name}={value}\n" for name, value in variables)
    name = job.model.rpartition("/")[2].casefold()
    body = f"{exports}ollama serve &\nsleep 5\nollama create {shlex.quote(name)} -f {MODELFILE}\nwait\n"
    yield "ollama.sh", script(heading, [], body)


def _model(job: Job) -> str:
    """Return the model's name, or a word the shell asks for: the name of a model on the hub needs no quotes."""
    return job.model if job.on_hub else '"${MODEL:?folder of the checkpoint}"'


def _tgi_remarks(job: Job) -> Iterator[str]:
    inference = job.plan.inference
    yield from _serving_remarks(job)
    yield from _adapter_remarks(job, "name them behind --lora-adapters, with commas between them")
    if job.data_parallel > 1:
        yield f"{job.data_parallel} replicas: start this command once for each"
    if inference.weights_format not in {*_SIXTEEN_BITS_AND_MORE, *tool("tgi").words("quantize")}:
        yield f"weights in {inference.weights_format}: the checkpoint must be in this format"


def _adapter_remarks(job: Job, how: str) -> Iterator[str]:
    """Yield that an engine takes adapters by their files, which a plan does not name."""
    if job.plan.inference.adapters:
        yield f"{job.plan.inference.adapters} adapters of rank {job.plan.inference.adapter_rank}: {how}"


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
    yield from _gguf_remarks(job)
    yield from _adapter_remarks(job, "add --lora with the GGUF file of each")


def _gguf_remarks(job: Job) -> Iterator[str]:
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


SERVERS: Mapping[str, Server] = {
    "vllm": Server(VLLM, lambda job: ("vllm", "serve", _model(job)), "vllm", _vllm_remarks),
    "sglang": Server(SGLANG, lambda _: ("python3", "-m", "sglang.launch_server"), "sglang", _sglang_remarks),
    "tensorrt-llm": Server(TENSORRT, lambda job: ("trtllm-serve", _model(job)), "tensorrt", _tensorrt_remarks),
    "llamacpp": Server(LLAMACPP, lambda _: ("llama-server",), "llamacpp", _llamacpp_remarks),
    "tgi": Server(TGI, lambda _: ("text-generation-launcher",), "tgi", _tgi_remarks),
}
"""Programs that serve a model, by row of ``engines.yaml``."""
SERVER_FILES: Mapping[str, str] = {
    "vllm": "vllm_serve.sh",
    "sglang": "sglang_serve.sh",
    "tensorrt-llm": "trtllm_serve.sh",
    "llamacpp": "llama_server.sh",
    "tgi": "tgi_launcher.sh",
}


def serving_files(engine: str, job: Job) -> Iterator[tuple[str, str]]:
    """Yield the files that serve a plan with an engine; none for one that none are known of."""
    if engine == "ollama":
        yield from ollama_files(job)
    elif engine in SERVERS:
        yield SERVER_FILES[engine], SERVERS[engine].script(job)
    if engine == "tensorrt-llm":
        yield TENSORRT_OPTIONS, tensorrt_options(job)
