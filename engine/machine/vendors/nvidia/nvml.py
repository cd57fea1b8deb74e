"""The one door to NVML: every call guarded, every refusal a missing value with the driver's reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import CDLL
from typing import Any, TypeVar

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.vendor import NOT_READ, GpuSample
from capacity_tui.engine.record import dataclass

T = TypeVar("T")
LIBRARY, NO_LIBRARY = "libnvidia-ml.so.1", 12

REASONS = {
    3: "not supported by this device",
    4: "no permission",
    15: "the GPU is lost; it needs a reset or a reboot",
    13: "the driver is too old to tell",
    NO_LIBRARY: f"no NVIDIA driver installed ({LIBRARY} not found)",
    9: "the NVIDIA driver is installed but not loaded",
    18: "driver and library versions differ; a reboot helps",
}  # nvml.h, nvmlReturn_t

CORE_TEMPERATURE, SLOWDOWN_THRESHOLD, SM_CLOCK = 0, 1, 1  # nvml.h
TOPOLOGY_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}  # nvml.h, nvmlGpuTopologyLevel_t
LINK_TO_SWITCH = 2  # nvml.h, NVML_NVLINK_DEVICE_TYPE_SWITCH


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Memory of a device in bytes."""

    total: int
    free: int
    used: int


class Device:
    """One GPU, or one MIG instance; each method asks NVML once and returns a fact."""

    def __init__(self, handle: object) -> None:
        self.handle = handle

    def ask(self, function: str, *arguments: object, read: Callable[[Any], T]) -> Fact[T]:
        """Return what ``read`` makes of an NVML function's answer for this device."""
        return _ask(function, self.handle, *arguments, read=read)

    def memory(self) -> Fact[MemoryInfo]:
        """Return total, free and used memory in bytes."""
        return self.ask(
            "nvmlDeviceGetMemoryInfo", read=lambda info: MemoryInfo(int(info.total), int(info.free), int(info.used))
        )

    def text(self, function: str) -> Fact[str]:
        """Return a function's answer as text."""
        return self.ask(function, read=lambda answer: answer.decode() if isinstance(answer, bytes) else str(answer))

    def integer(self, function: str, *arguments: object) -> Fact[int]:
        """Return a function's answer as a whole number."""
        return self.ask(function, *arguments, read=int)

    def watts(self, function: str) -> Fact[float]:
        """Return a power in watts, which NVML counts in milliwatts."""
        return self.ask(function, read=lambda milliwatts: milliwatts / 1000)

    def temperature(self) -> Fact[float]:
        """Return the core's temperature in degrees Celsius."""
        return self.ask("nvmlDeviceGetTemperature", CORE_TEMPERATURE, read=float)

    def clock(self) -> Fact[int]:
        """Return the SM clock in MHz."""
        return self.integer("nvmlDeviceGetClockInfo", SM_CLOCK)

    def utilization_rates(self) -> Fact[tuple[float, float]]:
        """Return the shares of the last sample period in which a kernel ran, and memory was in use, in percent."""
        return self.ask("nvmlDeviceGetUtilizationRates", read=lambda rates: (float(rates.gpu), float(rates.memory)))

    def throttle(self) -> Fact[tuple[str, ...]]:
        """Return why the clock is below its highest; idling is no reason."""
        return self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", read=throttle_reasons)

    def bus(self) -> Fact[str]:
        """Return the PCI address, such as ``0000:3b:00.0``."""
        return self.ask("nvmlDeviceGetPciInfo", read=_bus_address)

    def mig_devices(self) -> tuple[Device, ...]:
        """Return the MIG instances that exist."""
        count = self.integer("nvmlDeviceGetMaxMigDeviceCount").value or 0
        devices = (self.ask("nvmlDeviceGetMigDeviceHandleByIndex", index, read=Device) for index in range(count))
        return tuple(instance.value for instance in devices if instance.value is not None)

    def holders(self) -> Fact[tuple[tuple[int, int | None], ...]]:
        """Return the processes with memory here: process id, and bytes where the driver knows them."""
        answers = [self.ask(f"nvmlDeviceGet{kind}RunningProcesses", read=_holders) for kind in ("Compute", "Graphics")]
        if answers[0].value is None:
            return answers[0]
        merged = {pid: used for answer in answers for pid, used in answer.value or ()}
        return detected(tuple(sorted(merged.items())), answers[0].source)

    def link_targets(self) -> Fact[tuple[str | None, ...]]:
        """Return for each active NVLink the PCI address at its other end, None for a switch."""
        ends: list[str | None] = []
        reason = "no active link"
        from pynvml import NVML_NVLINK_MAX_LINKS  # noqa: PLC0415 - as in _ask

        for link in range(NVML_NVLINK_MAX_LINKS):
            active = self.integer("nvmlDeviceGetNvLinkState", link)
            if active.value is None:  # past the device's last link, or it has none at all
                reason = active.reason if link == 0 else reason
                break
            if active.value == 1:
                ends.append(self._link_end(link))
        source = "NVML nvmlDeviceGetNvLinkState"
        return detected(tuple(ends), source) if ends else missing(source, reason)

    def level_to(self, other: Device) -> Fact[str]:
        """Return how PCIe connects two devices, in the terms of ``nvidia-smi topo``."""
        return self.ask(
            "nvmlDeviceGetTopologyCommonAncestor", other.handle, read=lambda level: TOPOLOGY_LEVELS.get(int(level), "?")
        )

    def _link_end(self, link: int) -> str | None:
        kind = self.integer("nvmlDeviceGetNvLinkRemoteDeviceType", link)
        if kind.value == LINK_TO_SWITCH:
            return None
        return self.ask("nvmlDeviceGetNvLinkRemotePciInfo", link, read=_bus_address).value


def driver_version() -> Fact[str]:
    return _ask("nvmlSystemGetDriverVersion", read=str)


def cuda_version() -> Fact[str]:
    """Return the newest CUDA version the driver supports."""
    return _ask("nvmlSystemGetCudaDriverVersion_v2", read=lambda number: f"{number // 1000}.{number % 1000 // 10}")


def devices() -> tuple[Fact[Device], ...]:
    """Return the GPUs in NVML's order; one that cannot be opened is missing with its reason."""
    count = _ask("nvmlDeviceGetCount", read=int)
    if count.value is None:
        raise NotPresentError(count.reason)
    return tuple(_ask("nvmlDeviceGetHandleByIndex", index, read=Device) for index in range(count.value))


def initialise() -> None:
    """Load the driver's library and open it; raises NotPresentError with what keeps it from that."""
    if not _is_installed():
        raise NotPresentError(REASONS[NO_LIBRARY])
    start = _ask("nvmlInit", read=lambda _: True)
    if start.value is None:
        raise NotPresentError(start.reason)


def shutdown() -> None:
    """Give back what ``initialise`` opened; not to be called while another thread's call hangs."""
    _ask("nvmlShutdown", read=lambda _: True)


def _is_installed() -> bool:
    """Whether the driver's library can be loaded; on Windows its bindings know where to look for it."""
    if sys.platform == "win32":
        return True
    try:
        CDLL(LIBRARY)
    except OSError:
        return False
    return True


def _ask(function: str, *arguments: object, read: Callable[[Any], T]) -> Fact[T]:
    import pynvml  # noqa: PLC0415 - three megabytes and twenty milliseconds that machines without a driver do without

    source = f"NVML {function}"
    try:
        return detected(read(getattr(pynvml, function)(*arguments)), source)
    except pynvml.NVMLError as error:
        code = int(getattr(error, "value", pynvml.NVML_ERROR_UNKNOWN))
        return missing(source, REASONS.get(code, str(error).lower()))
    except (AttributeError, TypeError, ValueError, OSError) as error:
        return missing(source, f"{type(error).__name__}: {error}")


def _holders(processes: Any) -> tuple[tuple[int, int | None], ...]:
    return tuple(
        (int(process.pid), None if process.usedGpuMemory is None else int(process.usedGpuMemory))
        for process in processes
    )


def _bus_address(info: Any) -> str:
    text = info.busId.decode() if isinstance(info.busId, bytes) else str(info.busId)
    domain, _, address = text.lower().partition(":")
    return f"{domain[-4:]}:{address}"


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


class NvidiaSensors:
    """The GPUs that NVML knows; raises NotPresentError where there is none."""

    def __init__(self, detailed: bool) -> None:
        self._detailed = detailed
        initialise()
        try:
            self._devices = devices()
            if not self._devices:
                raise NotPresentError("the NVIDIA driver knows no GPU")
        except NotPresentError:
            shutdown()
            raise

    def read(self, first: int) -> tuple[GpuSample, ...]:
        return tuple(self._sample(index, device) for index, device in enumerate(self._devices, first))

    def close(self) -> None:
        """Give NVML back."""
        shutdown()

    def _sample(self, index: int, device: Fact[Device]) -> GpuSample:
        if device.value is None:
            gone = missing(device.source, device.reason)
            return GpuSample(index, *[gone] * 9)
        gpu = device.value
        memory, rates = gpu.memory(), gpu.utilization_rates()
        return GpuSample(
            index=index,
            utilization_percent=rates.map(lambda rate: rate[0]),
            memory_used_bytes=memory.map(lambda info: info.used),
            memory_total_bytes=memory.map(lambda info: info.total),
            power_watts=gpu.watts("nvmlDeviceGetPowerUsage"),
            temperature_celsius=gpu.temperature(),
            throttle=gpu.throttle() if self._detailed else NOT_READ,
            memory_activity_percent=rates.map(lambda rate: rate[1]),
            power_limit_watts=gpu.watts("nvmlDeviceGetEnforcedPowerLimit") if self._detailed else NOT_READ,
            holders=gpu.holders() if self._detailed else NOT_READ,
        )
