"""Main memory that the data of a training take on each node, and room it takes on disks for a while."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.estimate import Answer, equation
from capacity_tui.engine.estimate.data import MEMORY, Content, Supply
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import DataSection

WORKER = "loader-worker-bytes"
TOKEN_BYTES = counted("captured-input-bytes")
FP32_BYTES = 4.0
PINNED = 2.0
"""Batches that wait in pinned memory for each device: one that is copied, one that comes next."""


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes of main memory on one node.

    Attributes:
        workers: of the loader's processes themselves.
        prefetched: of the batches that they keep ready.
        pinned: of the batches that wait for the devices.
        shuffle_buffer: of the samples that streams draw from.
        cache: of the data set, where main memory is its cache.
        offloaded: of what the training keeps there: states, parameters, activations.
        capacity: what the node has; None where unknown.
    """

    workers: float
    prefetched: float
    pinned: float
    shuffle_buffer: float
    cache: float
    offloaded: float
    capacity: float | None

    @property
    def total(self) -> float:
        """All of it together."""
        held = (self.workers, self.prefetched, self.pinned, self.shuffle_buffer, self.cache, self.offloaded)
        return sum(held)

    @property
    def fits(self) -> bool | None:
        """Whether the node has as much; None where that is unknown."""
        return None if self.capacity is None else self.total <= self.capacity


@equation(
    "size = devices · batches · samples · sample",
    unit="B",
    source="batches as tensors, which wait in main memory",
    units={"sample": "B"},
)
def waiting_bytes(devices: Number, batches: Number, samples: Number, sample: Number) -> Number:
    """Bytes of batches that wait in main memory of a node.

    Args:
        devices: devices of the node.
        batches: batches for each device.
        samples: samples of a batch.
        sample: bytes of a sample as tensors.
    """
    return devices * batches * samples * sample


def sample_bytes(content: Content) -> float:
    """Return the bytes of one sample as tensors: tokens with those to predict, or numbers of 32 bits."""
    if content.holds == "tokens":
        return mean(content.units_per_sample) * TOKEN_BYTES
    return mean(content.numbers) * FP32_BYTES


def host_memory_of(found: Answer, supply: Supply, content: Content, catalog: Catalog) -> HostMemory:
    """Return the main memory that a training and its data take on each node.

    Args:
        found: the training.
        supply: how its data arrive.
        content: what they are made of.
        catalog: assumptions.
    """
    cluster, data = found.resolved.cluster, found.plan.data
    devices = min(mean(cluster.per_node), mean(cluster.devices))
    workers, sample = supply.workers, sample_bytes(content)
    batch = float(found.plan.training.micro_batch)
    host = cluster.host_memory_bytes
    processor = cluster.device.kind == "cpu"
    return HostMemory(
        workers=devices * workers * catalog.assumptions[WORKER].value * 1e9,
        prefetched=mean(waiting_bytes(devices, workers * _number(data, "prefetch"), batch, sample)),
        pinned=0.0 if processor else mean(waiting_bytes(devices, PINNED, batch, sample)),
        shuffle_buffer=mean(waiting_bytes(devices, max(workers, 1.0), _number(data, "shuffle_buffer"), sample)),
        cache=mean(supply.bytes) if data.cache == MEMORY and supply.bytes is not None else 0.0,
        offloaded=devices * mean(found.estimate.memory.host_bytes),
        capacity=None if host is None else mean(host) * devices,
    )


def _number(data: DataSection, name: str) -> float:
    value = getattr(data, name)
    return float(value) if isinstance(value, int) else 0.0
