"""Rows about machines: accelerators, processors, links, cloud instances and clusters."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from capacity_tui.engine.catalog.rows.base import CHECKS, IDENTIFIES, MIB, NODE, SHOWN, Informational, LevelRow, Row
from capacity_tui.engine.catalog.rows.prices import Purchase, RegionPrice
from capacity_tui.engine.units import count_in_words

OWN = "own"  # Provider of owned machines
EVIDENCE = Informational("is evidence for the shares of links in efficiency.yaml")


class Accelerator(Row):
    """A GPU or another device that computes; one row is one device as software sees it on its board.

    Peaks are dense, with FP32 accumulation. Bandwidths of links are per direction.
    """

    vendor: str
    kind: Literal["gpu", "tpu"] = Field("gpu", description="tpu where only whole compiled programs run")
    generation: str | None = None
    form_factor: Annotated[str | None, IDENTIFIES] = None
    released: Annotated[str | None, IDENTIFIES] = Field(None, description="year and month")
    memory_marketed: Annotated[PositiveFloat | None, IDENTIFIES] = Field(None, description="memory on the box")
    memory_marketed_unit: Annotated[Literal["GB", "GiB"] | None, IDENTIFIES] = None
    memory_mib: PositiveInt = Field(description="memory the driver reports")
    memory_mib_assumed: Annotated[bool, CHECKS] = Field(False, description="memory_mib follows from the marketed size")
    memory_type: Annotated[str | None, IDENTIFIES] = None
    ecc_reserve: Annotated[bool, CHECKS] = Field(False, description="a sixteenth of the memory holds ECC bits")
    unified_memory: bool = Field(False, description="memory is shared with the processor")
    bandwidth_gbs: PositiveFloat | None = Field(None, description="memory bandwidth in GB/s")
    fp64_tflops: NonNegativeFloat | None = None
    fp64_tensor_tflops: Annotated[NonNegativeFloat | None, CHECKS] = None
    fp32_tflops: NonNegativeFloat | None = None
    tf32_tflops: NonNegativeFloat | None = None
    fp16_tflops: NonNegativeFloat | None = None
    bf16_tflops: NonNegativeFloat | None = None
    fp8_tflops: NonNegativeFloat | None = None
    int8_tops: NonNegativeFloat | None = None
    fp4_tflops: NonNegativeFloat | None = None
    fp16_marketed_sparse_tflops: Annotated[NonNegativeFloat | None, CHECKS] = Field(
        None, description="headline, 2:4 sparse"
    )
    measured_bf16_tflops: Annotated[NonNegativeFloat | None, CHECKS] = Field(
        None, description="best matrix product measured"
    )
    measured_source: Annotated[str | None, CHECKS] = None
    tdp_w: PositiveFloat | None = Field(None, description="board power limit in W")
    link: str | None = Field(None, description="id in the links catalogue")
    link_name: Annotated[str | None, IDENTIFIES] = None
    link_gbs: PositiveFloat | None = Field(None, description="all links of the device, GB/s per direction")
    pcie_gen: int | None = Field(None, ge=1, le=9)
    pcie_lanes: PositiveInt | None = None
    peer_access: bool = Field(True, description="drivers let devices reach each other over PCIe without the host")
    host_link_gbs: PositiveFloat | None = Field(
        None, description="link to the processor where it is not PCIe, GB/s per direction"
    )
    compute_capability: str | None = Field(None, description="NVIDIA's version, or AMD's gfx name")
    units: PositiveInt | None = Field(None, description="multiprocessors, compute units or cores")
    unit_kind: Annotated[str | None, IDENTIFIES] = None
    devices_per_package: Annotated[PositiveInt, IDENTIFIES] = Field(1, description="devices software sees in this row")
    host_memory_gib: PositiveFloat | None = Field(None, description="memory of the machine around one device")
    usd_per_hour: PositiveFloat | None = Field(None, description="price of a device of one's own, where none is rented")

    @model_validator(mode="before")
    @classmethod
    def _in_planner_fields(cls, fields: Any) -> Any:
        return accelerator_fields(fields)

    @property
    def is_announced(self) -> bool:
        """Whether nobody has one yet."""
        return (self.released or "").startswith("announced")

    @property
    def memory_bytes(self) -> int:
        """Memory the driver reports, in bytes."""
        return self.memory_mib * MIB

    def peak_flops(self, field: str) -> float | None:
        """Return a peak, such as that of ``bf16_tflops``, in operations per second; None if not published."""
        tera: float | None = getattr(self, field)
        return None if tera is None else tera * 1e12


class Processor(Row):
    """A CPU; one row is one socket."""

    vendor: str
    segment: Annotated[str | None, IDENTIFIES] = None
    microarchitecture: Annotated[str | None, IDENTIFIES] = None
    archspec_name: Annotated[str | None, IDENTIFIES] = Field(None, description="name in the archspec library")
    released: Annotated[str | None, IDENTIFIES] = None
    cores: PositiveInt = Field(description="cores, the performance ones where there are two kinds")
    efficiency_cores: int = Field(0, ge=0)
    threads: PositiveInt | None = None
    base_ghz: PositiveFloat | None = None
    boost_ghz: Annotated[PositiveFloat | None, CHECKS] = Field(None, description="highest clock of one core")
    simd: Annotated[str | None, IDENTIFIES] = None
    simd_bits: PositiveInt | None = None
    fma_units: Annotated[PositiveInt | None, CHECKS] = None
    fp32_flops_per_cycle: PositiveFloat | None = Field(None, description="of one core")
    fp64_flops_per_cycle: PositiveFloat | None = Field(None, description="of one core")
    bf16_matrix_flops_per_cycle: PositiveFloat | None = Field(None, description="of one core's matrix unit")
    fp32_gflops_base: PositiveFloat | None = None
    fp32_gflops_boost: Annotated[PositiveFloat | None, CHECKS] = None
    fp64_gflops_base: Annotated[PositiveFloat | None, CHECKS] = None
    memory_channels: Annotated[PositiveInt | None, CHECKS] = None
    memory_type: Annotated[str | None, IDENTIFIES] = None
    memory_mts: Annotated[PositiveFloat | None, CHECKS] = Field(
        None, description="memory transfers, millions per second"
    )
    bandwidth_gbs: PositiveFloat | None = Field(None, description="memory bandwidth in GB/s")
    memory_gib: PositiveFloat | None = Field(None, description="memory, where the row stands for a whole machine")
    tdp_w: PositiveFloat | None = None
    usd_per_hour: PositiveFloat | None = Field(None, description="price of a machine of one's own")

    @model_validator(mode="before")
    @classmethod
    def _in_planner_fields(cls, fields: Any) -> Any:
        return processor_fields(fields)

    @property
    def cores_words(self) -> str:
        """Its cores, where there are two kinds how many of each: ``10 cores (2 fast, 8 slow)``."""
        words = count_in_words(self.cores + self.efficiency_cores, "core")
        return f"{words} ({self.cores} fast, {self.efficiency_cores} slow)" if self.efficiency_cores else words


class Link(Row):
    """A connection inside a node or between nodes, at its nominal bandwidth."""

    kind: str = Field(description="intra-node, inter-node, host bus ...")
    scope: Annotated[str | None, IDENTIFIES] = None
    per: Literal["device", "pair", "bus", "port", "node"] = Field(description="what one bandwidth belongs to")
    per_direction_gbs: PositiveFloat = Field(description="GB/s in one direction")
    bidirectional_gbs: Annotated[PositiveFloat | None, CHECKS] = None
    peer_gbs: Annotated[PositiveFloat | None, CHECKS] = Field(
        None, description="GB/s per direction to one neighbour of a mesh"
    )
    marketed_as: Annotated[str | None, IDENTIFIES] = None
    lanes: Annotated[str | None, IDENTIFIES] = None
    latency_us: PositiveFloat | None = None
    direct: bool = Field(False, description="devices reach each other over it without a network adapter")
    measured: bool = Field(False, description="the bandwidth is what collectives reach, not what the wire carries")
    error: NonNegativeFloat | None = Field(
        None, description="median error of bandwidth and latency on the collectives they were measured by"
    )
    latency_kind: Annotated[str | None, CHECKS] = None
    used_by: Annotated[str | None, IDENTIFIES] = None


class MeasuredLink(Row):
    """A measured collective."""

    accelerator: Annotated[str, EVIDENCE] = Field(description="id in the accelerators catalogue")
    devices: Annotated[PositiveInt, EVIDENCE]
    nodes: Annotated[PositiveInt, EVIDENCE]
    collective: Annotated[Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p_write"], EVIDENCE]
    payload_mib: Annotated[PositiveFloat | None, EVIDENCE] = None
    bus_bandwidth_gbs: Annotated[PositiveFloat, EVIDENCE] = Field(description="as nccl-tests counts it")
    nominal_gbs: Annotated[PositiveFloat | None, EVIDENCE] = Field(None, description="wire rate per direction")
    algorithm: Annotated[str | None, EVIDENCE] = None
    small_message_us: Annotated[PositiveFloat | None, EVIDENCE] = Field(None, description="latency of a small message")
    software: Annotated[str | None, EVIDENCE] = None


class Fabric(Row):
    """What is usually built around devices of a generation, where a plan does not say it."""

    generations: tuple[str, ...] = Field((), description="catalogue generations the row covers")
    least_link_gbs: NonNegativeFloat = Field(0.0, description="link a device needs to belong here, GB/s per direction")
    node_devices: PositiveInt = Field(description="devices that share the fast link of a node, rack or slice")
    unit: str = Field(NODE, description="what these devices make up: node, rack, slice")
    levels: tuple[LevelRow, ...] = Field((), description="what usually stands around it, from the innermost out")
    network: str = Field(description="id in the links catalogue of what joins nodes")
    ports_per_node: PositiveInt | None = Field(None, description="ports of a node; one a device where None")
    host_memory_gib: PositiveFloat | None = Field(None, description="main memory of a host for each of its devices")

    def is_around(self, accelerator: Accelerator) -> bool:
        """Return whether this is usually built around an accelerator."""
        return accelerator.generation in self.generations and (accelerator.link_gbs or 0.0) >= self.least_link_gbs


class SpotMarket(Row):
    """How often capacity at spot prices is taken back, and what that costs."""

    provider: str | None = None
    hours_between: PositiveFloat = Field(description="mean hours until one instance is taken back")
    spread: Annotated[float, Field(ge=1)] = Field(description="how many times more or less often that may be")
    restart_seconds: NonNegativeFloat = Field(description="from an interruption until work goes on")
    checkpoint_seconds: PositiveFloat = Field(description="to write a checkpoint of unknown size")
    checkpoint_gbs: PositiveFloat = Field(description="model states that one device writes to a checkpoint, GB/s")


class Instance(Row):
    """A cloud instance, with accelerators or of processors alone; prices are for the whole instance."""

    provider: str
    accelerator: str | None = Field(None, description="id in the accelerators catalogue; None for processors alone")
    accelerator_count: NonNegativeFloat = Field(0.0, description="may be a fraction of one device")
    processor: str | None = Field(None, description="id in the processors catalogue, where there is no accelerator")
    cores: PositiveInt | None = Field(None, description="physical cores of that processor, over all sockets")
    accelerator_memory_gb: PositiveFloat | None = Field(None, description="marketed, of one device")
    vcpus: Annotated[PositiveInt | None, IDENTIFIES] = None
    memory_gb: PositiveFloat | None = Field(None, description="host memory")
    in_node_link: Annotated[str | None, IDENTIFIES] = None
    in_node_gbs: PositiveFloat | None = Field(None, description="GB/s per direction and device")
    node_devices: PositiveInt | None = Field(
        None, description="devices that share the fast link, where they are more than the instance has"
    )
    network_gbit: PositiveFloat | None = Field(None, description="of the host: Gbit/s per direction and node")
    network_link: str | None = Field(None, description="id in the links catalogue of the network between accelerators")
    rdma_gbit: PositiveFloat | None = Field(None, description="of that network: Gbit/s per direction and node")
    on_demand_usd_per_hour: PositiveFloat | None = None
    spot_usd_per_hour: PositiveFloat | None = None
    region: str | None = Field(None, description="of the prices above")
    spot_region: str | None = None
    price_date: str | None = None
    spot_price_date: str | None = Field(None, description="where it is another")
    regions: dict[str, RegionPrice] = Field(default_factory=dict, description="prices elsewhere, by region")
    purchase: Purchase | None = Field(None, description="of a machine of one's own, whose hour's price follows")

    @model_validator(mode="before")
    @classmethod
    def _priced_by_purchase(cls, fields: Any) -> Any:
        """Fill in what an hour of an owned machine costs; what cannot be read is refused with its field."""
        if not isinstance(fields, dict) or fields.get("purchase") is None:
            return fields
        try:
            purchase = Purchase.model_validate(fields["purchase"])
        except ValidationError:
            return {"provider": OWN, **fields}
        priced = {"on_demand_usd_per_hour": purchase.usd_per_hour, "price_date": str(fields.get("checked", ""))}
        return {"provider": OWN, **fields, **priced}

    @model_validator(mode="after")
    def _something_computes(self) -> Self:
        has_accelerator = self.accelerator is not None and self.accelerator_count > 0
        if has_accelerator is (self.processor is not None and self.cores is not None):
            raise ValueError(
                "give accelerator and accelerator_count, or processor and cores of an instance without any"
            )
        return self

    @property
    def sold_devices(self) -> int:
        """Devices of one instance as programs see them: a part of a device counts as one, and so do all processors."""
        return max(1, round(self.accelerator_count))

    @property
    def device_share(self) -> float:
        """Part of a device that each of them is, 1 for whole ones."""
        return min(1.0, self.accelerator_count) if self.accelerator_count else 1.0

    @property
    def cores_words(self) -> str:
        """Its cores, of an instance without accelerators."""
        return count_in_words(self.cores or 0, "core")

    @property
    def devices_words(self) -> str:
        """Its devices: how many of which accelerator, or cores of which processor."""
        if self.accelerator is None:
            return f"{self.cores_words} of {self.processor}"
        return f"{self.accelerator_count:g} x {self.accelerator}"

    @property
    def usd_per_device_hour(self) -> float | None:
        """On-demand price of one accelerator for an hour."""
        price = self.on_demand_usd_per_hour
        return None if price is None or not self.accelerator_count else price / self.accelerator_count


_TERA = 1e-12
_GIGA = 1e-9
_MIB_OF_GIB = 1024
_OWN_VENDOR = "own"
_EVERY = {"bandwidth_gbps": ("bandwidth_gbs", 1.0), "cost_per_hour": ("usd_per_hour", 1.0)}

_OF_ACCELERATORS = {
    **_EVERY,
    "peak_flops": ("fp32_tflops", _TERA),
    "peak_flops_fp16": ("fp16_tflops", _TERA),
    "vram_gb": ("memory_mib", _MIB_OF_GIB),
    "mem_gb": ("host_memory_gib", 1.0),
}

_OF_PROCESSORS = {**_EVERY, "peak_flops": ("fp32_flops_per_cycle", _GIGA), "mem_gb": ("memory_gib", 1.0)}


def accelerator_fields(fields: Any) -> Any:
    """Return the fields of an accelerator by the catalogue's names; without memory of its own it shares the host's."""
    if not isinstance(fields, dict) or not _says_any(fields, _OF_ACCELERATORS):
        return fields
    values = dict(fields)
    if "mem_gb" in values and not values.get("vram_gb", "memory_mib" in values):
        values |= {"vram_gb": values.pop("mem_gb"), "unified_memory": True}
    named = _named(values, _OF_ACCELERATORS)
    if isinstance(named.get("memory_mib"), float):
        named["memory_mib"] = round(named["memory_mib"])
    if "type" in named:
        named["kind"] = named.pop("type")
    return {"vendor": _OWN_VENDOR, **named}


def processor_fields(fields: Any) -> Any:
    """Return the fields of a processor by the catalogue's names; its peak is shared out over cores and clock."""
    if not isinstance(fields, dict) or not _says_any(fields, _OF_PROCESSORS):
        return fields
    named = {"vendor": _OWN_VENDOR, "base_ghz": 1.0, **_named(fields, _OF_PROCESSORS)}
    named.pop("type", None)
    peak = named.get("fp32_flops_per_cycle")
    if "peak_flops" in fields and isinstance(peak, float):
        cores, clock = _number(named.get("cores", 1)), _number(named["base_ghz"])
        if isinstance(cores, float) and isinstance(clock, float) and cores > 0 and clock > 0:
            named["fp32_flops_per_cycle"] = peak / (cores * clock)
    return named


def _says_any(fields: Mapping[str, object], names: Mapping[str, object]) -> bool:
    return "type" in fields or not names.keys().isdisjoint(fields)


def _named(fields: Mapping[str, Any], names: Mapping[str, tuple[str, float]]) -> dict[str, Any]:
    """Return fields by their own names and in their own units; what is no number stays, to be refused by its name."""
    values: dict[str, Any] = {}
    for name, value in fields.items():
        field, unit = names.get(name, (name, None))
        number = _number(value)
        values[field] = number * unit if unit is not None and isinstance(number, float) else value
    return values


def _number(value: object) -> object:
    """Return a number as such, also one that YAML takes for a word, as in 50e12."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return float(value)
    except ValueError:
        return value


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
