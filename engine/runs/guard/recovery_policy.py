"""What is done next about a run in trouble: one bounded change of its plan, or nothing. Nothing is run here.

``profiles/recovery_ladder.yaml`` says what each remedy of a plan changes; this module picks the rung.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import load_catalog, parse_shipped
from capacity_tui.engine.estimate import Answer, Estimate
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan, all_fields
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard.failures import Failure, Trouble
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve import Candidate, EstimatedPlan
from capacity_tui.engine.solve.advice import remedies
from capacity_tui.engine.units import format_bytes, format_percent
from capacity_tui.engine.verdict import Verdict

LEAST_SAVED = 0.05  # Share of the estimated memory that a step has to save, so that it is worth a restart
RESERVED, HOST, STEP = Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_HOST_BYTES, Figure.STEP_SECONDS
_LADDER = "recovery_ladder.yaml"
_INACTIVE = ((), "stop", "warn", AUTO)  # Values of a plan's recovery fields that ask for nothing
_VISIBLE = "CUDA_VISIBLE_DEVICES"
Change: TypeAlias = Mapping[str, object]
Detect: TypeAlias = "Callable[[], Machine]"
Checkpoint: TypeAlias = Literal["newest", "before"]
Taken: TypeAlias = Sequence[Mapping[str, object]]
"""Steps of a run so far, as returned by ``Step.data``, the newest last."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One entry of a remedy in the recovery ladder."""

    advice: str = ""  # code of the advice whose changes are tried; empty for none
    # new values by plan key, or ``double`` and ``half`` of the present ones
    change: Change = field(default_factory=dict)
    unless: Change = field(default_factory=dict)  # values by plan key for which the rung is left out
    move: Literal["", "fewer_devices", "processor"] = ""  # what is more than a change of values; empty for none
    memory: Literal["device", "host"] = "device"
    checkpoint: Checkpoint = "newest"  # which one to resume from, the newest or the one before

    def changes(self, case: EstimatedPlan) -> Iterator[Change]:
        """Yield the changes of a plan that it asks for, the gentlest first; none that would change nothing."""
        if any(case.plan.value(key) == value for key, value in self.unless.items()):
            return
        values = {key: _new_value(case.plan.value(key), changed) for key, changed in self.change.items()}
        values = {key: value for key, value in values.items() if value not in (None, case.plan.value(key))}
        if self.advice:
            yield from ({**advice.change, **values} for advice in remedies(case) if advice.code == self.advice)
        elif values:
            yield values


@cache
def recovery_ladder() -> Mapping[str, Mapping[str, tuple[Rung, ...]]]:
    """Return the rungs of each remedy, by failure and name."""
    return {
        kind: {name: tuple(Rung(**rung) for rung in rungs) for name, rungs in by_name.items()}
        for kind, by_name in parse_shipped(_LADDER).items()
    }


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a guarded run's plan."""

    trouble: Trouble
    remedy: str
    change: Change  # new values by plan key; empty where the plan stays
    before: Change
    answer: Answer
    reason: str  # what is done and why, in a sentence
    # result keys with what they were estimated at before and after
    figures: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    checkpoint: Checkpoint = "newest"  # which one to resume from, the newest or the one before
    environment: Mapping[str, str] = field(default_factory=dict)  # variables that let the command have fewer devices

    @property
    def plan(self) -> Plan:
        return self.answer.plan

    def data(self) -> dict[str, object]:
        """Return the step as plain data, as announced and stored."""
        return {
            "trouble": self.trouble,
            "remedy": self.remedy,
            "change": dict(self.change),
            "before": dict(self.before),
            "reason": self.reason,
            "figures": {key: {"before": before, "after": after} for key, (before, after) in self.figures.items()},
            "checkpoint": self.checkpoint,
            "environment": dict(self.environment),
        }


def next_step(
    answer: Answer, failure: Failure, steps: Taken = (), machine: Machine | None = None, detect: Detect | None = None
) -> Step | None:
    """Return what is done next about a run in trouble, as its plan wants it; None where it is only reported.

    Args:
        machine: the machine it runs on, where its plan does not name one.
        detect: detects the machine it runs on, for what only its processor can still do; None where that is another
            machine than this.
    """
    ladder = recovery_ladder().get(failure.kind)
    if ladder is None or len(steps) >= _most_restarts(answer):
        return None
    case = EstimatedPlan(answer.plan, answer.resolved, answer.estimate, load_catalog(), machine)
    wanted = answer.plan.value(_plan_key(failure))
    for remedy in wanted if isinstance(wanted, tuple) else (wanted,):
        rungs = ladder.get(str(remedy), ())
        if failure.kind == "out_of_memory":
            step = _less_memory(case, failure, str(remedy), rungs, detect)
        else:
            tried = (_rung_step(case, failure, str(remedy), rung, detect) for rung in rungs)
            step = next((step for step in tried if step is not None), None)
        if step is not None:
            return step
    return None


def why_no_step(answer: Answer, failure: Failure, steps: Taken = ()) -> str:
    """Return why ``next_step`` knows of nothing to do about a run in trouble; empty where no plan could ask for any."""
    if failure.kind not in recovery_ladder():
        return ""
    key = _plan_key(failure)
    most, wanted = _most_restarts(answer), answer.plan.value(key)
    if len(steps) >= most:
        return f"not started again: recovery.max_restarts is {most}"
    if not isinstance(wanted, tuple) or not wanted:
        is_tried = wanted not in _INACTIVE
        return f"not started again: {key} is {wanted or 'empty'}{', which cannot be done here' if is_tried else ''}"
    named, least = ", ".join(map(str, wanted)), format_percent(LEAST_SAVED)
    return f"not started again: nothing of {key} ({named}) saves {least} of the memory and keeps the batch"


def smaller_batch(
    answer: Answer, changes: Mapping[str, object], steps: Taken, machine: Machine | None = None
) -> Step | None:
    """Return the step to the micro-batch that a trainer asked for, the global batch kept by accumulation.

    None where it asked for none, where it has it already, or where the plan allows no more restarts.

    Args:
        machine: the machine it runs on, where its plan does not name one.
    """
    before, after = answer.plan.training.micro_batch, changes.get("micro_batch")
    if not isinstance(after, int) or after == before or len(steps) >= _most_restarts(answer):
        return None
    case = EstimatedPlan(answer.plan, answer.resolved, answer.estimate, load_catalog(), machine)
    trial = case.evaluate({Key.TRAINING_MICRO_BATCH: after})
    if trial.filled is None:
        return None
    return Step(
        "memory_pressure",
        "micro_batch",
        {Key.TRAINING_MICRO_BATCH: after},
        {Key.TRAINING_MICRO_BATCH: before},
        Answer(trial.filled.resolved, trial.estimate),
        f"Micro-batch {before} to {after}: the trainer stopped after a checkpoint, as memory was running short",
    )


def _most_restarts(answer: Answer) -> int:
    """Return how often a plan lets a run be started again."""
    most = answer.plan.recovery.max_restarts
    return most if isinstance(most, int) else 0


def _plan_key(failure: Failure) -> str:
    return f"recovery.{failure.kind}"


def _new_value(value: object, changed: object) -> object:
    """Return what a rung makes of a value of the plan; None where it has none to halve."""
    if changed == "double":
        return 2 * value if isinstance(value, int) and value else 2
    if changed == "half":
        return max(1, value // 2) if isinstance(value, int) else None
    return changed


def _less_memory(
    case: EstimatedPlan, failure: Failure, remedy: str, rungs: Sequence[Rung], detect: Detect | None
) -> Step | None:
    """Return a remedy's gentlest change that saves enough, else the most; None where none is worth a restart."""
    on_host = failure.where == "host" and not case.resolved.cluster.device.is_processor
    key = HOST if on_host else RESERVED
    before, most = _figure(case.estimate, key), _room(case, key)
    trials = [
        trial
        for rung in rungs
        if rung.memory == ("host" if on_host else "device")
        for trial in _memory_trials(case, rung, detect)
        if _figure(trial.estimate, key) <= before * (1.0 - LEAST_SAVED)
    ]
    if not trials:
        return None
    enough = next((trial for trial in trials if _figure(trial.estimate, key) <= most), trials[-1])
    return _step(case, failure, remedy, enough, of=key)


def _memory_trials(case: EstimatedPlan, rung: Rung, detect: Detect | None) -> Iterator[Candidate]:
    if rung.move == "processor":
        trials = [_on_processor(case, detect)]
    else:
        trials = [_whole_steps(case, change) for change in rung.changes(case)]
    yield from (trial for trial in trials if trial is not None)


def _rung_step(case: EstimatedPlan, failure: Failure, remedy: str, rung: Rung, detect: Detect | None) -> Step | None:
    """Return the step of a rung that saves no memory; None where it cannot be taken."""
    if rung.move == "fewer_devices":
        return _fewer_devices(case, failure)
    if rung.move == "processor":
        moved = _on_processor(case, detect)
        return None if moved is None else _step(case, failure, "processor", moved, environment={_VISIBLE: ""})
    if not rung.change:
        why = f"started again as it was: {failure.name}"
        return Step(failure.kind, remedy, {}, {}, Answer(case.resolved, case.estimate), why)
    trials = (case.evaluate(change) for change in rung.changes(case))
    trial = next((trial for trial in trials if trial.filled is not None), None)
    return None if trial is None else _step(case, failure, remedy, trial, checkpoint=rung.checkpoint)


def _whole_steps(case: EstimatedPlan, change: Change) -> Candidate | None:
    """Return a changed plan's estimate; None where such a plan cannot be, or cannot keep its global batch."""
    trial = case.evaluate(change)
    if trial.filled is None:
        return None
    training, parallel = trial.filled.plan.training, trial.filled.plan.parallelism
    at_once = int(training.micro_batch) * int(parallel.dp or 1)
    return trial if int(training.global_batch or at_once) % at_once == 0 else None


def _on_processor(case: EstimatedPlan, detect: Detect | None) -> Candidate | None:
    """Return a run on the processor of its machine, in a precision that this has units for; None where it is there.

    The micro-batch is halved, with the global batch kept, until the run fits.
    """
    if case.resolved.cluster.device.is_processor:
        return None
    machine = detect() if case.machine is None and detect is not None else case.machine
    cpu_machine = None if machine is None else replace(machine, accelerators=())
    named = None if cpu_machine is None else cpu_machine.cpu.catalogue_id.value
    usual = next(iter(case.catalog.processors)) if cpu_machine is None else "detected"
    layout = (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP, Key.PARALLELISM_EP)
    change: dict[str, object] = {Key.HARDWARE_NAME: named or usual, Key.HARDWARE_DEVICES: 1, **dict.fromkeys(layout, 1)}
    change[Key.PARALLELISM_OFFLOAD] = "none"
    cpu_case = replace(case, machine=cpu_machine)
    trial = _whole_steps(cpu_case, change)
    runs_as = {} if trial is None else trial.made.resolved.cluster.device.runs_as
    precision = stated = str(case.plan.training.precision)
    while precision in runs_as:
        precision = runs_as[precision]
    if precision != stated:
        change[Key.TRAINING_PRECISION] = precision
        trial = _whole_steps(cpu_case, change) or trial
    micro_batch = int(case.plan.training.micro_batch)
    while trial is not None and trial.estimate.verdict is Verdict.DOES_NOT_FIT and micro_batch > 1:
        micro_batch //= 2
        trial = _whole_steps(cpu_case, {**change, Key.TRAINING_MICRO_BATCH: micro_batch}) or trial
    return trial


def _fewer_devices(case: EstimatedPlan, failure: Failure) -> Step | None:
    """Return the run on the most devices that are left, with the same global batch."""
    devices = int(np.max(case.resolved.cluster.devices))
    if case.resolved.cluster.device.is_processor:
        return None
    for count in range(devices - 1, 0, -1):
        trial = _whole_steps(case, {Key.HARDWARE_DEVICES: count})
        if trial is not None and trial.estimate.verdict is not Verdict.DOES_NOT_FIT:
            environment = _left(devices, count, failure.device)
            return _step(case, failure, "fewer", trial, environment=environment)
    return None


def _left(devices: int, count: int, lost: int | None) -> dict[str, str]:
    """Return the variable by which a command sees the devices that are left, where it is known which is lost."""
    if lost is None:
        return {}
    remaining = [device for device in range(devices) if device != lost]
    return {_VISIBLE: ",".join(map(str, remaining[:count]))}


def _step(
    case: EstimatedPlan,
    failure: Failure,
    remedy: str,
    trial: Candidate,
    *,
    checkpoint: Checkpoint = "newest",
    environment: Mapping[str, str] | None = None,
    of: str = RESERVED,
) -> Step:
    before = {path: case.plan.value(path) for path in trial.change}
    after = {path: trial.made.resolved.plan.value(path) for path in trial.change}
    change = {path: value for path, value in after.items() if value != before[path]}
    figures = {key: (_figure(case.estimate, key), _figure(trial.estimate, key)) for key in (of, STEP)}
    # The mode's choices for the running job stay its choices.
    basis = replace(trial.estimate.basis, running=case.estimate.basis.running)
    return Step(
        failure.kind,
        remedy,
        change,
        {path: before[path] for path in change},
        Answer(trial.made.resolved, replace(trial.estimate, basis=basis)),
        _reason(failure, change, before, figures[of]),
        figures,
        checkpoint,
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
    estimated = max(1.0, _figure(case.estimate, key) / largest(capacity))
    return share * _figure(case.estimate, key) / estimated


def _figure(estimate: Estimate, key: str) -> float:
    if key == STEP:
        return largest(estimate.computation.step_seconds.value)
    memory = estimate.memory
    return largest(memory.reserved_bytes.value if key == RESERVED else memory.host_bytes)
