"""How the data of a training reach its devices: bytes, reading, decoding, costs, and what nothing hides of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted, price_age
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH, DataFormat, Disk, Egress, Holds, PriceStep, StorageTier
from capacity_tui.engine.cluster import NodeHost
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.work import Delivery
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, mean, present
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import GIGA, HOUR_SECONDS, MEGA

if TYPE_CHECKING:
    from capacity_tui.engine.cluster import Cluster
    from capacity_tui.engine.models.networks import LayerList, NetworkSpec

CORES = "host-cores"
LOCAL, NO_CACHE, MEMORY, STREAMING = "local", "none", "ram", "streaming"
PROCESSOR = "cpu"


@dataclass(frozen=True, slots=True)
class Supply:
    """How data reach the devices of a run."""

    format: DataFormat  # how they are stored
    tier: StorageTier  # what they are read from first
    cache: StorageTier | None  # what later passes read from; None where that is the same
    unit_bytes: Number  # stored bytes of a token or sample
    units: Number | None  # tokens or samples of the data set; None where neither plan nor job tells
    epochs: Number  # passes through them
    bandwidth: Number  # bytes a second that a node reads, over all passes
    core_rate: Number  # tokens or samples a second that a core decodes; infinite where nothing is to do
    cores: float  # processor cores for each device
    workers: float  # loader processes for each device
    nodes: Number  # nodes that read side by side
    devices: Number  # devices that are fed
    assumed: tuple[str, ...] = ()  # what was not given

    @property
    def bytes(self) -> Number | None:
        """Stored bytes of the data set; None where its length is open."""
        return None if self.units is None else self.units * self.unit_bytes

    def delivery(self, units: Number) -> Delivery:
        """Return how the data of one step arrive; ``units`` are tokens or samples of the step."""
        reading = read_seconds(units, self.unit_bytes, self.nodes, self.bandwidth)
        decoding = decode_seconds(units, self.devices, self.workers, self.core_rate)
        arriving = arrival_seconds(reading, decoding, self.workers)
        return Delivery(arriving, present(self.workers), reading, decoding)


def supply_of(plan: Plan, content: Content, cluster: Cluster, catalog: Catalog) -> Supply:
    """Return how the data of a training arrive; what its plan leaves open is taken as it usually is."""
    data = plan.data
    row = format_row(data.format, content, catalog)
    size = stored_bytes(row, content)
    place = LOCAL if data.source == AUTO else data.source
    tier = tier_of(place, cluster, catalog)
    first = tier_bandwidth(tier, row, cluster) if data.read_gbs is None else data.read_gbs * GIGA
    units, epochs = data_units(plan, content.units_per_sample)
    assumption = catalog.assumptions[CORES]
    cores = cluster.host.cores if spare_cores(cluster) is None else spare_cores(cluster)
    cores = assumption.value if cores is None else cores
    workers = float(usual_workers(cores) if data.workers == AUTO else data.workers)
    cache = cache_tier(str(data.cache), None if units is None else units * size, cluster, catalog)
    later = first if cache is None else np.maximum(first, tier_bandwidth(cache, row, cluster))
    return Supply(
        format=row,
        tier=tier,
        cache=cache,
        unit_bytes=size,
        units=units,
        epochs=epochs,
        bandwidth=mean_bandwidth(epochs, first, later),
        core_rate=np.inf if row.decoded_mb_per_core is None else row.decoded_mb_per_core * MEGA / size,
        cores=float(cores),
        workers=workers,
        nodes=np.maximum(cluster.devices / cluster.per_node, 1.0),
        devices=cluster.devices,
        assumed=tuple(_assumed(plan, tier, cluster, assumption.name, assumption.value)),
    )


def format_row(name: str, content: Content, catalog: Catalog) -> DataFormat:
    """Return the row of a format; where it is open, or is for other data, the usual one."""
    named = None if name == AUTO else catalog.data_formats[name]
    usual = (row for row in catalog.data_formats.values() if content.holds in row.holds)
    return named if named is not None and content.holds in named.holds else next(usual)


def stored_bytes(row: DataFormat, content: Content) -> Number:
    """Return the stored bytes of one token or sample, as the run counts."""
    if row.bytes_per_token is not None:
        return row.bytes_per_token
    if row.bytes_per_sample is not None:
        return row.bytes_per_sample / content.units_per_sample
    if row.bytes_per_number is not None:
        return row.bytes_per_number * content.numbers / content.units_per_sample
    return token_bytes(content.numbers)


def tier_of(place: str, cluster: Cluster, catalog: Catalog) -> StorageTier:
    """Return what a source of a plan is read from: on the node itself, the kind of disk that it has."""
    rows = [row for row in catalog.storage_tiers.values() if row.place == place]
    return next((row for row in rows if row.disk_kind == cluster.host.disk_kind), rows[0])


def tier_bandwidth(tier: StorageTier, row: DataFormat, cluster: Cluster) -> float:
    """Return the bytes a second that a node reads of data in a format, B/s."""
    if tier.place == STREAMING and cluster.host.download is not None:
        return cluster.host.download
    reached = (tier.any_order_gbs if row.any_order else tier.read_gbs) * GIGA
    network = cluster.host.network
    is_remote = tier.place not in (None, LOCAL)
    return min(reached, network) if is_remote and network is not None else reached


def download_bandwidth(host: NodeHost, catalog: Catalog) -> float:
    """Return the bytes a second at which data are copied to a node from the internet, shard after shard, B/s."""
    if host.download is not None:
        return host.download
    usual = next(row.read_gbs for row in catalog.storage_tiers.values() if row.place == STREAMING) * GIGA
    return usual if host.network is None else min(usual, host.network)


def cache_tier(cache: str, size: Number | None, cluster: Cluster, catalog: Catalog) -> StorageTier | None:
    """Return what later passes read from; the system keeps in free memory what it read, as long as there is room."""
    if cache == AUTO:
        memory = cluster.host_memory_bytes
        if size is None or memory is None:
            return None
        cache = MEMORY if bool(np.all(np.less_equal(size, 0.5 * memory * cluster.per_node))) else NO_CACHE
    return next((row for row in catalog.storage_tiers.values() if row.cache == cache), None)


def data_units(plan: Plan, units_per_sample: Number = 1.0) -> tuple[Number | None, Number]:
    """Return the tokens or samples of the data set, None where their number is open, and the passes through them.

    Args:
        plan: settled, but for its data.
        units_per_sample: tokens that the model makes of a sample; 1 where samples are counted.
    """
    training = plan.training
    whole = _job_units(plan, units_per_sample)
    if training.samples is not None:
        own = float(training.samples) * units_per_sample
    elif plan.data.unique_tokens is not None:
        own = float(plan.data.unique_tokens)
    else:
        return whole, 1.0
    return own, 1.0 if whole is None else np.maximum(1.0, whole / own)


def _job_units(plan: Plan, units_per_sample: Number) -> Number | None:
    """Return the tokens or samples that a job works through; None where its length is open."""
    training = plan.training
    if training.tokens is not None and training.tokens != AUTO:
        return float(training.tokens)
    if training.steps is not None and isinstance(training.global_batch, int):
        return float(training.steps) * float(training.global_batch) * units_per_sample
    if training.samples is not None and training.epochs is not None:
        return float(training.samples) * float(training.epochs) * units_per_sample
    return None


def spare_cores(cluster: Cluster) -> float | None:
    """Return the cores that are left beside the work of a processor: half of them; None beside accelerators."""
    return float(np.max(cluster.device.units)) * 0.5 if cluster.device.kind == PROCESSOR else None


def usual_workers(cores: float) -> int:
    """Return the loader processes that so many cores carry: one each, one core left to the training itself."""
    return max(1, int(cores) - 1)


def _assumed(plan: Plan, tier: StorageTier, cluster: Cluster, cores: str, count: float) -> Iterator[str]:
    if plan.data.read_gbs is None:
        yield f"reading: {tier.name}, as such storage usually is"
    if cluster.host.cores is None and spare_cores(cluster) is None and plan.data.workers == AUTO:
        yield f"{count:g} {cores}"


IMAGE_SIZES = frozenset({"image_size", "image_h"})  # Parameters that networks over images have


@dataclass(frozen=True, slots=True)
class Content:
    """The units of some data."""

    holds: Holds  # tokens of text, images, or samples of features
    numbers: Number  # numbers of one sample; of tokens, entries of their vocabulary
    units_per_sample: Number = 1.0  # tokens that the model makes of a sample; 1 where samples are counted


def transformer_content(plan: Plan, shape: TransformerShape) -> Content:
    """Return what a transformer reads: tokens of text, or images in patches."""
    length = float(plan.training.seq_len)
    if shape.vision is None:
        return Content("tokens", shape.vocab, length)
    return Content("images", shape.vision.frames * shape.vision.channels * shape.vision.image**2, length)


def network_content(spec: NetworkSpec, network: LayerList) -> Content:
    """Return what a network of layers reads: images, or samples of features."""
    return Content("images" if is_of_images(spec) else "features", float(network.input.elements))


def is_of_images(spec: NetworkSpec) -> bool:
    return bool(IMAGE_SIZES & type(spec).model_fields.keys())


Route = Literal["internet", "area", "elsewhere"]


step_usd = formula()  # Price of the gigabytes of a month that fall into one step of a price list
held_usd = formula()


@dataclass(frozen=True, slots=True)
class DataPrice:
    """What a price of data rests on."""

    usd: Number  # the price
    words: str  # whose price it is, of which day, marked where it is old or was not verified
    verified: bool  # whether the source was seen, not only recalled


@dataclass(frozen=True, slots=True)
class DataLocation:
    """Where data is: at a provider, in one of its regions where that is known."""

    provider: str
    region: str | None = None


def transfer_price(gigabytes: Number, source: DataLocation, target: DataLocation, catalog: Catalog) -> DataPrice | None:
    """Return what it costs to move data from one place to another; None where no price is known.

    Inside a region nothing is paid. Another provider is reached over the internet.

    Args:
        gigabytes: what moves within a month, GB.
        source: where the data is, which is where it is paid for.
    """
    route = _route(source, target, catalog)
    if route is None:
        return DataPrice(0.0, f"{source.provider}: nothing inside a region", True)
    areas = _areas(source.region, catalog)
    rows = [row for row in catalog.egress.values() if row.provider == source.provider and row.route == route]
    fitting = [row for row in rows if areas & set(row.areas)] or rows
    if not fitting:
        return None
    row = fitting[0]
    return DataPrice(_leaving_usd(gigabytes, row.steps), _words(row), row.verified)


def _leaving_usd(gigabytes: Number, steps: Sequence[PriceStep]) -> Number:
    first, usd = 0.0, np.zeros_like(np.asarray(gigabytes, float))
    for step in steps:
        last = np.inf if step.to_gb is None else step.to_gb
        usd = usd + step_usd(gigabytes, first, last, step.usd_per_gb)
        first = last
    return usd


def holding_price(gigabytes: Number, months: Number, disk: Disk) -> DataPrice:
    """Return what storage costs."""
    return DataPrice(held_usd(gigabytes, months, disk.usd_per_gb_month), _words(disk), disk.verified)


def block_storage_usd(provider: str, held_bytes: float, seconds: float, catalog: Catalog) -> float | None:
    """Return what disk space costs while a job runs, at a provider's cheapest blocks; None where no price is known."""
    own = (disk for disk in catalog.disks.values() if disk.provider == provider and disk.kind == "block")
    disk = min(own, key=lambda disk: disk.usd_per_gb_month, default=None)
    if disk is None:
        return None
    return mean(holding_price(held_bytes / GIGA, seconds / HOUR_SECONDS / HOURS_OF_A_MONTH, disk).usd)


def _route(source: DataLocation, target: DataLocation, catalog: Catalog) -> Route | None:
    if source.provider != target.provider:
        return "internet"
    if source.region == target.region:
        return None
    return "area" if _areas(source.region, catalog) & _areas(target.region, catalog) else "elsewhere"


def _areas(region: str | None, catalog: Catalog) -> set[str]:
    row = catalog.regions.known(region)
    return set() if row is None else set(row.areas)


def _words(row: Egress | Disk) -> str:
    day = row.price_date or ""
    age = price_age(row.price_date).words
    doubts = ("" if row.verified else "unverified", "" if age in day else age)
    return ", ".join(filter(None, (row.name, day, *doubts)))


SHORT_VOCABULARY = counted("short-vocabulary")


@equation
def token_bytes(vocabulary: Number) -> Number:
    """Bytes of the number of a token on disk."""
    return np.where(np.less_equal(vocabulary, SHORT_VOCABULARY), 2.0, 2.0 * 2.0)


mean_bandwidth = formula()  # Bytes a second that a node reads, the mean over all passes through the data
read_seconds = formula()
decode_seconds = formula()


@equation
def arrival_seconds(reading: Number, decoding: Number, workers: Number) -> Number:
    """Seconds in which the data of a step arrive at the devices."""
    return np.where(np.greater(workers, 0.0), np.maximum(reading, decoding), reading + decoding)


input_seconds = formula()
