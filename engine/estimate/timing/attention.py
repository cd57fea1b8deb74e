"""Kernels of attention: which one runs on a device, and how fast it is there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import OTHER, AttentionKernel, Framework
from capacity_tui.engine.cluster import Device, device_setting
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.machine import Setting
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import FASTEST, UNNAMED
from capacity_tui.engine.record import dataclass

STORED, SETTING = "eager", "attention"
FORWARD_SCORE = counted("score-flops")
FUSED_BACKWARD = counted("fused-attention-backward")


@dataclass(frozen=True, slots=True)
class AttentionRates:
    """What a kernel of attention reaches on one device."""

    fused: float  # 1 where scores are never stored
    reach: Number  # share of the dense peak at unlimited length and with unlimited heads
    width: Number  # width of a head at which exponentials take as long as products
    half: Number  # tokens at which half of the rate is reached, causal
    unmasked: Number  # share of that where no mask leaves parts of tiles out
    # backward_reach, backward_width, backward_half: the same in the backward pass
    backward_reach: Number
    backward_width: Number
    backward_half: Number


exponential_width = formula()


@equation
def attention_rate(span: Number, head_dim: Number, peak: Number, reach: Number, half: Number, width: Number) -> Number:
    """FLOP/s of fused attention over ``span`` tokens with heads of ``head_dim``."""
    return peak * reach * (span / (span + half)) * (head_dim / (head_dim + width))


def attention_rates(row: AttentionKernel, device: Device, catalog: Catalog) -> AttentionRates:
    """Return what a kernel reaches on a device; what was measured on it counts before the catalogue."""
    efficiency = device.efficiency
    unmasked = catalog.coefficients["unmasked-half-length"].value
    if not row.fused:
        return AttentionRates(0.0, 1.0, 0.0, 1.0, unmasked, 1.0, 0.0, 1.0)

    def of(entries: Mapping[str, float], measured: Number | None) -> Number:
        return entries.get(efficiency.row, entries[OTHER]) if measured is None else measured

    reach, backward = of(row.reach, None), of(row.backward_reach, None)
    exposed = of(row.exposed, None)
    width = exponential_width(reach, exposed, efficiency.exponential_flops, FORWARD_SCORE)
    back_width = exponential_width(backward, exposed, efficiency.exponential_flops, FORWARD_SCORE * FUSED_BACKWARD)
    own = efficiency
    return AttentionRates(
        fused=float(row.fused),
        reach=reach if own.attention_reach is None else own.attention_reach,
        width=width if own.attention_half_width is None else own.attention_half_width,
        half=of(row.half_length, own.attention_half_length),
        unmasked=unmasked,
        backward_reach=backward if own.attention_backward_reach is None else own.attention_backward_reach,
        backward_width=back_width if own.attention_backward_half_width is None else own.attention_backward_half_width,
        backward_half=of(row.backward_half_length, own.attention_backward_half_length),
    )


def attention_kernel(wanted: str, device: Device, software: Framework | None, catalog: Catalog) -> AttentionKernel:
    """Return the kernel that runs where a plan wants one, or the best (``flash``); the framework's own come first."""
    table, row = catalog.attention_kernels, device.efficiency.row
    setting = device_setting(SETTING, device, catalog)
    named = table.get(wanted)
    if named is not None and named.runs_on(row) and (setting is None or setting.value != STORED or not named.fused):
        return named
    if setting is not None and setting.value in table:
        return table[setting.value]
    own = () if software is None else software.attention or catalog.frameworks[UNNAMED].attention
    preferred = [table[name] for name in own if name in table]
    return next(kernel for kernel in chain(preferred, table.values()) if kernel.runs_on(row))


def fastest_kernel(device: Device, catalog: Catalog) -> AttentionKernel:
    """Return the fastest kernel that never stores scores on a device: what inference engines bring."""
    row = device.efficiency.row
    return next(kernel for kernel in catalog.attention_kernels.values() if kernel.fused and kernel.runs_on(row))


def attention_in_place_of(wanted: str, device: Device, catalog: Catalog) -> Setting | None:
    """Return what runs in place of a kernel that a device has not, with the reason; None where a plan's choice runs."""
    runs = attention_kernel(wanted, device, None, catalog)
    setting = device_setting(SETTING, device, catalog)
    if wanted == FASTEST:
        return setting if setting is not None and setting.value != FASTEST else None
    if runs.id == wanted:
        return None
    if setting is not None and setting.value == runs.id:
        return setting
    named = catalog.attention_kernels.get(wanted)
    words = [catalog.efficiencies[row].name for row in named.generations] if named is not None else []
    return Setting(SETTING, runs.id, f"{named.name if named else wanted} is for {', '.join(words)}")


copied_cache_bytes = formula()  # Bytes that a step of decode moves before attention reads keys and values
busy_units = formula()  # Share of the device that attention for single tokens keeps busy
unpacking_flops = formula()  # Operations of vector units in which a token attends to packed keys and values
