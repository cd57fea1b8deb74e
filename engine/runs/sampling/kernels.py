"""What is timed: kernels over a grid of shapes, with the work each does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Literal, TypeAlias, get_args

import numpy as np

from capacity_tui.engine.catalog import counted, parse_shipped
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.sampling.samples import Clock, HostClock

Kernel: TypeAlias = Literal[
    "gemm", "attention", "norm", "activation", "residual", "embedding", "loss", "optimizer", "copy", "triad"
]

Pass: TypeAlias = Literal["forward", "input_gradient", "weight_gradient", "backward"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}

# AdamW reads parameter, gradient and two moments and writes all but the gradient; one operation after the other, as
# frameworks' own does, moves several times that.
ADAMW_MOVED = 7 * counted("separate-optimizer-passes")

# A loss in the logits' own type moves its copies of them as often as estimates say.
LOSS_MOVED = counted("loss-passes") * counted("logit-copies")

# Tensors each kernel reads and writes, in the operations that are sampled (embedding: rows read and written).
MOVED: dict[tuple[str, str], float] = {
    ("norm", "forward"): 2,
    ("norm", "backward"): 3,
    ("activation", "forward"): 2,
    ("activation", "backward"): 3,
    ("residual", "forward"): 3,
    ("embedding", "forward"): 2,
    ("loss", "forward"): LOSS_MOVED,
    ("copy", "forward"): 2,
    ("triad", "forward"): 3,
    ("optimizer", "forward"): ADAMW_MOVED,
}

ATTENTION_BACKWARD = 2.5  # The fused backward pass computes the scores again: five products for two


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One kernel at one shape."""

    kernel: Kernel
    step: Pass
    dtype: str
    shape: Mapping[str, int]  # sizes by name, in the order they are written

    @property
    def key(self) -> str:
        """The case in one line; equal for equal cases."""
        sizes = " ".join(f"{name}={size}" for name, size in self.shape.items())
        return f"{self.kernel} {self.step} {self.dtype} {sizes}"

    @property
    def flops(self) -> float:
        """FLOPs of one run: 2·m·n·k of a product, causal attention's two (backward five) products."""
        sizes = self.shape
        if self.kernel == "gemm":
            return 2.0 * sizes["m"] * sizes["n"] * sizes["k"]
        if self.kernel == "attention":
            causal = 2.0 * sizes["batch"] * sizes["heads"] * sizes["seq"] ** 2 * sizes["head_dim"]
            return causal * (ATTENTION_BACKWARD if self.step == "backward" else 1.0)
        return 0.0

    @property
    def bytes(self) -> float:
        """Bytes one run moves where caches keep nothing between its operations."""
        sizes, width = self.shape, ELEMENT_BYTES[self.dtype]
        if self.kernel == "gemm":
            m, n, k = sizes["m"], sizes["n"], sizes["k"]
            return float(width * (m * k + k * n + m * n))
        if self.kernel == "attention":
            return 4.0 * width * sizes["batch"] * sizes["heads"] * sizes["seq"] * sizes["head_dim"]
        elements = sizes["elements"] if "elements" in sizes else sizes["rows"] * sizes["width"]
        return float(MOVED[self.kernel, self.step] * width * elements)


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes that suit a kind of device."""

    rows: tuple[int, ...]  # tokens of matrix products
    widths: tuple[int, ...]  # inner and outer widths of matrix products
    lengths: tuple[int, ...]  # tokens of attention
    tokens: tuple[int, ...]  # rows of memory-bound kernels
    hidden: tuple[int, ...]  # their widths
    vocab: tuple[int, ...]  # widths of the loss
    elements: tuple[int, ...]  # sizes of copies and optimizer states


@cache
def scales() -> Mapping[str, Scale]:
    """Return the sizes of ``profiles/kernel_sizes.yaml``, by where kernels run; ``_quick`` ends those of few."""
    return {name: record_of_data(Scale, row) for name, row in parse_shipped("kernel_sizes.yaml").items()}


HEADS, HEAD_SIZES = 8, (64, 128)
COMPUTING: frozenset[Kernel] = frozenset({"gemm", "attention"})  # all others are bound by memory
LARGEST = 2**31  # Elements a case may hold in one tensor: 4 GiB of 2-byte ones


def kernel_grid(scale: Scale, dtypes: tuple[str, ...], only: frozenset[Kernel]) -> tuple[KernelCase, ...]:
    """Return every case of the given kernels, always in the same order."""
    cases = (case for dtype in dtypes for case in _cases(scale, dtype))
    return tuple(case for case in cases if case.kernel in only and _largest_tensor(case) <= LARGEST)


def quick_grid(
    scale: Scale, dtypes: tuple[str, ...], only: frozenset[Kernel], units: Collection[str]
) -> tuple[KernelCase, ...]:
    """Return the cases of kernels in the first type, and in narrower ones with units those that compute."""
    first, *others = dtypes
    narrower = (name for name in others if name in units and ELEMENT_BYTES[name] < ELEMENT_BYTES[first])
    return kernel_grid(scale, (first,), only) + kernel_grid(scale, tuple(narrower), only & COMPUTING)


def _cases(scale: Scale, dtype: str) -> Iterator[KernelCase]:
    for m, n, k in product(scale.rows, scale.widths, scale.widths):
        yield KernelCase("gemm", "forward", dtype, {"m": m, "n": n, "k": k})
        # The gradients' operand orders cost the same at most shapes: the middle rows suffice.
        if m == scale.rows[-2]:
            yield KernelCase("gemm", "input_gradient", dtype, {"m": m, "n": k, "k": n})
            yield KernelCase("gemm", "weight_gradient", dtype, {"m": k, "n": n, "k": m})
    for seq, head_dim in product(scale.lengths, HEAD_SIZES):
        batch = max(1, 4 * scale.lengths[0] // seq)
        shape = {"batch": batch, "heads": HEADS, "seq": seq, "head_dim": head_dim}
        yield KernelCase("attention", "forward", dtype, shape)
        yield KernelCase("attention", "backward", dtype, shape)
    yield from _memory_bound(scale, dtype)


def _memory_bound(scale: Scale, dtype: str) -> Iterator[KernelCase]:
    for rows, width in product(scale.tokens, scale.hidden):
        shape = {"rows": rows, "width": width}
        yield KernelCase("norm", "forward", dtype, shape)
        yield KernelCase("norm", "backward", dtype, shape)
        yield KernelCase("activation", "forward", dtype, shape)
        yield KernelCase("activation", "backward", dtype, shape)
        yield KernelCase("residual", "forward", dtype, shape)
        yield KernelCase("embedding", "forward", dtype, {**shape, "vocab": scale.vocab[0]})
    for rows, width in product(scale.tokens, scale.vocab):
        yield KernelCase("loss", "forward", dtype, {"rows": rows, "width": width})
    for elements in scale.elements:
        yield KernelCase("copy", "forward", dtype, {"elements": elements})
        yield KernelCase("triad", "forward", dtype, {"elements": elements})
        if dtype == "fp32":
            yield KernelCase("optimizer", "forward", dtype, {"elements": elements})


def _largest_tensor(case: KernelCase) -> int:
    sizes = case.shape
    if case.kernel == "gemm":
        return max(sizes["m"] * sizes["n"], sizes["m"] * sizes["k"], sizes["n"] * sizes["k"])
    return sizes.get("elements", sizes.get("rows", 0) * sizes.get("width", 0))


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
