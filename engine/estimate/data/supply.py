"""What of a plan, its hardware and the catalogue decides how its data arrive, as numbers that formulas read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog.rows import Holds
from capacity_tui.engine.estimate.data.prices import (
    arrival_seconds,
    decode_seconds,
    mean_bandwidth,
    read_seconds,
    token_bytes,
)
from capacity_tui.engine.estimate.work import Delivery
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, present
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import GIGA, MEGA

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.catalog.rows import DataFormat, StorageTier
    from capacity_tui.engine.cluster import Cluster, NodeHost
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
