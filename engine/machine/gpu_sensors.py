"""Live readings of GPUs, whatever their vendor; handles are opened once, at the first reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.topology import drm
from capacity_tui.engine.machine.vendors.amd import probe as amd

if TYPE_CHECKING:
    from capacity_tui.engine.machine.vendors.nvidia import nvml


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU now; ``throttle`` names what holds its clock down, nothing if that runs free."""

    index: int
    utilization_percent: Fact[float]
    memory_used_bytes: Fact[int]
    memory_total_bytes: Fact[int]
    power_watts: Fact[float]
    temperature_celsius: Fact[float]
    throttle: Fact[tuple[str, ...]]


class GpuSensors:
    """The GPUs whose sensors can be read, in the order of detection: NVIDIA's, then AMD's.

    Args:
        host: the machine they are in.
        throttle: read what holds the clock down too, which no graph shows.
    """

    def __init__(self, host: Host, throttle: bool = False) -> None:
        self._host = host
        self._throttle = throttle
        self._nvidia: tuple[Fact[nvml.Device], ...] | None = None
        self._amd: tuple[drm.Card, ...] = ()
        self._reason = ""
        self._nvml_open = False

    def read(self) -> tuple[GpuSample, ...]:
        """Return one reading of every GPU.

        Raises:
            NotPresentError: there is no GPU whose driver can be asked.
        """
        nvidia = self._open() if self._nvidia is None else self._nvidia
        if not nvidia and not self._amd:
            raise NotPresentError(self._reason)
        count = len(nvidia)
        readings = [_read_nvidia(index, device, self._throttle) for index, device in enumerate(nvidia)]
        readings += [_read_amd(self._host, count + index, card) for index, card in enumerate(self._amd)]
        return tuple(readings)

    def close(self) -> None:
        """Give NVML back."""
        if self._nvml_open:
            from capacity_tui.engine.machine.vendors.nvidia import nvml  # noqa: PLC0415 - loads NVML's bindings

            nvml.shutdown()
            self._nvml_open = False

    def _open(self) -> tuple[Fact[nvml.Device], ...]:
        from capacity_tui.engine.machine.vendors.nvidia import nvml  # noqa: PLC0415 - loads NVML's bindings

        self._amd = drm.cards(self._host, amd.PCI_VENDOR)
        try:
            nvml.initialise()
            self._nvml_open = True
            self._nvidia = nvml.devices()
        except NotPresentError as error:
            self._nvidia, self._reason = (), str(error)
        return self._nvidia


def _read_nvidia(index: int, device: Fact[nvml.Device], throttle: bool) -> GpuSample:
    if device.value is None:
        gone = missing(device.source, device.reason)
        return GpuSample(index, gone, gone, gone, gone, gone, gone)
    gpu = device.value
    memory = gpu.memory()
    return GpuSample(
        index=index,
        utilization_percent=gpu.utilization(),
        memory_used_bytes=memory.map(lambda info: info.used),
        memory_total_bytes=memory.map(lambda info: info.total),
        power_watts=gpu.watts("nvmlDeviceGetPowerUsage"),
        temperature_celsius=gpu.temperature(),
        throttle=gpu.throttle() if throttle else missing(device.source, "read under a benchmark only"),
    )


def _read_amd(host: Host, index: int, card: drm.Card) -> GpuSample:
    return GpuSample(
        index=index,
        utilization_percent=host.fact(f"{card.base}/gpu_busy_percent", float),
        memory_used_bytes=host.integer(f"{card.base}/mem_info_vram_used"),
        memory_total_bytes=host.integer(f"{card.base}/mem_info_vram_total"),
        power_watts=amd.power(host, card),
        temperature_celsius=amd.temperature(host, card),
        throttle=missing(card.base, "the amdgpu driver does not tell"),
    )
