"""The part of a plan about a run while it goes on: what is watched for, and what happens when it meets trouble.

No estimate depends on it. What is ``auto`` takes the values of the mode that fills the plan.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from capacity_tui.engine.schema import AUTO, AutoCount, AutoDuration, AutoShare, Duration, Section

Automatic: TypeAlias = Literal["auto"]
MemoryRemedy: TypeAlias = Literal["micro_batch", "checkpointing", "precision", "offload", "sequence", "processor"]
"""What is done after a run ended out of memory."""
MEMORY_REMEDIES: tuple[MemoryRemedy, ...] = get_args(MemoryRemedy)
MOST_RESTARTS = 1000


class WatchSection(Section):
    """What is watched for while a run goes on, and from when on it is told."""

    interval: Annotated[Duration, Field(ge=0.1, le=3600)] = 1.0
    temperature_c: Annotated[float, Field(ge=20, le=150)] | Automatic = AUTO
    memory_share: AutoShare = AUTO
    power_share: AutoShare = AUTO
    supply_watts: Annotated[float, Field(ge=50, le=1000000.0)] | None = None
    nan: Literal["stop", "warn", "auto"] = AUTO
    loss_spike: Annotated[float, Field(ge=1, le=1000)] | Automatic = AUTO


class BatteryFields(Section):
    """How a run goes on when its machine runs on battery."""

    pause_below: AutoShare = AUTO
    threads: AutoCount = AUTO
    most_steps: AutoCount = AUTO


class RecoverySection(Section):
    """What happens when a run meets trouble."""

    out_of_memory: Annotated[tuple[MemoryRemedy, ...], Field(max_length=len(MEMORY_REMEDIES))] | Automatic = AUTO
    max_restarts: Annotated[int, Field(ge=0, le=MOST_RESTARTS)] | Automatic = AUTO
    heat: Literal["pause", "warn", "auto"] = AUTO
    battery: BatteryFields = BatteryFields()
    device_lost: Literal["fewer", "processor", "stop", "auto"] = AUTO
    unstable: Literal["accumulate", "stop", "auto"] = AUTO
    hang: Literal["restart", "warn", "auto"] = AUTO
    checkpoint_every: AutoDuration = AUTO
