"""One instance as the fleet guide's file says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import IDENTIFIES, Informational

NOT_USED = Informational("is told of as not used: bandwidth and efficiency of the hardware itself stand in its place")


class InstanceEntry(BaseModel):
    """Fields under their names in the file; an entry may have any part of them.

    Units are what the file means, not what it says: TFLOPS are headlines with sparsity, the bandwidth of links is
    GB/s in both directions together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    name: str | None = None
    family: Annotated[str | None, IDENTIFIES] = None
    gpu_type: str | None = None
    vcpus: PositiveInt | None = None
    gpu_memory_gb: PositiveFloat | None = None
    gpus_per_instance: PositiveInt | None = None
    compute_tflops: PositiveFloat | None = None
    interconnect_type: Annotated[str | None, IDENTIFIES] = None
    interconnect_bandwidth_gbps: PositiveFloat | None = None
    on_demand_cost_per_hour: PositiveFloat | None = None
    spot_cost_per_hour: PositiveFloat | None = None
    memory_bandwidth_factor: Annotated[PositiveFloat | None, NOT_USED] = None
    interconnect_multiplier: Annotated[PositiveFloat | None, NOT_USED] = None
    description: Annotated[str | None, IDENTIFIES] = None
