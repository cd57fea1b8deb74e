"""Commands that start a training on every node, and have it go on from its newest checkpoint."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from capacity_tui.engine.catalog import counted, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.present.frameworks.exports import command
from capacity_tui.engine.present.frameworks.job import Job
from capacity_tui.engine.present.frameworks.trainer import ACCELERATE_FILE, DEEPSPEED_FILE
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
