"""Live readings of AMD GPUs from sysfs."""

from __future__ import annotations

from capacity_tui.engine.machine.facts import missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.topology import drm
from capacity_tui.engine.machine.vendors.amd.probe import PCI_VENDOR, power, temperature
from capacity_tui.engine.machine.vendors.vendor import GpuSample


class AmdSensors:
    """The cards that the kernel lists; raises NotPresentError where there is none."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._cards = drm.cards(host, PCI_VENDOR)
        if not self._cards:
            raise NotPresentError(f"no AMD card in {drm.CARDS}")

    def read(self, first: int) -> tuple[GpuSample, ...]:
        """Return one reading of every card."""
        return tuple(self._sample(index, card) for index, card in enumerate(self._cards, first))

    def close(self) -> None:
        """Sysfs lends nothing."""

    def _sample(self, index: int, card: drm.Card) -> GpuSample:
        return GpuSample(
            index=index,
            utilization_percent=self._host.fact(f"{card.base}/gpu_busy_percent", float),
            memory_used_bytes=self._host.integer(f"{card.base}/mem_info_vram_used"),
            memory_total_bytes=self._host.integer(f"{card.base}/mem_info_vram_total"),
            power_watts=power(self._host, card),
            temperature_celsius=temperature(self._host, card),
            throttle=missing(card.base, "the amdgpu driver does not tell"),
            memory_activity_percent=self._host.fact(f"{card.base}/mem_busy_percent", float),
            power_limit_watts=drm.hwmon(self._host, card, "power1_cap", scale=1e6),
            holders=missing(card.base, "the amdgpu driver lists no processes"),
        )
