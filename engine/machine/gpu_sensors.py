"""Live readings of accelerators, whatever their vendor; handles are opened once, at the first reading."""

from __future__ import annotations

from collections.abc import Sequence

from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.registry import VENDORS
from capacity_tui.engine.machine.vendors.vendor import GpuSample, Sensors, Vendor


class GpuSensors:
    """The devices whose sensors can be read, in the order of detection.

    Args:
        detailed: read what holds clocks down, power limits and processes too, which no graph shows.
    """

    def __init__(self, host: Host, detailed: bool = False, vendors: Sequence[Vendor] = VENDORS) -> None:
        self._host = host
        self._detailed = detailed
        self._vendors = vendors
        self._opened: list[Sensors] | None = None
        self._reason = ""

    def read(self) -> tuple[GpuSample, ...]:
        """Return one reading of every device.

        Raises:
            NotPresentError: there is no device with a working driver.
        """
        opened = self._open() if self._opened is None else self._opened
        if not opened:
            raise NotPresentError(self._reason)
        readings: list[GpuSample] = []
        for sensors in opened:
            readings += sensors.read(len(readings))
        return tuple(readings)

    def close(self) -> None:
        """Give the drivers back what they lent; the next reading opens them again."""
        for sensors in self._opened or ():
            sensors.close()
        self._opened = None

    def _open(self) -> list[Sensors]:
        self._opened, self._reason = [], ""
        for vendor in self._vendors:
            if vendor.sensors is None:
                continue
            try:
                self._opened.append(vendor.sensors(self._host, self._detailed))
            except NotPresentError as absent:
                self._reason = self._reason or str(absent)
        return self._opened
