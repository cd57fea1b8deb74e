"""Commands that start a training on every node and have it go on, and commands that serve a model."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import counted, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.present.frameworks.exports import (
    as_yaml,
    command,
    comment,
    exported,
    exported_arguments,
    exported_remarks,
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
OLLAMA = "Ollama 0.33 (docs/modelfile.md and docs/faq.md)"
MODELFILE = "Modelfile"
TENSORRT_OPTIONS = "llm_api_options.yaml"
_OF_GGUF_FILES = ("llamacpp", "ollama")
_SIXTEEN_BITS_AND_MORE = ("bf16", "fp16", "fp32")
_LLAMACPP_CACHE = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8": "q8_0", "int8": "q8_0"}


@dataclass(frozen=True, slots=True)
class Server:
    """A program that serves a model."""

    heading: str  # for which release its command is written
    words: Callable[[Job], Sequence[str]]  # the program, and what stands before its options
    block: str  # rows of its options; what of a plan it has none for stands in those of ``limits`` behind the same name
    file: str  # what its command is written to

    def remarks(self, job: Job) -> Iterator[str]:
        """Yield what of a plan it has no option for."""
        return _remarks(self.block, job)

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
    heading, remarks = [f"Written for {OLLAMA}."], list(_remarks("ollama", job))
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
    kept = inference.weights_format if inference.weights_format in _SIXTEEN_BITS_AND_MORE else "bf16"
    split = "row" if job.tensor_parallel > 1 else "layer" if job.pipeline_parallel > 1 else None
    return {
        "inference": inference,
        "length": _length(job),
        "running": running,
        "model_word": _model(job),
        "guesses": json.dumps(guesses) if inference.num_speculative_tokens else None,
        "drafted": inference.num_speculative_tokens + 1,
        "spread": job.tensor_parallel * job.data_parallel,
        "spreads_all": job.expert_parallel == job.tensor_parallel * job.data_parallel,
        "experts_outside": job.expert_parallel > job.tensor_parallel,
        "experts_over": min(job.expert_parallel, job.tensor_parallel) if job.shape.experts else None,
        "requests": running or 1,
        "context": _length(job) * (running or 1),
        "gpu_layers": _gpu_layers(job),
        "cache_of_weights": inference.kv_cache == kept,
        "cache_type": _LLAMACPP_CACHE.get(inference.kv_cache, inference.kv_cache),
        "split_mode": split,
    }


def _gpu_layers(job: Job) -> str:
    given = job.plan.inference.gpu_layers
    if given is not None:
        return str(given)
    return "0" if job.on_cpu else "all"


def _remarks(block: str, job: Job) -> Iterator[str]:
    """Yield what neither the command of an engine says of a plan nor its files."""
    inference, by_name = job.plan.inference, block not in _OF_GGUF_FILES
    if not by_name:
        yield f"the model: a GGUF file of {job.model} in {inference.weights_format}"
    if inference.arrival_rate is not None:
        yield f"{inference.arrival_rate:g} requests a second: whoever sends them decides that"
    if by_name and inference.num_speculative_tokens > 0:
        yield "the draft: put its name in the place of DRAFT"
    yield from layout_remarks(job)
    yield from exported_remarks("serving_limits", job, by_name=by_name, **_values(job))
    yield from exported_remarks(f"{block}_limits", job, **_values(job))


SERVERS: Mapping[str, Server] = {
    "vllm": Server(VLLM, lambda job: ("vllm", "serve", _model(job)), "vllm", "vllm_serve.sh"),
    "sglang": Server(SGLANG, lambda _: ("python3", "-m", "sglang.launch_server"), "sglang", "sglang_serve.sh"),
    "tensorrt-llm": Server(TENSORRT, lambda job: ("trtllm-serve", _model(job)), "tensorrt", "trtllm_serve.sh"),
    "llamacpp": Server(LLAMACPP, lambda _: ("llama-server",), "llamacpp", "llama_server.sh"),
    "tgi": Server(TGI, lambda _: ("text-generation-launcher",), "tgi", "tgi_launcher.sh"),
}
"""Programs that serve a model, by row of ``engines.yaml``."""


def serving_files(engine: str, job: Job) -> Iterator[tuple[str, str]]:
    """Yield the files that serve a plan with an engine; none for one that none are known of."""
    if engine == "ollama":
        yield from ollama_files(job)
    elif engine in SERVERS:
        yield SERVERS[engine].file, SERVERS[engine].script(job)
    if engine == "tensorrt-llm":
        yield TENSORRT_OPTIONS, tensorrt_options(job)
