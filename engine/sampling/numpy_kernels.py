"""Kernels NumPy can run on any CPU: matrix products, copies and element-wise work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from capacity_tui.engine.sampling.kernel_cases import Kernel, KernelCase
from capacity_tui.engine.sampling.timing import Clock, HostClock

Run = Callable[[], object]


class NumpyBackend:
    """Runs kernels through NumPy and the BLAS it was built with."""

    name = "numpy"
    kind = "cpu"
    kernels: frozenset[Kernel] = frozenset({"gemm", "copy", "triad", "residual", "activation"})
    dtypes: tuple[str, ...] = ("fp32",)

    def software(self) -> dict[str, str]:
        """Return the versions samples depend on."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, str(blas["name"]): str(blas["version"])}

    def clock(self, case: KernelCase) -> Clock:
        """Return what times a case."""
        del case
        return HostClock()

    def context_bytes(self) -> float | None:
        """Return what the software takes outside its tensors; None: a NumPy process is no training process."""
        return None

    def prepare(self, case: KernelCase) -> Run | None:
        """Return what runs a case once; None where this backend cannot."""
        make = {"gemm": _gemm, "copy": _copy, "triad": _triad, "residual": _residual, "activation": _activation}
        if case.kernel not in make or (case.kernel == "activation" and case.step != "forward"):
            return None
        return make[case.kernel](case)


def _filled(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.full(shape, 0.5, dtype=np.float32)


def _gemm(case: KernelCase) -> Run:
    m, n, k = (case.shape[name] for name in "mnk")
    left, right, out = _filled(m, k), _filled(k, n), _filled(m, n)
    if case.step == "forward":
        right = _filled(n, k).T
    elif case.step == "weight_gradient":
        left = _filled(k, m).T
    return lambda: np.matmul(left, right, out=out)


def _copy(case: KernelCase) -> Run:
    source, target = _filled(case.shape["elements"]), _filled(case.shape["elements"])
    return lambda: np.copyto(target, source)


def _triad(case: KernelCase) -> Run:
    one, two, target = (_filled(case.shape["elements"]) for _ in range(3))
    return lambda: np.add(one, two, out=target)


def _residual(case: KernelCase) -> Run:
    one, two, target = (_filled(case.shape["rows"], case.shape["width"]) for _ in range(3))
    return lambda: np.add(one, two, out=target)


def _activation(case: KernelCase) -> Run:
    source, target = (_filled(case.shape["rows"], case.shape["width"]) for _ in range(2))
    return lambda: np.maximum(source, np.float32(0.0), out=target)
