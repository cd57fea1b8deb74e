"""The part of a plan about a run while it goes on: what is watched for, and what happens when it meets trouble.

No estimate depends on it. What is ``auto`` takes the values of the mode that fills the plan.
"""

from __future__ import annotations

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


class WatchSection(Section):
    """What is watched for while a run goes on, and from when on it is told."""

    interval: Annotated[
        Duration,
        Field(ge=0.1, le=3600),
        Knob(
            "Look every", "number", "watch", "s", 0.1, 3600, 0.5, role="running", needs=("watched",), keeps_result=True
        ),
    ] = 1.0
    temperature_c: Annotated[
        Annotated[float, Field(ge=20, le=150)] | Automatic,
        Knob(
            "Hot from",
            "number",
            "watch",
            "°C",
            20,
            150,
            1,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    memory_share: Annotated[
        AutoShare,
        Knob(
            "Memory full",
            "number",
            "watch",
            "",
            0.05,
            1,
            0.05,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    power_share: Annotated[
        AutoShare,
        Knob(
            "Power high",
            "number",
            "watch",
            "",
            0.05,
            1,
            0.05,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    nan: Annotated[
        Literal["stop", "warn", "auto"],
        Knob(
            "Loss no number",
            "choice",
            "watch",
            choices=("stop", "warn"),
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    loss_spike: Annotated[
        Annotated[float, Field(ge=1, le=1000)] | Automatic,
        Knob(
            "Loss spike",
            "number",
            "watch",
            "",
            1,
            1000,
            0.5,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO


class BatteryFields(Section):
    """How a run goes on when its machine runs on battery."""

    pause_below: Annotated[
        AutoShare,
        Knob(
            "Pause below",
            "number",
            "recovery",
            "",
            0.05,
            1,
            0.05,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    threads: Annotated[
        AutoCount,
        Knob(
            "Battery threads",
            "integer",
            "recovery",
            "",
            1,
            4096,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    most_steps: Annotated[
        AutoCount,
        Knob(
            "Battery steps",
            "power-of-two",
            "recovery",
            "",
            1,
            LARGEST_COUNT,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO


class RecoverySection(Section):
    """What happens when a run meets trouble."""

    out_of_memory: Annotated[
        Annotated[tuple[MemoryRemedy, ...], Field(max_length=len(MEMORY_REMEDIES))] | Automatic,
        Knob(
            "Out of memory", "list", "recovery", automatic=True, role="running", needs=("watched",), keeps_result=True
        ),
    ] = AUTO
    max_restarts: Annotated[
        Annotated[int, Field(ge=0, le=MOST_RESTARTS)] | Automatic,
        Knob(
            "Most restarts",
            "integer",
            "recovery",
            "",
            0,
            MOST_RESTARTS,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    heat: Annotated[
        Literal["pause", "warn", "auto"],
        Knob(
            "Heat",
            "choice",
            "recovery",
            choices=("pause", "warn"),
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    battery: BatteryFields = BatteryFields()
    device_lost: Annotated[
        Literal["fewer", "processor", "stop", "auto"],
        Knob(
            "Device lost",
            "choice",
            "recovery",
            choices=("fewer", "processor", "stop"),
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    unstable: Annotated[
        Literal["accumulate", "stop", "auto"],
        Knob(
            "Unstable",
            "choice",
            "recovery",
            choices=("accumulate", "stop"),
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    hang: Annotated[
        Literal["restart", "warn", "auto"],
        Knob(
            "No progress",
            "choice",
            "recovery",
            choices=("restart", "warn"),
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
    checkpoint_every: Annotated[
        AutoDuration,
        Knob(
            "Checkpoint every",
            "number",
            "recovery",
            "s",
            1,
            LARGEST_DURATION,
            60,
            automatic=True,
            role="running",
            needs=("watched",),
            keeps_result=True,
        ),
    ] = AUTO
