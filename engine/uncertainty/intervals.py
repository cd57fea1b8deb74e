"""How sure a figure is: ranges from the errors seen on published measurements, or set by hand where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from capacity_tui.engine.catalog.rows.reliability import Reliability
from capacity_tui.engine.numeric import Number, added

# Parts of memory that follow from sizes and types alone; ranges lie on the others.
EXACT_PARTS = frozenset({"weights", "gradients", "optimizer", "kv_cache"})
UNNAMED = "plain"
PUBLISHED = "measured over estimated in published runs, 10th to 90th percentile"
BY_HAND = "set by hand: no errors on published runs are behind it"
EXACT = "weights, gradients, optimizer states and cache are exact; of the rest, "


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its range.

    Attributes:
        value: the estimate.
        low: lower end: the 10th percentile of comparable published measurements, where there are any.
        high: upper end, their 90th percentile.
    """

    value: Number
    low: Number
    high: Number


def exact_bytes(parts: Mapping[str, Number]) -> Number:
    """Return the bytes of parts of memory that follow from sizes and types alone."""
    return added(parts[name] for name in parts if name in EXACT_PARTS)


@dataclass(frozen=True, slots=True)
class Range:
    """Ratios of measured to predicted, and where they come from.

    Attributes:
        low, high: the ratios at both ends.
        basis: which runs they come from, in words.
    """

    low: float
    high: float
    basis: str

    def around(self, value: Number) -> Interval:
        """Return a value with this range."""
        return Interval(value, value * self.low, value * self.high)

    def beyond_exact(self, parts: Mapping[str, Number], total: Number) -> Interval:
        """Return memory with its range: exact parts as they are, the others times the ratios.

        Args:
            parts: bytes by part.
            total: their sum.
        """
        exact = exact_bytes(parts)
        others = np.maximum(total - exact, 0.0)
        return Interval(total, exact + others * self.low, exact + others * self.high)

    @property
    def inverse(self) -> Range:
        """The range of a time, where this is that of its rate."""
        return Range(1.0 / self.high, 1.0 / self.low, self.basis)


STEP = Range(0.8, 1.25, BY_HAND)
MEMORY = Range(0.78, 1.4, EXACT + BY_HAND)
SERVED_MEMORY = Range(0.05, 3.2, EXACT + BY_HAND)
DECODE = Range(0.7, 1.3, BY_HAND)
PREFILL = Range(0.6, 1.4, BY_HAND)


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of one estimate: every interval of its figures follows from them.

    Attributes:
        step: of the time of a step, and of all that follows from it.
        memory: of the memory of the fullest device beyond its exact parts.
        own: of single figures that have one of their own, by result key.
        extrapolated: what about the run was never measured, in words.
    """

    step: Range = STEP
    memory: Range = MEMORY
    own: Mapping[str, Range] = field(default_factory=dict)
    extrapolated: tuple[str, ...] = ()

    def of(self, key: str) -> Range:
        """Return the range behind the figure of a result key."""
        return self.own.get(key) or (self.memory if key.startswith("memory.") else self.step)


SERVED = Ranges(
    STEP,
    SERVED_MEMORY,
    {
        "computation.infer.prefill_tokens_per_second": PREFILL,
        "computation.infer.decode_tokens_per_second": DECODE,
        "computation.infer.time_to_first_token_seconds": PREFILL,
        "computation.infer.time_per_output_token_seconds": DECODE.inverse,
    },
)
"""Of one batch that is served."""


def step_class(*, routed: bool, nodes: bool) -> str:
    """Return the row of comparable step times."""
    if routed:
        return "step-mixture"
    return "step-dense-nodes" if nodes else "step-dense-node"


def memory_class(*, adapter: bool, nodes: bool) -> str:
    """Return the row of comparable memory."""
    if adapter:
        return "memory-adapter"
    return "memory-nodes" if nodes else "memory-node"


def training_ranges(
    rows: Mapping[str, Reliability], hardware: str, framework: str, *, routed: bool, nodes: bool, adapter: bool
) -> Ranges:
    """Return the ranges of a training run, wider for hardware and frameworks nobody measured.

    Args:
        rows: reliability.yaml.
        hardware: row of efficiency.yaml.
        framework: row of frameworks.yaml.
        routed: whether the model has routed experts.
        nodes: whether the run spans several nodes.
        adapter: whether only adapters are trained.
    """
    step, memory = rows[step_class(routed=routed, nodes=nodes)], rows[memory_class(adapter=adapter, nodes=nodes)]
    software = "without a framework named" if framework == UNNAMED else f"with {framework}"
    known = {
        f"step time on {hardware} hardware": hardware in step.hardware,
        f"step time {software}": framework in step.frameworks,
        f"memory {software}": framework in memory.frameworks,
    }
    unknown = [what for what, measured in known.items() if not measured]
    extrapolated = (f"outside what was measured: {', '.join(unknown)}",) if unknown else ()
    timed = hardware in step.hardware and framework in step.frameworks
    weighed = framework in memory.frameworks
    return Ranges(
        _range(step, PUBLISHED, known=timed),
        _range(memory, EXACT + PUBLISHED, known=weighed),
        extrapolated=extrapolated,
    )


def _range(row: Reliability, what: str, *, known: bool) -> Range:
    power = 1.0 if known else row.widening
    runs = f"{row.name}: {row.measurements} published runs of {row.publishers} publishers left out of the fit"
    widened = "" if known else "; widened, as none of them is like this one"
    return Range(row.low**power, row.high**power, f"{what}; {runs}{widened}")
