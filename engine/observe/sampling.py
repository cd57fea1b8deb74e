"""What a run does to its machine at one moment: its processes, the machine as a whole, the GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from capacity_tui.engine.machine import Fact, Sample, Sampler, detected, missing
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.observe.processes import ProcessTree, TreeSample


@dataclass(frozen=True, slots=True)
class Observation:
    """One moment of a run.

    Attributes:
        at_seconds: on the monotonic clock.
        system: the machine, with all other work on it; ``gpus`` are all that it has.
        gpu_memory_bytes: memory that the run's processes hold on each GPU, in the order of ``system.gpus``.
    """

    at_seconds: float
    run: TreeSample
    system: Sample
    gpu_memory_bytes: tuple[Fact[int], ...]


def observe(tree: ProcessTree, sampler: Sampler) -> Observation:
    """Return what a run and its machine do now; rates are those since the call before with the same two.

    Args:
        sampler: reads the machine; made with ``detailed=True`` it reads what each process holds of a GPU.
    """
    system = sampler.sample()
    run = tree.sample()
    pids = frozenset(process.pid for process in run.processes)
    held = tuple(_held(gpu, pids) for gpu in system.gpus.value or ())
    return Observation(run.at_seconds, run, system, held)


def _held(gpu: GpuSample, pids: Iterable[int]) -> Fact[int]:
    """Return what some processes hold of a GPU."""
    holders = gpu.holders
    if holders.value is None:
        return missing(holders.source, holders.reason)
    amounts = [held for pid, held in holders.value if pid in pids]
    if not holders.value and gpu.memory_used_bytes.value:
        return missing(holders.source, "the driver names no process")
    if not amounts and not all(_here(pid) for pid, _ in holders.value):
        return missing(holders.source, "the driver numbers processes as another container or the host does")
    known = [held for held in amounts if held is not None]
    if len(known) < len(amounts):
        return missing(holders.source, "the driver tells no amounts")
    return detected(sum(known), holders.source)


def _here(pid: int) -> bool:
    """Whether a process of this number can be seen from here, whatever its owner."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
