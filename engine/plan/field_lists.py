"""Lists of fields that have something in common, derived from what is known of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from capacity_tui.engine.plan.all_fields import all_fields, automatic_parameters, paths_where
from capacity_tui.engine.schema import Knob

MODEL = "model."
_TRAINING, _INFERENCE, _PARALLELISM = "training", "inference", "parallelism"


@cache
def placeholders() -> Mapping[str, object]:
    """Return what each field that the modes may choose holds while its value is still being chosen.

    The model is none of them: it is chosen before everything else. Nor is what no estimate depends on, or what is
    chosen last, both of which follow when all else is chosen.
    """
    known = ((path, entry) for path, entry in all_fields().items() if _is_estimated(entry.knob))
    held = {
        path: entry.default if entry.knob.placeholder is None else entry.knob.placeholder
        for path, entry in known
        if not path.startswith(MODEL)
    }
    return {**held, **dict.fromkeys(automatic_parameters())}


@cache
def chosen_last() -> tuple[str, ...]:
    """Return the fields that the modes choose once everything else stands."""
    return paths_where(_is_chosen_last)


@cache
def chosen_unless_given(task: str) -> tuple[str, ...]:
    """Return the fields whose value the modes choose for a task also where the plan gives none."""
    return tuple(path for path, entry in all_fields().items() if task in entry.knob.chosen_for)


@cache
def open_jobs() -> tuple[str, ...]:
    """Return what is wanted of a training and may be left open: the same in all modes, so that they compare one job."""
    return tuple(path for path in paths_where(_is_open_job) if path.startswith(f"{_TRAINING}."))


@cache
def memory_searched() -> tuple[str, ...]:
    """Return what a search may set together to save memory or time, the result of training being the same."""
    return paths_where(_is_searched)


@cache
def model_sizes() -> tuple[str, ...]:
    """Return the sizes of a layout that divide a model or its sequences, which no other field decides."""
    return paths_where(_is_model_size)


@cache
def served_sizes() -> tuple[str, ...]:
    """Return the numbers of serving of which one call judges many values as an array."""
    return tuple(path for path in paths_where(_is_broadcast) if path.startswith(f"{_INFERENCE}."))


@cache
def broadcast_numbers() -> tuple[str, ...]:
    """Return the numbers beside a layout's sizes of which a training takes many values as an array."""
    return tuple(path for path in paths_where(_is_broadcast) if not path.startswith(f"{_INFERENCE}."))


def _is_estimated(knob: Knob) -> bool:
    return knob.automatic and knob.role != "running" and not knob.chosen_last


def _is_broadcast(knob: Knob) -> bool:
    return knob.broadcasts


def _is_chosen_last(knob: Knob) -> bool:
    return knob.chosen_last


def _is_open_job(knob: Knob) -> bool:
    return knob.automatic and knob.role == "job"


def _is_searched(knob: Knob) -> bool:
    return _is_estimated(knob) and knob.role == "setting" and knob.keeps_result and knob.group != _INFERENCE


def _is_model_size(knob: Knob) -> bool:
    is_size = knob.group == _PARALLELISM and knob.kind == "power-of-two"
    return is_size and knob.role == "setting" and not knob.resolved_from_others
