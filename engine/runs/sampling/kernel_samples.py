"""Sampling kernels: every case of a grid, one after the other, run as training frameworks run them, through torch."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, cast

import psutil

from capacity_tui.engine.errors import MissingPartError
from capacity_tui.engine.extras import importing
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.sampling.kernels import (
    KERNELS,
    Kernel,
    KernelCase,
    NumpyBackend,
    kernel_grid,
    quick_grid,
    scales,
)
from capacity_tui.engine.runs.sampling.samples import (
    Clock,
    HostClock,
    Sample,
    append,
    open_samples,
    sample_files,
    sample_path,
    time_kernel,
    today,
)

Run = Callable[[], object]
EXTRA = "torch"
FLUSH_OVER_CACHE = 2  # What is written between runs, over the size of the cache it has to drive out
# An optimizer works through the matrices of a model one by one: so many elements each, 1024 x 1024.
MATRIX = 2**20
BETAS, LEARNING_RATE, DECAY = (0.9, 0.95), 1e-4, 0.1


def load_torch() -> Any:
    """Return the torch module; raises MissingPartError if it is not installed, or broken."""
    with importing(EXTRA, "torch is not installed"):
        import torch  # noqa: PLC0415 - an optional extra
    return torch


def gpu_usable() -> bool:
    """Return whether torch is installed and can use a GPU."""
    try:
        return bool(load_torch().cuda.is_available())
    except MissingPartError:
        return False


class CudaClock:
    """Times with events on the device, each run after the cache was driven out."""

    def __init__(self, torch: Any, flushed: bool) -> None:
        self._torch = torch
        size = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self._flush = torch.empty(FLUSH_OVER_CACHE * size, dtype=torch.int8, device="cuda") if flushed else None

    def seconds(self, run: Callable[[], object], repeats: int) -> float:
        """Return the seconds of ``repeats`` runs on the device."""
        event = self._torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(repeats)]
        for start, end in pairs:
            if self._flush is not None:
                self._flush.zero_()
            start.record()
            run()
            end.record()
        self._torch.cuda.synchronize()
        return float(sum(start.elapsed_time(end) for start, end in pairs)) * 1e-3


class TorchBackend:
    """Runs kernels through torch on ``gpu`` or ``cpu``; raises MissingPartError where it cannot."""

    name = "torch"
    kernels: frozenset[Kernel] = frozenset(KERNELS)

    def __init__(self, kind: str) -> None:
        self._torch = load_torch()
        self.kind = kind
        if kind == "gpu" and not self._torch.cuda.is_available():
            raise MissingPartError("torch sees no GPU", hint="install a torch built for this GPU and its driver")
        self._device = "cuda" if kind == "gpu" else "cpu"
        self.dtypes: tuple[str, ...] = ("bf16", "fp32", "fp16") if kind == "gpu" else ("fp32", "bf16")

    def software(self) -> dict[str, str]:
        """Return the versions samples depend on."""
        versions = {"torch": str(self._torch.__version__)}
        if self.kind == "gpu":
            versions["cuda"] = str(self._torch.version.cuda or self._torch.version.hip)
        else:
            versions["threads"] = str(self._torch.get_num_threads())
        return versions

    def clock(self, case: KernelCase) -> Clock:
        """Return what times a case; memory-bound kernels find the cache empty."""
        if self.kind == "gpu":
            return CudaClock(self._torch, flushed=case.flops == 0)
        return HostClock(self._torch.get_num_threads())

    def context_bytes(self) -> float | None:
        """Return the memory software takes outside its tensors, bytes: on a GPU the context, else the process."""
        torch = self._torch
        if self.kind == "cpu":
            # The smallest training step loads what every training step needs: gradients, losses, optimizers.
            layer = torch.nn.Linear(1, 1)
            step = torch.optim.AdamW(layer.parameters())
            torch.nn.functional.cross_entropy(layer(torch.ones(1, 1)), torch.zeros(1, dtype=torch.long)).backward()
            step.step()
            return float(psutil.Process().memory_info().rss)
        torch.ones(1, device="cuda") @ torch.ones(1, device="cuda")
        free, total = torch.cuda.mem_get_info()
        return float(total - free - torch.cuda.memory_reserved())

    def prepare(self, case: KernelCase) -> Run | None:
        """Return what runs a case once; None where this device cannot hold or run it."""
        torch = self._torch
        make = {
            "gemm": self._gemm,
            "attention": self._attention,
            "norm": self._norm,
            "activation": self._activation,
            "residual": self._residual,
            "embedding": self._embedding,
            "loss": self._loss,
            "optimizer": self._optimizer,
            "copy": self._copy,
            "triad": self._triad,
        }
        try:
            run = make[case.kernel](case)
            run()
        except (RuntimeError, NotImplementedError, MemoryError):
            if self.kind == "gpu":
                torch.cuda.empty_cache()
            return None
        return run

    def _random(self, case: KernelCase, *shape: int, grad: bool = False) -> Any:
        dtype = {"bf16": "bfloat16", "fp16": "float16"}.get(case.dtype, "float32")
        torch = self._torch
        return torch.randn(*shape, device=self._device, dtype=getattr(torch, dtype), requires_grad=grad)

    def _gemm(self, case: KernelCase) -> Run:
        m, n, k = (case.shape[name] for name in "mnk")
        torch = self._torch
        left, right = self._random(case, m, k), self._random(case, k, n)
        if case.step == "forward":
            right = self._random(case, n, k).t()
        elif case.step == "weight_gradient":
            left = self._random(case, k, m).t()
        return lambda: torch.mm(left, right)

    def _attention(self, case: KernelCase) -> Run:
        shape = tuple(case.shape[name] for name in ("batch", "heads", "seq", "head_dim"))
        attend = self._torch.nn.functional.scaled_dot_product_attention
        backward = case.step == "backward"
        tensors = [self._random(case, *shape, grad=backward) for _ in range(3)]
        return (
            self._gradient(attend(*tensors, is_causal=True), tensors)
            if backward
            else (lambda: attend(*tensors, is_causal=True))
        )

    def _gradient(self, output: Any, inputs: list[Any]) -> Run:
        torch, seed = self._torch, self._torch.ones_like(output)
        return lambda: torch.autograd.grad(output, inputs, seed, retain_graph=True)

    def _norm(self, case: KernelCase) -> Run:
        width = case.shape["width"]
        norm = self._torch.nn.functional.layer_norm
        return self._row_kernel(case, lambda x: norm(x, (width,)))

    def _activation(self, case: KernelCase) -> Run:
        return self._row_kernel(case, self._torch.nn.functional.gelu)

    def _row_kernel(self, case: KernelCase, function: Callable[[Any], object]) -> Run:
        backward = case.step == "backward"
        x = self._random(case, case.shape["rows"], case.shape["width"], grad=backward)
        return self._gradient(function(x), [x]) if backward else (lambda: function(x))

    def _residual(self, case: KernelCase) -> Run:
        one, two = (self._random(case, case.shape["rows"], case.shape["width"]) for _ in range(2))
        return lambda: one + two

    def _embedding(self, case: KernelCase) -> Run:
        torch = self._torch
        table = self._random(case, case.shape["vocab"], case.shape["width"])
        places = torch.randint(case.shape["vocab"], (case.shape["rows"],), device=self._device)
        return lambda: torch.nn.functional.embedding(places, table)

    def _loss(self, case: KernelCase) -> Run:
        torch = self._torch
        logits = self._random(case, case.shape["rows"], case.shape["width"], grad=True)
        targets = torch.randint(case.shape["width"], (case.shape["rows"],), device=self._device)

        def run() -> object:
            return torch.autograd.grad(torch.nn.functional.cross_entropy(logits, targets), logits)

        return run

    def _optimizer(self, case: KernelCase) -> Run:
        matrices, rest = divmod(case.shape["elements"], MATRIX)
        parameters = [self._random(case, size, grad=True) for size in (*(MATRIX,) * matrices, rest) if size]
        for parameter in parameters:
            parameter.grad = self._random(case, parameter.numel())
        adamw = self._torch.optim.AdamW(parameters, lr=LEARNING_RATE, betas=BETAS, weight_decay=DECAY)
        return cast("Run", adamw.step)

    def _copy(self, case: KernelCase) -> Run:
        source, target = (self._random(case, case.shape["elements"]) for _ in range(2))
        return lambda: target.copy_(source)

    def _triad(self, case: KernelCase) -> Run:
        one, two, target = (self._random(case, case.shape["elements"]) for _ in range(3))
        return lambda: self._torch.add(one, two, alpha=0.5, out=target)


Where = Literal["gpu", "cpu"]
LIMIT_SECONDS, QUICK_LIMIT_SECONDS = 1.0, 0.3  # Seconds a case may take before its median counts as known


Backend: TypeAlias = TorchBackend | NumpyBackend
"""Software that runs kernels on one device."""


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


def sampling_grid(
    backend: Backend, quick: bool, only: frozenset[Kernel] | None = None, units: Collection[str] = ()
) -> tuple[KernelCase, ...]:
    """Return the cases a backend is sampled with; ``units`` are the types that the device has units for."""
    wanted = backend.kernels if only is None else backend.kernels & only
    scale = scales()[f"{backend.kind}_quick" if quick else backend.kind]
    return quick_grid(scale, backend.dtypes, wanted, units) if quick else kernel_grid(scale, backend.dtypes, wanted)


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
        folder: the program's data, the user's own by default.

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
    return Sample(case.kernel, case.step, case.dtype, case.shape, **asdict(timing), date=today())


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
