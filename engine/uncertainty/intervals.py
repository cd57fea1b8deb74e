"""How sure a figure is: ranges from the errors seen on published measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capacity_tui.engine.catalog.rows.reliability import Reliability
from capacity_tui.engine.estimate.result import Interval
from capacity_tui.engine.numeric import Number, added

# Parts of memory that follow from sizes and types alone; ranges lie on the others.
EXACT_PARTS = frozenset({"weights", "gradients", "optimizer", "kv_cache"})
# Ratios of measured to predicted that hold eight in ten published runs, where no row says more; of memory without its
# exact parts.
TRAINED_MEMORY = (0.78, 1.4)
SERVED_MEMORY = (0.05, 3.2)
STEP = (0.8, 1.25)
DECODE = (0.7, 1.3)
PREFILL = (0.6, 1.4)
UNNAMED = "plain"
GENERAL = "measured over estimated in published runs, 10th to 90th percentile"
OF_MEMORY = (
    "weights, gradients, optimizer states and cache are exact; of the rest, measured over estimated in published runs"
)


def interval(value: Number, ratios: tuple[float, float]) -> Interval:
    """Return a value with its range of eight in ten."""
    return Interval(value, value * ratios[0], value * ratios[1])


def exact_bytes(parts: Mapping[str, Number]) -> Number:
    """Return the bytes of parts of memory that follow from sizes and types alone."""
    return added(bytes_ for name, bytes_ in parts.items() if name in EXACT_PARTS)


def memory_interval(parts: Mapping[str, Number], ratios: tuple[float, float]) -> Interval:
    """Return the sum of parts of memory with its range: exact parts as they are, the others times the ratios."""
    exact = exact_bytes(parts)
    others = added(bytes_ for name, bytes_ in parts.items() if name not in EXACT_PARTS)
    return Interval(exact + others, exact + others * ratios[0], exact + others * ratios[1])


@dataclass(frozen=True, slots=True)
class Ranges:
    """Measured over predicted at the 10th and 90th percentile of comparable runs.

    Attributes:
        step: of the time of a step.
        memory: of the memory of the fullest device beyond its exact parts.
        outside: what about the run was never measured, in words.
        step_basis, memory_basis: which runs the ranges come from, in words.
    """

    step: tuple[float, float] = STEP
    memory: tuple[float, float] = TRAINED_MEMORY
    outside: tuple[str, ...] = ()
    step_basis: str = GENERAL
    memory_basis: str = OF_MEMORY


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
    outside = (f"outside what was measured: {', '.join(unknown)}",) if unknown else ()
    timed = hardware in step.hardware and framework in step.frameworks
    weighed = framework in memory.frameworks
    return Ranges(
        _range(step, known=timed),
        _range(memory, known=weighed),
        outside,
        _basis(GENERAL, step, known=timed),
        _basis(OF_MEMORY, memory, known=weighed),
    )


def _range(row: Reliability, *, known: bool) -> tuple[float, float]:
    power = 1.0 if known else row.widening
    return row.low**power, row.high**power


def _basis(what: str, row: Reliability, *, known: bool) -> str:
    runs = f"{row.name}: {row.measurements} published runs of {row.publishers} publishers left out of the fit"
    widened = "" if known else "; widened, as none of them is like this one"
    return f"{what}; {runs}{widened}"
