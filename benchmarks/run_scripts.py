"""What a script of a shell starts: it is run in a sandbox (bubblewrap) in which programs only write down their words.

The shell itself says what its variables, arrays, loops and here-documents come to, so that this shares no code with
the reader of scripts in the engine. Text tools (``sed``, ``head`` ...) are the real ones, and nothing else runs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

REAL = (
    *("awk", "basename", "bash", "cat", "cut", "date", "dirname", "echo", "expr", "false", "grep", "head", "id", "ls"),
    *("nproc", "printf", "pwd", "readlink", "realpath", "sed", "seq", "shuf", "sort", "test", "tr", "true", "uname"),
    *("uniq", "wc"),
)
SECONDS = 20  # Longer than any script takes that starts nothing
NODES = 8  # Of a job whose head names no number
WRITES_DOWN = r"""
command_not_found_handle() {
  printf '%s\0' "$@" $'\x1e' >> "$CALLS"
  while shift; do
    case $1 in
      bash | sh) shift; bash "$@"; return ;;
      python | python3 | torchrun | deepspeed | accelerate | vllm) command_not_found_handle "$@"; return ;;
    esac
  done
}
write_options() {
  for name in $(compgen -A variable | grep -i 'arg\|opt'); do
    declare -n options=$name
    command_not_found_handle options ${options[@]}
  done
}
export -f command_not_found_handle
trap write_options EXIT
"""
_HEAD = re.compile(r"^#SBATCH +(?:--nodes|-N)[ =]+(\d+)", re.MULTILINE)
_STOPS = re.compile(r"^(\s*)(?:source|\.) |^set -.*$", re.MULTILINE)  # What is read in is not there, and is no mistake
_NUMBER = re.compile(r"-?[\d.e-]+")


def started(script: Path) -> list[list[str]]:
    """Return the words of each program that a script starts, then of the variables that hold options.

    Nothing comes back where bubblewrap is not installed.
    """
    if shutil.which("bwrap") is None:
        return []
    text = script.read_text(encoding="utf-8", errors="replace")
    head = _HEAD.search(text)
    nodes = head[1] if head else str(NODES)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        (out / "script.sh").write_text(WRITES_DOWN + _STOPS.sub(r"\1: ", text), encoding="utf-8")
        (out / "programs").mkdir()
        for program in REAL:
            if place := shutil.which(program):
                (out / "programs" / program).symlink_to(place)
        variables = {
            "PATH": str(out / "programs"),
            "CALLS": str(out / "calls"),
            "HOME": "/root",
            "USER": "user",
            "SLURM_SUBMIT_DIR": str(script.parent),
            **dict.fromkeys(("SLURM_JOBID", "SLURM_JOB_ID"), "1"),
            **dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID"), "0"),
            **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS"), nodes),
            "SLURM_GPUS_PER_NODE": "8",
        }
        given = [part for key, value in variables.items() for part in ("--setenv", key, value)]
        sandbox = f"bwrap --ro-bind / / --dev /dev --proc /proc --bind {out} {out} --unshare-all --die-with-parent"
        words = [
            *sandbox.split(),
            "--chdir",
            str(script.parent),
            "--clearenv",
            *given,
            "/bin/bash",
            str(out / "script.sh"),
        ]
        try:
            subprocess.run(words, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return []
        written = out / "calls"
        calls = written.read_text(encoding="utf-8", errors="replace") if written.exists() else ""
    return [call.split("\0")[:-1] for call in calls.split("\x1e\0") if call]


def options(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command by their names, with underscores; the last counts, as in argparse."""
    given: dict[str, str] = {}
    for at, word in enumerate(words):
        if not word.startswith("-") or _NUMBER.fullmatch(word):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        behind = words[at + 1] if at + 1 < len(words) else "-"
        is_switch = behind.startswith("-") and not _NUMBER.fullmatch(behind)
        given[name.replace("-", "_")] = value if equals else "true" if is_switch else behind
    return given


MEGATRON: Mapping[str, str] = {
    "micro_batch_size": "training.micro_batch",
    "global_batch_size": "training.global_batch",
    "tensor_model_parallel_size": "parallelism.tp",
    "pipeline_model_parallel_size": "parallelism.pp",
    "context_parallel_size": "parallelism.cp",
    "expert_model_parallel_size": "parallelism.ep",
}
VLLM: Mapping[str, str] = {
    "tensor_parallel_size": "parallelism.tp",
    "tp": "parallelism.tp",
    "pipeline_parallel_size": "parallelism.pp",
    "gpu_memory_utilization": "inference.gpu_memory_utilization",
    "max_num_batched_tokens": "inference.max_num_batched_tokens",
}


def stated_values(script: Path) -> Iterator[tuple[str, object]]:
    """Yield what the first run of Megatron-LM or vLLM that a script starts says of a plan, by field."""
    calls = started(script)
    served = next((words for words in calls if words[:2] == ["vllm", "serve"] or "api_server" in " ".join(words)), None)
    if served is not None:
        yield "task", "infer"
        given = options(served)
        yield from (
            (field, float(given[name])) for name, field in VLLM.items() if _NUMBER.fullmatch(given.get(name, ""))
        )
        return
    trained = next((words for words in calls if "bash" not in words and "--num-layers" in words), None)
    if trained is None:
        return
    given = options(trained)
    yield from ((field, number) for name, field in MEGATRON.items() if (number := _number(given, name)))
    lengths = (_number(given, f"{name}seq_length") for name in ("encoder_", "decoder_", ""))
    yield "training.seq_len", next(filter(None, lengths), None)
    if any(name.startswith("fp8") and value != "none" for name, value in given.items()):
        yield "training.precision", "fp8"
    else:
        yield "training.precision", next((name for name in ("bf16", "fp16") if name in given), None)
    if "use_distributed_optimizer" in given and not any("fsdp" in name for name in given):
        yield "parallelism.zero", 1.0


def _number(given: Mapping[str, str], name: str) -> float | None:
    """Return the number of an option; None where it has none, and where it is left to the program, as -1."""
    text = given.get(name, "")
    return float(text) if _NUMBER.fullmatch(text) and float(text) > 0 else None
