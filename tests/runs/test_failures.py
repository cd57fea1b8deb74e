"""Why runs ended is recognised from what they wrote, from the kernel, and from how they ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.runs.guard.failures import Kernel, failure_of, failure_of_alarm

RECORDED: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "recorded_failures.yaml").read_text("utf-8")
)
PIDS = (4711,)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_end_is_recognised(name: str) -> None:
    row = RECORDED[name]
    kernel = Kernel(row.get("oom_kills"), row.get("kernel", ""))
    found = failure_of(row.get("exit_code", 1), row.get("output", ""), kernel, PIDS)
    assert (found.kind if found else None) == row.get("kind")
    if found is not None:
        assert found.where == row.get("where", "")
        assert found.device == row.get("device")
        assert found.evidence
        assert "\n" not in found.evidence


@pytest.mark.parametrize("exit_code", [137, -9])
def test_a_kill_counts_as_memory_unless_the_kernel_counted_none(exit_code: int) -> None:
    for kills, expected in ((None, "out_of_memory"), (1, "out_of_memory"), (0, "killed")):
        found = failure_of(exit_code, "", Kernel(kills))
        assert found is not None
        assert found.kind == expected


@pytest.mark.parametrize("kills", [None, 0, 1])
def test_a_request_to_end_says_nothing_of_memory(kills: int | None) -> None:
    found = failure_of(143, "", Kernel(kills))
    assert found is not None
    assert (found.kind, found.where) == ("killed", "")


@pytest.mark.parametrize("exit_code", [130, 134, 139])
def test_signals_of_a_keyboard_or_a_crash_are_no_reason_known(exit_code: int) -> None:
    assert failure_of(exit_code) is None


def test_alarms_stand_for_trouble() -> None:
    hang = failure_of_alarm("stall", "no step for a long time", "", "for 10 min")
    assert hang is not None
    assert hang.kind == "hang"
    assert failure_of_alarm("straggler", "one stands out", "GPU 1", "") is None
    assert failure_of_alarm("memory_full", "memory is nearly full", "GPU 3", "97 % used") is None


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.text(max_size=400), st.integers(-64, 255))
def test_any_text_is_read(output: str, messages: str, exit_code: int) -> None:
    found = failure_of(exit_code, output, Kernel(None, messages))
    assert found is None or len(found.evidence) <= 300
