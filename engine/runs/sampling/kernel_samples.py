"""Sampling kernels: every case of a grid, one after the other, with what is already known left out."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol, TypedDict, cast

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.sampling.kernels import (
    CPU,
    CPU_QUICK,
    GPU,
    GPU_QUICK,
    KERNELS,
    Kernel,
    KernelCase,
    NumpyBackend,
    Scale,
    kernel_grid,
)
from capacity_tui.engine.runs.sampling.samples import (
    Clock,
    Sample,
    append,
    open_samples,
    sample_files,
    sample_path,
    time_kernel,
    today,
)
from capacity_tui.engine.runs.sampling.torch_kernels import TorchBackend

Where = Literal["gpu", "cpu"]

# Seconds a case may take before its median counts as known.
LIMIT_SECONDS, QUICK_LIMIT_SECONDS = 1.0, 0.3


class Backend(Protocol):
    """Software that runs kernels on one device."""

    name: str
    kind: str
    kernels: frozenset[Kernel]
    dtypes: tuple[str, ...]

    def software(self) -> dict[str, str]:
        """Return the versions samples depend on."""
        ...

    def clock(self, case: KernelCase) -> Clock:
        """Return what times a case."""
        ...

    def context_bytes(self) -> float | None:
        """Return the memory software takes outside its tensors, bytes; None where that means nothing."""
        ...

    def prepare(self, case: KernelCase) -> Callable[[], object] | None:
        """Return what runs a case once; None where it cannot run."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far sampling is."""

    done: int  # cases behind us, those of earlier times included
    total: int
    what: str  # the case just done, in one line
    sample: Sample | None  # its timing; None where it could not run here


def sampling_backend(where: Where, software: Literal["torch", "numpy"] | None = None) -> Backend:
    """Return what kernels run through: torch on a GPU; on a CPU torch if it is there, else NumPy.

    Raises:
        MissingPartError: a GPU or torch is needed and missing.
    """
    wants_torch = where == "gpu" or software == "torch"
    if wants_torch or (software is None and importlib.util.find_spec("torch") is not None):
        return TorchBackend(where)
    return NumpyBackend()


def sampling_grid(backend: Backend, quick: bool, only: frozenset[Kernel] | None = None) -> tuple[KernelCase, ...]:
    """Return the cases a backend is sampled with."""
    wanted = backend.kernels if only is None else backend.kernels & only
    return kernel_grid(_scale(backend.kind, quick), backend.dtypes[:1] if quick else backend.dtypes, wanted)


def sample_kernels(
    backend: Backend,
    device: str,
    cases: tuple[KernelCase, ...],
    *,
    limit_seconds: float = LIMIT_SECONDS,
    folder: Path | None = None,
    cancelled: threading.Event | None = None,
) -> Iterator[Progress]:
    """Time the cases not timed before; each is written to the user's folder before it is reported.

    Args:
        device: key of the device, which names the file.
        limit_seconds: time for one case.
        folder: the program's data, the user's own by default.
        cancelled: ends the iteration when set; what was timed stays.

    Raises:
        StorageError: the file cannot be written.
    """
    software = {backend.name: "", **backend.software()}
    opened = open_samples(sample_path(device, software, folder), software, backend.context_bytes())
    known = {sample.key for sample in opened.samples}
    for index, case in enumerate(cases, start=1):
        if cancelled is not None and cancelled.is_set():
            return
        if case.key in known:
            continue
        sample = _timed(backend, case, limit_seconds, cancelled)
        if sample is not None:
            append(opened.path, sample)
        yield Progress(index, len(cases), case.key, sample)


def _timed(
    backend: Backend, case: KernelCase, limit_seconds: float, cancelled: threading.Event | None
) -> Sample | None:
    run = backend.prepare(case)
    timing = None if run is None else time_kernel(run, backend.clock(case), limit_seconds, cancelled)
    if timing is None:
        return None
    return Sample(
        name=case.kernel,
        step=case.step,
        dtype=case.dtype,
        shape=case.shape,
        seconds=timing.seconds,
        best=timing.best,
        spread=timing.spread,
        runs=timing.runs,
        date=today(),
    )


def _scale(kind: str, quick: bool) -> Scale:
    if kind == "gpu":
        return GPU_QUICK if quick else GPU
    return CPU_QUICK if quick else CPU


NODE_MODULE = "capacity_tui.engine.runs.sampling.kernel_samples"


class NodeTask(TypedDict):
    """What a node times."""

    where: Literal["gpu", "cpu"]  # ``gpu`` or ``cpu``
    quick: bool
    kernels: list[str]  # which; all where empty


def main(task: NodeTask) -> None:
    """Time the kernels of a task, and print the samples as their file has them.

    Raises:
        MissingPartError: torch is not there, or cannot use the GPU.
    """
    backend = sampling_backend(task["where"])
    wanted = frozenset(cast("list[Kernel]", task["kernels"]) or KERNELS)
    limit = QUICK_LIMIT_SECONDS if task["quick"] else LIMIT_SECONDS
    with tempfile.TemporaryDirectory(prefix="capacity-tui-") as folder:
        cases = sampling_grid(backend, task["quick"], wanted)
        for _ in sample_kernels(backend, "node", cases, limit_seconds=limit, folder=Path(folder)):
            pass
        for file in sample_files("node", Path(folder)):
            sys.stdout.write(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
