"""Live readings of GPUs, whatever their vendor; handles are opened once, at the first reading."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.hardware import amd, drm
from capacity_tui.engine.hardware.facts import Fact, detected, missing
from capacity_tui.engine.hardware.host import Host
from capacity_tui.engine.hardware.probing import NotPresentError
from capacity_tui.engine.hardware.processes import gpu_process

if TYPE_CHECKING:
    from capacity_tui.engine.hardware import nvml


@dataclass(frozen=True, slots=True)
class GpuUser:
    """A process on a GPU; ``busy_percent`` is its share of the multiprocessors lately."""

    pid: int
    name: Fact[str]
    memory_bytes: Fact[int]
    own: Fact[bool]
    busy_percent: Fact[float]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes a second that a GPU sends and receives over PCIe and over NVLink."""

    pcie_sent: Fact[float]
    pcie_received: Fact[float]
    nvlink_sent: Fact[float]
    nvlink_received: Fact[float]


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU now; ``throttle`` names what holds its clock down, nothing if that runs free."""

    index: int
    utilization_percent: Fact[float]
    memory_used_bytes: Fact[int]
    memory_total_bytes: Fact[int]
    power_watts: Fact[float]
    temperature_celsius: Fact[float]
    clock_mhz: Fact[int]
    throttle: Fact[tuple[str, ...]]
    memory_clock_mhz: Fact[int]
    traffic: Traffic
    users: Fact[tuple[GpuUser, ...]]


class GpuSensors:
    """The GPUs whose sensors can be read, in the order of detection: NVIDIA's, then AMD's."""

    def __init__(self, host: Host, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._counted: dict[int, tuple[float, dict[str, int]]] = {}
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
        readings = [self._read_nvidia(index, device) for index, device in enumerate(nvidia)]
        readings += [_read_amd(self._host, count + index, card) for index, card in enumerate(self._amd)]
        return tuple(readings)

    def close(self) -> None:
        """Give NVML back."""
        if self._nvml_open:
            from capacity_tui.engine.hardware import nvml  # noqa: PLC0415 - loads NVML's bindings

            nvml.shutdown()
            self._nvml_open = False

    def _open(self) -> tuple[Fact[nvml.Device], ...]:
        from capacity_tui.engine.hardware import nvml  # noqa: PLC0415 - loads NVML's bindings

        self._amd = drm.cards(self._host, amd.PCI_VENDOR)
        try:
            nvml.initialise()
            self._nvml_open = True
            self._nvidia = nvml.devices()
        except NotPresentError as error:
            self._nvidia, self._reason = (), str(error)
        return self._nvidia

    def _read_nvidia(self, index: int, device: Fact[nvml.Device]) -> GpuSample:
        if device.value is None:
            gone = missing(device.source, device.reason)
            still = Traffic(gone, gone, gone, gone)
            return GpuSample(index, gone, gone, gone, gone, gone, gone, gone, gone, still, gone)
        gpu = device.value
        memory = gpu.memory()
        return GpuSample(
            index=index,
            utilization_percent=gpu.utilization(),
            memory_used_bytes=memory.map(lambda info: info.used),
            memory_total_bytes=memory.map(lambda info: info.total),
            power_watts=gpu.watts("nvmlDeviceGetPowerUsage"),
            temperature_celsius=gpu.temperature(),
            clock_mhz=gpu.clock(),
            throttle=gpu.throttle(),
            memory_clock_mhz=gpu.memory_clock(),
            traffic=self._traffic(index, gpu),
            users=_users(self._host, gpu),
        )

    def _traffic(self, index: int, gpu: nvml.Device) -> Traffic:
        """Return the rates since the last reading of this GPU."""
        counted, now = gpu.traffic(), self._clock()
        if counted.value is None:
            unread = missing(counted.source, counted.reason)
            return Traffic(unread, unread, unread, unread)
        then, before = self._counted.get(index, (now, {}))
        self._counted[index] = (now, counted.value)
        totals = counted.value

        def rate(name: str) -> Fact[float]:
            if name not in totals:
                return missing(counted.source, "the device does not count it")
            if name not in before or now <= then:
                return missing(counted.source, "rates need two samples")
            return detected(max(0, totals[name] - before[name]) / (now - then), counted.source)

        return Traffic(rate("pcie_sent"), rate("pcie_received"), rate("nvlink_sent"), rate("nvlink_received"))


def _users(host: Host, gpu: nvml.Device) -> Fact[tuple[GpuUser, ...]]:
    holders, busy = gpu.holders(), gpu.busy_processes()
    if holders.value is None:
        return missing(holders.source, holders.reason)
    unknown = missing(holders.source, "the driver does not tell here")
    found = []
    for pid, used in holders.value:
        held = unknown if used is None else detected(used, holders.source)
        process = gpu_process(host, pid, held)
        share = busy.map(lambda shares, pid=pid: shares.get(pid, 0.0))  # type: ignore[misc]
        found.append(GpuUser(pid, process.name, held, process.own, share))
    return detected(tuple(found), holders.source)


def _read_amd(host: Host, index: int, card: drm.Card) -> GpuSample:
    slow = missing(f"{card.base}/pcie_bw", "the driver counts for a second to tell")
    return GpuSample(
        index=index,
        utilization_percent=host.fact(f"{card.base}/gpu_busy_percent", float),
        memory_used_bytes=host.integer(f"{card.base}/mem_info_vram_used"),
        memory_total_bytes=host.integer(f"{card.base}/mem_info_vram_total"),
        power_watts=amd.power(host, card),
        temperature_celsius=amd.temperature(host, card),
        clock_mhz=amd.clock(host, card),
        throttle=missing(card.base, "the amdgpu driver does not tell"),
        memory_clock_mhz=drm.hwmon(host, card, "freq2_input", scale=1e6).map(round),
        traffic=Traffic(slow, slow, slow, slow),
        users=missing(card.base, "read once, at detection"),
    )
