"""Room for sequences in the cache: what an engine takes of a device, and how many that holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.serving.memory import ServingMemory, claimed_bytes, serving_memory
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.numeric import Number, added, any_true, where

# Result keys of what an engine takes beyond its need.
CLAIMED, SEQUENCES = "inference.claimed_bytes", "inference.sequences_in_cache"


def outside_bytes(run: ServingRun) -> Number:
    """Bytes of driver context and communication buffers."""
    layout = run.layout
    groups = (layout.tp > 1) * 1.0 + (layout.pp > 1) * 1.0 + (layout.ep > 1) * 1.0
    efficiency = run.cluster.device.efficiency
    return context_bytes(efficiency.context_bytes, efficiency.communicator_bytes, groups)


def reserved_bytes(run: ServingRun, memory: ServingMemory) -> Number:
    """Bytes of a device that a batch needs: of its parts, lost to fragmentation, outside the allocator."""
    return added(memory.parts.values()) * (1.0 + run.runtime.fragmentation) + outside_bytes(run)


def claim(run: ServingRun, memory: ServingMemory) -> Mapping[str, Number]:
    """Return what an engine takes beyond its need, and how many sequences fit into that; empty where it takes none."""
    if run.cluster.device.memory_bytes is None or not any_true(run.runtime.claim > 0):
        return {}
    taken, sequences = _held(run, memory)
    return {CLAIMED: taken, SEQUENCES: sequences}


def room_in_cache(run: ServingRun) -> Number:
    """Sequences whose cache an engine has room for; infinite where the memory of a device is not known."""
    alone = replace(run, batch=1.0)
    return _held(alone, serving_memory(alone))[1]


def largest_wave(run: ServingRun) -> Number:
    """Sequences of a batch that an engine runs at once: as many as its cache has room for beside their own buffers."""
    low, high = np.ones_like(run.batch), np.maximum(run.batch, 1.0)
    while any_true(low < high):
        middle = np.ceil((low + high) / 2.0)
        part = replace(run, batch=middle)
        holds = _held(part, serving_memory(part))[1] >= middle
        low, high = np.where(holds, middle, low), np.where(holds, high, middle - 1.0)
    return low


def _held(run: ServingRun, memory: ServingMemory) -> tuple[Number, Number]:
    """Return the bytes an engine takes, all there are where it takes what it needs, and the sequences these hold."""
    share, capacity = run.runtime.claim, run.cluster.device.memory_bytes
    if capacity is None:
        return np.inf, np.inf
    reserved = reserved_bytes(run, memory)
    cache = memory.parts["kv_cache"]
    needed = reserved - cache
    taken = claimed_bytes(capacity, where(share > 0, share, 1.0), needed, run.runtime.claims_free)
    return taken, np.floor(np.maximum(taken - needed, 0.0) / np.maximum(cache / run.batch, 1.0))
