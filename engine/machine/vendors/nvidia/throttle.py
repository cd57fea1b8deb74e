"""Why a GPU runs below its highest clock, as the driver counts the reasons."""

from __future__ import annotations

_BITS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}  # nvml.h, nvmlClocksEventReason*
_IDLE = 0x1


def throttle_reasons(mask: int) -> tuple[str, ...]:
    """Return the reasons of a mask; idling is none."""
    return tuple(name for bit, name in _BITS.items() if mask & bit and bit != _IDLE)
