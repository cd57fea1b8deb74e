"""Containers and kernels without a counter: that line is n/a, all others stay."""

from __future__ import annotations

import psutil
import pytest

from capacity_tui.engine.machine import Sampler
from capacity_tui.engine.machine.sample import NO_COUNTER


@pytest.mark.parametrize(
    "error", [NotImplementedError(), PermissionError("denied"), RuntimeError("no disk"), KeyError("x")]
)
@pytest.mark.parametrize("name", ["cpu_times", "disk_io_counters", "net_io_counters"])
def test_missing_counter_is_said_of_its_own_line_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(psutil, name, fail)
    sampler = Sampler()
    sampler.sample()
    sample = sampler.sample()
    lines = {
        "cpu_times": [sample.cpu_percent],
        "disk_io_counters": [sample.disk_read_bytes_per_second, sample.disk_write_bytes_per_second],
        "net_io_counters": [sample.network_receive_bytes_per_second, sample.network_send_bytes_per_second],
    }
    for counter, facts in lines.items():
        assert [fact.reason == NO_COUNTER for fact in facts] == [counter == name] * len(facts)
    assert sample.memory_total_bytes.value
