"""The part of a plan about a run while it goes on: what is watched for, and what happens when it meets trouble.

No estimate depends on it. What is ``auto`` takes the values of the mode that fills the plan.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import (
    AUTO,
    LARGEST_COUNT,
    LARGEST_DURATION,
    AutoCount,
    AutoDuration,
    AutoShare,
    Duration,
    Section,
)

Automatic: TypeAlias = Literal["auto"]
MemoryRemedy: TypeAlias = Literal["micro_batch", "checkpointing", "precision", "offload", "sequence", "processor"]
"""What is done after a run ended out of memory."""
MEMORY_REMEDIES: tuple[MemoryRemedy, ...] = get_args(MemoryRemedy)
MOST_RESTARTS = 1000
_watched = partial(Knob, group="watch", automatic=True, role="running", needs=("watched",), keeps_result=True)
_recovered = partial(_watched, group="recovery")


class WatchSection(Section):
    """What is watched for while a run goes on, and from when on it is told."""

    interval: Annotated[
        Duration,
        Field(ge=0.1, le=3600),
        _watched("Look every", "number", unit="s", minimum=0.1, maximum=3600, step=0.5, automatic=False),
    ] = 1.0
    temperature_c: Annotated[
        Annotated[float, Field(ge=20, le=150)] | Automatic,
        _watched("Hot from", "number", unit="°C", minimum=20, maximum=150),
    ] = AUTO
    memory_share: Annotated[
        AutoShare,
        _watched("Memory full", "number", minimum=0.05, maximum=1, step=0.05),
    ] = AUTO
    power_share: Annotated[
        AutoShare,
        _watched("Power high", "number", minimum=0.05, maximum=1, step=0.05),
    ] = AUTO
    supply_watts: Annotated[
        Annotated[float, Field(ge=50, le=1e6)] | None,
        Knob(
            "Power supply",
            "number",
            "watch",
            "W",
            50,
            1e6,
            50,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = None
    nan: Annotated[
        Literal["stop", "warn", "auto"],
        _watched("Loss no number", "choice", choices=("stop", "warn")),
    ] = AUTO
    loss_spike: Annotated[
        Annotated[float, Field(ge=1, le=1000)] | Automatic,
        _watched("Loss spike", "number", minimum=1, maximum=1000, step=0.5),
    ] = AUTO


class BatteryFields(Section):
    """How a run goes on when its machine runs on battery."""

    pause_below: Annotated[
        AutoShare,
        _recovered("Pause below", "number", minimum=0.05, maximum=1, step=0.05),
    ] = AUTO
    threads: Annotated[
        AutoCount,
        _recovered("Battery threads", "integer", minimum=1, maximum=4096),
    ] = AUTO
    most_steps: Annotated[
        AutoCount,
        _recovered("Battery steps", "power-of-two", minimum=1, maximum=LARGEST_COUNT),
    ] = AUTO


class RecoverySection(Section):
    """What happens when a run meets trouble."""

    out_of_memory: Annotated[
        Annotated[tuple[MemoryRemedy, ...], Field(max_length=len(MEMORY_REMEDIES))] | Automatic,
        _recovered("Out of memory", "list"),
    ] = AUTO
    max_restarts: Annotated[
        Annotated[int, Field(ge=0, le=MOST_RESTARTS)] | Automatic,
        _recovered("Most restarts", "integer", minimum=0, maximum=MOST_RESTARTS),
    ] = AUTO
    heat: Annotated[
        Literal["pause", "warn", "auto"],
        _recovered("Heat", "choice", choices=("pause", "warn")),
    ] = AUTO
    battery: BatteryFields = BatteryFields()
    device_lost: Annotated[
        Literal["fewer", "processor", "stop", "auto"],
        _recovered("Device lost", "choice", choices=("fewer", "processor", "stop")),
    ] = AUTO
    unstable: Annotated[
        Literal["accumulate", "stop", "auto"],
        _recovered("Unstable", "choice", choices=("accumulate", "stop")),
    ] = AUTO
    hang: Annotated[
        Literal["restart", "warn", "auto"],
        _recovered("No progress", "choice", choices=("restart", "warn")),
    ] = AUTO
    checkpoint_every: Annotated[
        AutoDuration,
        _recovered("Checkpoint every", "number", unit="s", minimum=1, maximum=LARGEST_DURATION, step=60),
    ] = AUTO
