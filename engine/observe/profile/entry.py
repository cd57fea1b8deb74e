"""A profile as an entry of the history."""

from __future__ import annotations

from collections.abc import Sequence

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.observe.history.records import RunRecord, this_host
from capacity_tui.engine.observe.profile.profile import Profile


def begun_profile(command: Sequence[str]) -> RunRecord:
    """Return the entry of a profile that begins, for the folder of its run."""
    return RunRecord(kind="profile", machine=this_host(), details={"command": list(command)})


def profile_entry(profile: Profile) -> RunRecord:
    """Return the entry of a profile: what was measured, by the keys of results where there are such."""
    summary, ended = profile.summary, profile.ended
    measured = {
        Figure.MEMORY_HOST_BYTES: summary.usage.peak_memory_bytes,
        Figure.SAMPLES_PER_SECOND: summary.samples_per_second,
    }
    return RunRecord(
        kind="profile",
        machine=this_host(),
        actual={key: float(value) for key, value in measured.items() if value is not None},
        details={
            "command": list(profile.command),
            "exit_code": ended.exit_code if ended else None,
            "seconds": summary.duration_seconds,
            "cpu_average_percent": summary.cpu_avg_percent,
            "bottleneck": summary.primary_bottleneck,
            "bottleneck_confidence": summary.bottleneck_confidence,
        },
    )
