"""Live readings of NVIDIA GPUs through NVML, which stays open between them."""

from __future__ import annotations

from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.nvidia import nvml
from capacity_tui.engine.machine.vendors.vendor import NOT_READ, GpuSample


class NvidiaSensors:
    """The GPUs that NVML knows; raises NotPresentError where there is none."""

    def __init__(self, detailed: bool) -> None:
        self._detailed = detailed
        nvml.initialise()
        try:
            self._devices = nvml.devices()
            if not self._devices:
                raise NotPresentError("the NVIDIA driver knows no GPU")
        except NotPresentError:
            nvml.shutdown()
            raise

    def read(self, first: int) -> tuple[GpuSample, ...]:
        """Return one reading of every GPU."""
        return tuple(self._sample(index, device) for index, device in enumerate(self._devices, first))

    def close(self) -> None:
        """Give NVML back."""
        nvml.shutdown()

    def _sample(self, index: int, device: Fact[nvml.Device]) -> GpuSample:
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
