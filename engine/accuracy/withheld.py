"""How far estimates are from published runs when the software is withheld.

What unnamed software costs in accuracy is measured on the runs whose software is known: each is estimated as its plan
says, but for the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from capacity_tui.engine.accuracy.published import Kind, Measurement, field
from capacity_tui.engine.keys import Key

NAME = Key.TRAINING_FRAMEWORK
TRAINED: tuple[Kind, ...] = ("train_time", "finetune_time", "train_memory", "finetune_memory")
"""Kinds of figures that training software decides."""


def without_framework(measurement: Measurement) -> Measurement:
    """Return a measurement whose plan does not name its training software; all else stays as it was written down."""
    if field(measurement.plan, NAME) is None:
        return measurement
    section, _, key = NAME.partition(".")
    named = cast("Mapping[str, object]", measurement.plan[section])
    unnamed = {name: value for name, value in named.items() if name != key}
    tags = {**measurement.tags, "framework": ""}
    return replace(measurement, plan={**measurement.plan, section: unnamed}, tags=tags)
