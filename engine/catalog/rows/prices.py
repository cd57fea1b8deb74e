"""Rows about money: regions, and what a commitment of years takes off."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import IDENTIFIES, SHOWN, Confidence, LevelRow, Row

Term = Literal["1y", "3y"]  # How long capacity is committed to
Area = Literal["us", "america", "europe", "asia", "oceania", "africa", "middle-east"]
"""Part of the world; ``us`` apart from the rest of America, as price lists have it."""


class RegionPrice(BaseModel):
    """What a whole instance costs in one region; day, source and confidence are the row's unless it says others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    on_demand_usd_per_hour: PositiveFloat | None = None
    spot_usd_per_hour: PositiveFloat | None = None
    committed_usd_per_hour: dict[Term, PositiveFloat] = Field(
        default_factory=dict, description="by term, what is paid in advance shared out over it"
    )
    price_date: str | None = None
    source: str | None = None
    confidence: Confidence | None = None


class Region(Row):
    """A region of a cloud, or an area of the world that a plan may ask for."""

    like: Annotated[str | None, SHOWN] = Field(None, description="row that holds what this one does not give")
    provider: Annotated[str | None, IDENTIFIES] = None
    areas: tuple[Area, ...] = Field(description="parts of the world it is in")


class Commitment(Row):
    """What a provider takes off for a commitment, wherever no price of its own is known."""

    provider: str
    term: Term
    instances: tuple[str, ...] = Field((), description="ids of the instances it is for")
    accelerators: tuple[str, ...] = Field((), description="ids of the accelerators whose instances it is for")
    share: Annotated[float, Field(gt=0, le=1)] = Field(description="of the price on demand that remains to pay")


class Disk(Row):
    """Storage that a provider rents out by what it could hold."""

    provider: str
    kind: Literal["block", "object", "file"] = Field(description="a disk of one machine, objects, or shared files")
    usd_per_gb_month: NonNegativeFloat = Field(description="for a gigabyte held for a month")
    region: str | None = None
    price_date: str | None = None
    gbs: Annotated[PositiveFloat | None, SHOWN] = Field(None, description="GB/s that the price includes")


class PriceStep(BaseModel):
    """The price of a gigabyte from where the step before ends; the first step begins with the first gigabyte."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    to_gb: PositiveFloat | None = Field(None, description="last gigabyte of a month; None for all further ones")
    usd_per_gb: NonNegativeFloat


class Egress(Row):
    """What a provider takes for data that leaves a region; data that comes in is free with all of them."""

    provider: str
    route: Literal["internet", "area", "elsewhere"] = Field(
        description="to the internet, to the provider's regions in the same part of the world, or to its others"
    )
    areas: tuple[Area, ...] = Field(description="parts of the world it leaves from")
    steps: tuple[PriceStep, ...] = Field(min_length=1, description="by gigabytes of a month")
    price_date: str | None = None


HOURS_OF_A_YEAR = 8760.0


class Purchase(BaseModel):
    """What buying an instance takes; an hour's price follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    usd: PositiveFloat = Field(description="paid for the whole machine")
    lifetime_years: PositiveFloat = Field(description="until it is worth nothing")
    watts: PositiveFloat = Field(description="drawn under load, by the whole machine")
    use: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="share of its lifetime in which it works")
    overhead: Annotated[float, Field(ge=1)] = Field(1.0, description="power with cooling and supply, over its own")
    usd_per_kwh: NonNegativeFloat = 0.15

    @property
    def lifetime_hours(self) -> float:
        """Hours from the first day to the last."""
        return self.lifetime_years * HOURS_OF_A_YEAR

    @property
    def usd_per_hour(self) -> float:
        """What an hour of work costs."""
        return owned_usd_per_hour(
            self.usd, self.lifetime_hours, self.use, self.watts / 1e3, self.overhead, self.usd_per_kwh
        )


def owned_usd_per_hour(
    purchase: float, lifetime: float, use: float, kilowatts: float, overhead: float, usd_per_kwh: float
) -> float:
    """Price of an hour in which an owned machine works.

    Args:
        purchase: price it was bought for, USD.
        lifetime: hours until it is worth nothing.
        use: share of them in which it works.
        kilowatts: power it draws, kW.
        overhead: power with cooling and supply, over its own.
        usd_per_kwh: price of a kilowatt-hour, USD.
    """
    return purchase / (lifetime * use) + kilowatts * overhead * usd_per_kwh


MOST_GROUPS = 16


class ClusterGroup(BaseModel):
    """Equal devices in equal nodes of a cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(description="id of an accelerator or a processor")
    devices: PositiveInt = Field(description="devices of all its nodes")
    per_node: PositiveInt = Field(1, description="devices of a node")


class ClusterRow(Row):
    """A cluster as plans name it: what a plan leaves open of its hardware is as here."""

    groups: Annotated[tuple[ClusterGroup, ...], Field(min_length=1, max_length=MOST_GROUPS)] = Field(
        description="its devices, alike ones together"
    )
    interconnect: str | None = Field(None, description="id in the links catalogue of what joins its nodes")
    ports_per_node: PositiveInt | None = Field(None, description="ports of that in a node; one a device where None")
    levels: tuple[LevelRow, ...] = Field((), description="what stands around its nodes, from the innermost out")
    host_memory_gib: PositiveFloat | None = Field(None, description="main memory of a node")
    nodes: Annotated[PositiveInt | None, SHOWN] = Field(None, description="how many nodes these are")


HOURS_OF_A_MONTH = 720  # Hours of a month of 30 days, in which instances are compared
PERFORMANCE_TAG = "performance_upgrade"  # The tag of workloads that are to run faster; others are to cost less


class ModelSize(Row):
    """A model of which nothing is known but the count of its parameters: a dense decoder of usual proportions."""

    parameter_count_billion: PositiveFloat
    description: Annotated[str, IDENTIFIES] = Field("", description="the range of counts it stands for")
    typical_use_cases: Annotated[tuple[str, ...], SHOWN] = ()
    examples: Annotated[tuple[str, ...], SHOWN] = Field((), description="models of about this size")


class Scenario(BaseModel):
    """What runs now, on what, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    current_instance: str = Field(description="id or short name of an instance")
    current_gpu_count: PositiveInt = Field(description="GPUs in use, over all instances")
    workload_type: Literal["train", "finetune", "infer", "batch_infer"]
    model_size: str = Field(description="a size, a model or a count of parameters")
    monthly_hours: float = Field(HOURS_OF_A_MONTH, gt=0, le=744)
    use_spot: bool = False
    precision: str = "fp16"


class Workload(Row):
    """One scenario, with what people expect of moving it."""

    scenario: Scenario
    description: Annotated[str, IDENTIFIES] = ""
    expected_outcome: str | None = Field(None, description="what people expect of moving")
    tags: tuple[str, ...] = ()


class WorkloadSet(Row):
    """Workloads that answer one question together."""

    purpose: str = Field("", description="what question they answer")
    use_case: str = Field("", description="who it is for")
    workloads: tuple[str, ...] = Field(description="ids in the workloads catalogue")
