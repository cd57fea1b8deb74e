"""What a plan does not say, and an estimate of it takes for granted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.estimate.resolve import ResolvedPlan, job_steps
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Assumption, Plan, all_fields
from capacity_tui.engine.schema import TRAINED

_LOADS = (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_CONCURRENCY)
_USUAL = "the default"
_MEMORY = "hardware.spec.memory_mib"
_NO_LENGTH = "nothing says how long the job is: without it it has no time and no cost (say 50M, or training.tokens=)"


def unsaid(resolved: ResolvedPlan, reasons: Mapping[str, str]) -> tuple[Assumption, ...]:
    """Return what a settled plan has that nobody wrote, the most important first.

    Args:
        resolved: the plan.
        reasons: why each field that was open got its value, by path.
    """
    plan = resolved.plan
    return ordered(plan, _unsaid(resolved, reasons))


def with_assumed(estimate: Estimate, plan: Plan, earlier: Iterable[Assumption]) -> Estimate:
    """Return an estimate that tells also what was assumed before its plan was made.

    Args:
        estimate: of the plan.
        plan: the plan as settled, whose values count.
        earlier: what was assumed where the plan was said in a line.
    """
    there = (Assumption(entry.key, _value(plan, entry.key), entry.why, entry.moves) for entry in earlier)
    return replace(estimate, assumed=ordered(plan, (*there, *estimate.assumed)))


def ordered(plan: Plan, assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return assumptions in the order of their importance, one for each field; the first of a field counts."""
    known = _fields(plan.task or "train")
    by_key: dict[str, Assumption] = {}
    for entry in assumptions:
        moves = entry.moves or known.get(entry.key, ())
        by_key.setdefault(entry.key, Assumption(entry.key, entry.value, entry.why, moves))
    rank = {path: index for index, path in enumerate((_MEMORY, *known))}
    return tuple(sorted(by_key.values(), key=lambda entry: rank.get(entry.key, len(rank))))


def _unsaid(resolved: ResolvedPlan, reasons: Mapping[str, str]) -> Iterator[Assumption]:
    plan = resolved.plan
    device = resolved.cluster.device
    if device.memory_bytes is None:
        why = f"nothing tells the memory of {device.name} (say 16GiB ram, or {_MEMORY}=16384)"
        yield Assumption(_MEMORY, None, why, (Figure.MEMORY_UTILIZATION_PERCENT,))
    if plan.task in TRAINED and resolved.family.kind != "classical" and job_steps(plan) is None:
        yield Assumption(Key.TRAINING_TOKENS, None, _NO_LENGTH)
    for path in _fields(plan.task or "train"):
        value = _value(plan, path)
        if path in reasons:
            yield Assumption(path, value, reasons[path])
        elif path == Key.INFERENCE_WEIGHTS:
            if why := resolved.weights_assumed:
                yield Assumption(path, value, why)
        elif value is not None and not _is_written(resolved, path) and _applies(resolved, path):
            yield Assumption(path, value, _USUAL)


def _applies(resolved: ResolvedPlan, path: str) -> bool:
    """Whether a field is one of the kind of model, and no other says the same."""
    known = all_fields().get(path)
    families = known.knob.families if known is not None else ()
    if families and resolved.family.kind not in families:
        return False
    return path != Key.INFERENCE_BATCH or all(resolved.plan.value(load) is None for load in _LOADS)


def _value(plan: Plan, path: str) -> object:
    return plan.task if path == "task" else plan.value(path)


def _is_written(resolved: ResolvedPlan, path: str) -> bool:
    section, _, name = path.rpartition(".")
    if section == Key.MODEL_SPEC:
        known = None if resolved.spec is None else type(resolved.spec).model_fields.get(name)
        return known is None or known.default != resolved.plan.value(path)
    return not section or name in getattr(resolved.plan, section).model_fields_set


@cache
def _fields(task: str) -> Mapping[str, tuple[str, ...]]:
    rows: dict[str, dict[str, Any]] = parse_shipped(files("capacity_tui.profiles") / "unsaid.yaml")
    return {path: tuple(figures) for path, figures in rows[task].items()}
