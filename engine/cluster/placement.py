"""Which parallel dimension belongs on which link of a machine, and what it costs to cross a slower one."""

from __future__ import annotations

from collections.abc import Sequence

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster.catalogue_devices import PCIE_LANE_GBS
from capacity_tui.engine.machine import LEVELS, Accelerator, Machine
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bandwidth, format_bytes, format_seconds

# One micro-batch as an example: 4096 tokens of a model 4096 wide, in two bytes.
EXAMPLE_BYTES = 4096 * 4096 * 2
ALL_REDUCES_A_LAYER = 4  # tensor parallel: two forward, two backward (Shoeybi et al. 2019)


@dataclass(frozen=True, slots=True)
class Placement:
    """Advice on one parallel dimension: the devices or links it belongs on, and the figures behind it."""

    dimension: str
    where: str
    reason: str


def placement_advice(machine: Machine, catalog: Catalog) -> tuple[Placement, ...]:
    """Return where tensor, pipeline and data parallel belong on a machine of several accelerators."""
    gpus = machine.accelerators
    matrix = machine.topology.links.value
    if len(gpus) < 2 or not matrix:
        return ()
    groups = linked_groups(matrix)
    fast, slow = _direct_rate(gpus[0], catalog), _pcie_rate(gpus[0])
    largest = max(len(group) for group in groups)
    if largest == 1:
        return (_no_direct_links(matrix, slow), *_between(matrix, slow))
    inside = _listed(groups)
    advice = [
        Placement(
            "tensor, sequence and expert parallel",
            f"within {inside}",
            f"direct links{_at(fast)}; sizes up to {largest}",
        )
    ]
    if fast and slow:
        advice.append(_crossing(largest, fast, slow))
    if len(groups) > 1:
        advice += _between(matrix, slow)
    else:
        advice.append(
            Placement("data and pipeline parallel", "between machines", "all devices here share direct links")
        )
    return tuple(advice)


def linked_groups(matrix: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    """Return the devices that reach each other over direct links, as groups of indices."""
    remaining, groups = set(range(len(matrix))), []
    while remaining:
        group, edge = set(), {min(remaining)}
        while edge:
            group |= edge
            edge = {peer for device in edge for peer in remaining if _is_direct(matrix[device][peer])} - group
        remaining -= group
        groups.append(tuple(sorted(group)))
    return tuple(groups)


def _is_direct(cell: str) -> bool:
    return cell not in (*LEVELS, "X")


def all_reduce_seconds(payload_bytes: float, devices: int, bandwidth: float) -> float:
    """Return the time of a ring all-reduce: 2(n − 1)/n × payload over the bandwidth of one direction in B/s."""
    return 2 * (devices - 1) / devices * payload_bytes / bandwidth


def _crossing(devices: int, fast: float, slow: float) -> Placement:
    near = all_reduce_seconds(EXAMPLE_BYTES, devices, fast) * ALL_REDUCES_A_LAYER
    far = all_reduce_seconds(EXAMPLE_BYTES, 2 * devices, slow) * ALL_REDUCES_A_LAYER
    return Placement(
        "tensor parallel beyond the direct links",
        "avoid",
        f"{ALL_REDUCES_A_LAYER} all-reduces of {format_bytes(EXAMPLE_BYTES)} a layer and micro-batch take "
        f"{format_seconds(near)} on direct links and {format_seconds(far)} over PCIe or a network of its speed, "
        f"{far / near:.0f} times as long",
    )


def _no_direct_links(matrix: Sequence[Sequence[str]], slow: float | None) -> Placement:
    pairs = [row[other] for index, row in enumerate(matrix) for other in range(index)]
    level = max(pairs, key=LEVELS.index)
    if slow is None:
        return Placement("tensor parallel", "avoid", f"no direct links; the farthest pair is {level}")
    seconds = all_reduce_seconds(EXAMPLE_BYTES, len(matrix), slow) * ALL_REDUCES_A_LAYER
    reason = f"no direct links: {ALL_REDUCES_A_LAYER} all-reduces of {format_bytes(EXAMPLE_BYTES)} a layer and "
    reason += f"micro-batch take {format_seconds(seconds)} over PCIe at best, and the farthest pair is {level}"
    return Placement("tensor parallel", "only where a model fits no other way", reason)


def _between(matrix: Sequence[Sequence[str]], slow: float | None) -> list[Placement]:
    crosses = any("SYS" in row for row in matrix)
    where = "between the groups, and across sockets last" if crosses else "over PCIe"
    sent = format_seconds(EXAMPLE_BYTES / slow) if slow else "little"
    return [
        Placement(
            "pipeline parallel", where, f"a stage sends {format_bytes(EXAMPLE_BYTES)} once a micro-batch: {sent}"
        ),
        Placement("data parallel", where, "gradients move once a step and overlap with the backward pass"),
    ]


def _direct_rate(gpu: Accelerator, catalog: Catalog) -> float | None:
    row_id = gpu.catalogue_id.value
    if row_id is None or row_id not in catalog.accelerators:
        return None
    rate = catalog.accelerators[row_id].link_gbs
    return rate * 1e9 if rate else None


def _pcie_rate(gpu: Accelerator) -> float | None:
    generation, lanes = gpu.pcie.generation_max.value, gpu.pcie.lanes_max.value
    if generation not in PCIE_LANE_GBS or not lanes:
        return None
    return PCIE_LANE_GBS[generation] * lanes * 1e9


def _listed(groups: Sequence[Sequence[int]]) -> str:
    several = [group for group in groups if len(group) > 1]
    if len(groups) == 1:
        return "the whole machine"
    return "; ".join(f"GPU {', '.join(str(index) for index in group)}" for group in several)


def _at(rate: float | None) -> str:
    return f" of {format_bandwidth(rate)} per direction" if rate else ""
