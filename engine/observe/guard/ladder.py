"""What is done next about a run in trouble: one bounded change of its plan, or nothing. Nothing is run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.advice.remedies import remedies
from capacity_tui.engine.choose.candidates.candidate import Candidate, EstimatedPlan
from capacity_tui.engine.estimate.estimate import Answer
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.observe.guard.failures import Failure
from capacity_tui.engine.observe.guard.step import Step, Taken, most_restarts, restarts_of
from capacity_tui.engine.plan.all_fields import all_fields
from capacity_tui.engine.schema.field_types import AUTO
from capacity_tui.engine.units import format_bytes, format_percent
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

LEAST_SAVED = 0.05
"""Share of the estimated memory that a step has to save, so that it is worth a restart."""
RESERVED, HOST, STEP = Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_HOST_BYTES, Figure.STEP_SECONDS
# Remedies of the plan by the pieces of advice that have the same change.
_ADVICE: Mapping[str, str] = {
    "micro_batch": "smaller_micro_batch",
    "checkpointing": "checkpointing",
    "precision": "mixed_precision",
    "offload": "offload",
    "sequence": "sequence_length",
}
# What of a plan asks for something to be done, by the kind of failure.
_ASKED_BY: Mapping[str, str] = {
    kind: f"recovery.{kind}" for kind in ("out_of_memory", "device_lost", "unstable", "hang")
}
# Values of these that ask for nothing.
_LEFT_ALONE = ((), "stop", "warn", AUTO)
_VISIBLE = "CUDA_VISIBLE_DEVICES"

Change: TypeAlias = Mapping[str, object]


def next_step(
    answer: Answer,
    failure: Failure,
    taken: Taken = (),
    machine: Machine | None = None,
    catalog: Catalog | None = None,
    detect: Callable[[], Machine] | None = None,
) -> Step | None:
    """Return what is done next about a run in trouble, as its plan wants it; None where it is only told.

    Args:
        answer: the plan as the run has it, filled in and estimated.
        failure: why it ended, or is about to.
        taken: steps of this run so far, the newest last.
        machine: the machine it runs on, where its plan does not name one.
        catalog: facts.
        detect: finds out about the machine it runs on, for what only its processor can still do; None where that is
            another machine than this.
    """
    recovery, facts = answer.plan.recovery, catalog or load_catalog()
    if restarts_of(taken) >= most_restarts(answer):
        return None
    case = EstimatedPlan(answer.plan, answer.resolved, answer.estimate, facts, machine)
    if failure.kind == "out_of_memory":
        return _less_memory(case, failure, detect)
    if failure.kind == "device_lost":
        return _fewer_devices(case, failure, detect)
    if failure.kind == "unstable" and recovery.unstable == "accumulate":
        return _more_accumulation(case, failure)
    if failure.kind == "hang" and recovery.hang == "restart":
        reason = f"started again as it was: {failure.name}"
        return Step("hang", "restart", {}, {}, answer, reason)
    return None


def why_no_step(answer: Answer, failure: Failure, taken: Taken = ()) -> str:
    """Return why ``next_step`` knows of nothing to do about a run in trouble; empty where no plan could ask for any.

    Args:
        answer: the plan as the run has it, filled in and estimated.
        failure: why it ended, or is about to.
        taken: steps of this run so far.
    """
    key = _ASKED_BY.get(failure.kind)
    if key is None:
        return ""
    most, wanted = most_restarts(answer), answer.plan.value(key)
    if restarts_of(taken) >= most:
        return f"not started again: recovery.max_restarts is {most}"
    if not isinstance(wanted, tuple) or not wanted:
        is_tried = wanted not in _LEFT_ALONE
        return f"not started again: {key} is {wanted or 'empty'}{', which cannot be done here' if is_tried else ''}"
    named, least = ", ".join(map(str, wanted)), format_percent(LEAST_SAVED)
    return f"not started again: nothing of {key} ({named}) saves {least} of the memory and keeps the batch"


def _less_memory(case: EstimatedPlan, failure: Failure, detect: Callable[[], Machine] | None) -> Step | None:
    """Return the first remedy of the plan's that saves enough; of one whose values all save too little, the most."""
    wanted = case.plan.recovery.out_of_memory
    on_host = failure.where == "host" and case.resolved.cluster.device.kind != "cpu"
    key = HOST if on_host else RESERVED
    before, most = _figure(case.estimate, key), _room(case, key)
    for remedy in () if wanted == "auto" else wanted:
        if remedy == "processor":
            trials = [] if on_host or (fallback := _on_processor(case, detect)) is None else [fallback]
        else:
            changes = _host_changes(case, remedy) if on_host else _changes(case, remedy)
            trials = [trial for change in changes if (trial := _whole_steps(case, change)) is not None]
        saving = [trial for trial in trials if _figure(trial.estimate, key) <= before * (1.0 - LEAST_SAVED)]
        if saving:
            enough = next((trial for trial in saving if _figure(trial.estimate, key) <= most), saving[-1])
            return _step(case, failure, remedy, enough, of=key)
    return None


def _whole_steps(case: EstimatedPlan, change: Change) -> Candidate | None:
    """Return a changed plan's estimate; None where such a plan cannot be, or cannot keep its global batch."""
    trial = case.changed(change)
    if trial.filled is None:
        return None
    training, parallel = trial.filled.plan.training, trial.filled.plan.parallelism
    at_once = int(training.micro_batch) * int(parallel.dp or 1)
    return trial if int(training.global_batch or at_once) % at_once == 0 else None


def _changes(case: EstimatedPlan, remedy: str) -> Iterator[Change]:
    """Yield the changes of a remedy, the gentlest first."""
    plan = case.plan
    for advice in remedies(case):
        if advice.code == _ADVICE[remedy]:
            more: dict[str, object] = {Key.TRAINING_GLOBAL_BATCH: 2 * int(plan.training.global_batch or 1)}
            yield {**advice.change, **(more if remedy == "sequence" else {})}
    if remedy == "checkpointing" and plan.training.checkpointing not in ("none", "full"):
        yield {Key.TRAINING_CHECKPOINTING: "full"}


def _host_changes(case: EstimatedPlan, remedy: str) -> Iterator[Change]:
    """Yield what saves memory of the machine itself, in the place of remedies that save memory of its devices."""
    if remedy == "offload" and case.plan.parallelism.offload != "none":
        yield {Key.PARALLELISM_OFFLOAD: "none"}
    workers = case.plan.value(Key.DATA_WORKERS)
    if remedy == "micro_batch" and isinstance(workers, int) and workers > 1:
        yield {Key.DATA_WORKERS: workers // 2}


def _on_processor(case: EstimatedPlan, detect: Callable[[], Machine] | None) -> Candidate | None:
    """Return a run on the processor of its machine, in a precision that this has units for; None where it is there.

    The micro-batch is halved, with the global batch kept, until the run fits.
    """
    if case.resolved.cluster.device.kind == "cpu":
        return None
    machine = detect() if case.machine is None and detect is not None else case.machine
    cpu_machine = None if machine is None else replace(machine, accelerators=())
    named = None if cpu_machine is None else cpu_machine.cpu.catalogue_id.value
    usual = next(iter(case.catalog.processors)) if cpu_machine is None else "detected"
    one = {f"parallelism.{size}": 1 for size in ("tp", "pp", "cp", "ep")}
    change: dict[str, object] = {Key.HARDWARE_NAME: named or usual, Key.HARDWARE_DEVICES: 1, **one}
    change[Key.PARALLELISM_OFFLOAD] = "none"
    there = replace(case, machine=cpu_machine)
    trial = _whole_steps(there, change)
    runs_as = {} if trial is None else trial.made.resolved.cluster.device.runs_as
    precision = given = str(case.plan.training.precision)
    while precision in runs_as:
        precision = runs_as[precision]
    if precision != given:
        change[Key.TRAINING_PRECISION] = precision
        trial = _whole_steps(there, change) or trial
    micro_batch = int(case.plan.training.micro_batch)
    while trial is not None and trial.estimate.verdict is Verdict.DOES_NOT_FIT and micro_batch > 1:
        micro_batch //= 2
        trial = _whole_steps(there, {**change, Key.TRAINING_MICRO_BATCH: micro_batch}) or trial
    return trial


def _fewer_devices(case: EstimatedPlan, failure: Failure, detect: Callable[[], Machine] | None) -> Step | None:
    """Return the run on the most devices that are left, with the same global batch; else on the processor."""
    wanted, devices = case.plan.recovery.device_lost, int(np.max(case.resolved.cluster.devices))
    if wanted == "fewer" and case.resolved.cluster.device.kind != "cpu":
        for count in range(devices - 1, 0, -1):
            trial = _whole_steps(case, {Key.HARDWARE_DEVICES: count})
            if trial is not None and trial.estimate.verdict is not Verdict.DOES_NOT_FIT:
                environment = _left(devices, count, failure.device)
                return _step(case, failure, "fewer", trial, environment=environment)
    if wanted in ("fewer", "processor"):
        fallback = _on_processor(case, detect)
        return None if fallback is None else _step(case, failure, "processor", fallback, environment={_VISIBLE: ""})
    return None


def _left(devices: int, count: int, lost: int | None) -> dict[str, str]:
    """Return the variable by which a command sees the devices that are left, where it is known which is lost."""
    if lost is None:
        return {}
    left = [device for device in range(devices) if device != lost]
    return {_VISIBLE: ",".join(map(str, left[:count]))}


def _more_accumulation(case: EstimatedPlan, failure: Failure) -> Step | None:
    """Return the run from the checkpoint before, with twice the sequences a step and half the steps."""
    training = case.plan.training
    change: dict[str, object] = {Key.TRAINING_GLOBAL_BATCH: 2 * int(training.global_batch or 1)}
    if training.steps is not None:
        change[Key.TRAINING_STEPS] = max(1, training.steps // 2)
    trial = case.changed(change)
    return None if trial.filled is None else _step(case, failure, "accumulate", trial, is_before=True)


def _step(
    case: EstimatedPlan,
    failure: Failure,
    remedy: str,
    trial: Candidate,
    *,
    is_before: bool = False,
    environment: Mapping[str, str] | None = None,
    of: str = RESERVED,
) -> Step:
    before = {path: case.plan.value(path) for path in trial.change}
    after = {path: trial.made.resolved.plan.value(path) for path in trial.change}
    change = {path: value for path, value in after.items() if value != before[path]}
    figures = {key: (_figure(case.estimate, key), _figure(trial.estimate, key)) for key in (of, STEP)}
    # What the mode chose for the run while it goes on stays its choice.
    basis = replace(trial.estimate.basis, running=case.estimate.basis.running)
    return Step(
        failure.kind,
        remedy,
        change,
        {path: before[path] for path in change},
        Answer(trial.made.resolved, replace(trial.estimate, basis=basis)),
        _reason(failure, change, before, figures[of]),
        figures,
        "before" if is_before else "newest",
        environment or {},
    )


def _reason(failure: Failure, change: Change, before: Change, memory: tuple[float, float]) -> str:
    """Return what is done and why, in a sentence."""
    parts = [f"{_label(path)} {_word(before[path])} to {_word(value)}" for path, value in change.items()]
    saved = f", {format_bytes(memory[0])} to {format_bytes(memory[1])} estimated" if memory[0] != memory[1] else ""
    return f"{', '.join(parts)}{saved}: {failure.name}"


def _label(path: str) -> str:
    known = all_fields().get(path)
    return path if known is None else known.knob.label


def _word(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _room(case: EstimatedPlan, key: str) -> float:
    """Return the most that a run may take so that it stays below what the plan calls full."""
    capacity, share = case.estimate.memory.capacity_bytes, case.plan.watch.memory_share
    if key != RESERVED or capacity is None or not isinstance(share, float):
        return np.inf
    # It needed more than there was, whatever was estimated: what is estimated has to shrink as if it had been all.
    estimated = max(1.0, _figure(case.estimate, key) / float(np.max(np.asarray(capacity))))
    return share * _figure(case.estimate, key) / estimated


def _figure(estimate: Estimate, key: str) -> float:
    if key == STEP:
        return float(np.max(np.asarray(estimate.computation.step_seconds.value)))
    memory = estimate.memory
    return float(np.max(np.asarray(memory.reserved_bytes.value if key == RESERVED else memory.host_bytes)))
