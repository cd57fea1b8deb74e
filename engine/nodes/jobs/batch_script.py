"""The batch script of a job under Slurm: its resources, and how it continues after its time limit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.nodes.jobs.job_request import GRACE_SECONDS, PROGRAM, JobRequest, Launch, duration_of

_PLAIN = re.compile(r"[\w.@+:/,=%*\[\]-]+")
_OPTION = re.compile(r"--?[a-z][\w-]*(?:[= ][^\n\r\0]*)?", re.IGNORECASE)
_MIB = 2**20
_END = "END_OF_PLAN"
_STEP = (
    "trap 'scancel --signal=TERM \"$SLURM_JOB_ID\"' TERM; "
    '"$0" "$@" & step=$!; wait "$step"; code=$?; '
    'while kill -0 "$step" 2>/dev/null; do wait "$step"; code=$?; done; exit "$code"'
)
"""Starts a step and forwards the signal to end to its tasks on all nodes: srun itself would kill them at once."""


@dataclass(frozen=True)
class SlurmOptions:
    """Slurm options of the user besides what the plan needs.

    Attributes:
        qos: quality of service.
        more: further options of sbatch, as they are typed.
    """

    account: str = ""
    qos: str = ""
    more: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would read as something else in a script."""
        for name, value in (("account", self.account), ("qos", self.qos)):
            if value and not _PLAIN.fullmatch(value):
                raise QueueError(f"--{name} {value!r}: no such name", hint="letters, digits and . _ - @ + : / make one")
        for option in self.more:
            if not _OPTION.fullmatch(option):
                raise QueueError(f"{option!r} is no option of sbatch", hint="write one as in --option=--constraint=ib")


def batch_script(
    request: JobRequest,
    launch: Launch,
    options: SlurmOptions,
    plan_text: str,
    partition: str = "",
    gpu_type: str = "",
    most_seconds: float | None = None,
) -> str:
    """Return the script.

    Args:
        plan_text: the plan as YAML, for the guard.
        partition: where it goes; the cluster's default one where empty.
        gpu_type: of the partition's GPUs, in its own word; empty where they have none.
        most_seconds: that a job may run there.
    """
    turns = request.turns(most_seconds)
    heads = [f"#SBATCH {line}" for line in _asked(request, launch, options, partition, gpu_type, most_seconds)]
    body = [*_setting_up(launch, plan_text), *_running(request, launch), *_ending(request, turns)]
    return "\n".join(("#!/bin/bash", *heads, "", *body, ""))


def _asked(
    request: JobRequest, launch: Launch, options: SlurmOptions, partition: str, gpu_type: str, most: float | None
) -> Iterator[str]:
    tasks = request.per_node if launch.is_per_device else 1
    yield f"--job-name={request.name}"
    if partition:
        yield f"--partition={partition}"
    if options.account:
        yield f"--account={options.account}"
    if options.qos:
        yield f"--qos={options.qos}"
    yield f"--nodes={request.nodes}"
    yield f"--ntasks-per-node={tasks}"
    if request.is_on_gpus:
        yield f"--gres=gpu:{f'{gpu_type}:' if gpu_type else ''}{request.per_node}"
    if request.processors_per_node and not request.whole_nodes:
        yield f"--cpus-per-task={-(-request.processors_per_node // tasks)}"
    if request.whole_nodes:
        yield "--exclusive"
        yield "--mem=0"
    elif request.memory_per_node_bytes:
        yield f"--mem={-(-int(request.memory_per_node_bytes) // _MIB)}M"
    grace = GRACE_SECONDS
    if request.limit_seconds is not None:
        seconds = request.limit_seconds if most is None else min(request.limit_seconds, most)
        yield f"--time={duration_of(seconds)}"
        grace = min(grace, int(seconds / 2))
    yield "--requeue" if request.resumes else "--no-requeue"
    yield "--open-mode=append"
    yield f"--signal=B:USR1@{grace}"
    yield f"--output={request.name}-%j.out"
    yield from options.more


def _setting_up(launch: Launch, plan_text: str) -> Iterator[str]:
    yield 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    yield "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))"
    yield 'export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-}"  # steps do not inherit it'
    yield '[ -n "$SRUN_CPUS_PER_TASK" ] || unset SRUN_CPUS_PER_TASK'
    if launch.is_guarded:
        end = unused_end(plan_text)
        yield f"if ! command -v {PROGRAM} >/dev/null; then"
        yield f'    echo "{PROGRAM} is not installed on $(hostname): install it there, or submit with --no-guard" >&2'
        yield "    exit 3"
        yield "fi"
        yield 'plan=$(mktemp "${TMPDIR:-/tmp}/plan-XXXXXX.yaml")'
        yield "trap 'rm -f \"$plan\"' EXIT"
        yield f"cat > \"$plan\" <<'{end}'"
        yield plan_text.rstrip("\n")
        yield end
    yield ""


def _running(request: JobRequest, launch: Launch) -> Iterator[str]:
    meeting = (
        ["--standalone"]
        if request.nodes == 1
        else [
            f"--nnodes={request.nodes}",
            "--rdzv-backend=c10d",
            '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
            '--rdzv-id="$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"',
        ]
    )
    step = f"bash -c {shlex.quote(_STEP)} srun --kill-on-bad-exit=1 {launch.torchrun(request, meeting)}"
    yield "# USR1 comes before the time ends: what runs is told to save and to end."
    yield "ending="
    yield "trap 'ending=yes; kill -TERM \"$run\" 2>/dev/null' USR1"
    yield f"{launch.guarded(step)} &"
    yield "run=$!"
    yield 'wait "$run"'
    yield "code=$?"
    yield 'while kill -0 "$run" 2>/dev/null; do  # a signal ends the wait, not the run'
    yield '    wait "$run"'
    yield "    code=$?"
    yield "done"


def _ending(request: JobRequest, turns: int) -> Iterator[str]:
    if request.resumes:
        most = turns - 1 + request.most_restarts
        yield "# Turns that came to the end of their time are counted here: Slurm counts pre-emptions with them."
        yield f'turns=".{request.name}-$SLURM_JOB_ID.turns"'
        yield 'if [ -n "$ending" ]; then'
        yield '    echo "$(date) $code" >> "$turns"'
        yield f'    if [ "$(wc -l < "$turns")" -le {most} ]; then'
        yield '        scontrol requeue "$SLURM_JOB_ID"  # the next turn goes on from the newest checkpoint'
        yield '        exit "$code"'
        yield "    fi"
        yield "fi"
        yield 'rm -f "$turns"'
    yield 'exit "$code"'


def unused_end(text: str) -> str:
    """Return a word that no line of a text is, to end the text with."""
    end, lines = _END, set(text.splitlines())
    while end in lines:
        end += "_"
    return end
