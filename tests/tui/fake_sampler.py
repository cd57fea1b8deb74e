"""Sensors that count, for the screen's own tests."""

from __future__ import annotations

from capacity_tui.tui.view import Reading


class FakeSampler:
    """Sensors that count."""

    def __init__(self) -> None:
        self.count = 0

    def sample(self) -> tuple[Reading, ...]:
        self.count += 1
        share = float((self.count * 37) % 101)
        return (
            Reading("GPU", share, 100, f"{share:.0f} %"),
            Reading("VRAM", share * 0.8, 80, f"{share * 0.8:.1f} GiB"),
            Reading("CPU", 100 - share, 100, f"{100 - share:.0f} %"),
            Reading("RAM", 300, 2048, "300 GiB"),
            Reading("Power", 300 + share, 700, f"{300 + share:.0f} W"),
            Reading("Temp", 40 + share / 4, 90, f"{40 + share / 4:.0f} °C"),
            Reading("Disk", None, None, "", "no counter"),
        )
