"""What the small engine detects."""

from __future__ import annotations

from capacity_tui.tui.shown.comparison import HardwareRow

HERE = (
    HardwareRow("GPU 0", "H100 SXM  79.6 GiB", "detected"),
    HardwareRow("NVLink", "450 GB/s per direction", "catalogue"),
    HardwareRow("CPU", "2×EPYC 9654  192 cores", "detected"),
    HardwareRow("RAM", "2.00 TiB  1.71 TiB free", "detected"),
    HardwareRow("Disk", "", "", "not mounted"),
    HardwareRow("Network", "400 Gb/s", "assumed"),
)
