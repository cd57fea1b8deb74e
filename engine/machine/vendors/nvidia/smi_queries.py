"""Queries of nvidia-smi."""

from __future__ import annotations

COLUMNS = (
    "name", "uuid", "driver_version", "compute_cap", "memory.total", "memory.free", "memory.used", "power.draw",
    "power.limit", "power.default_limit", "temperature.gpu", "clocks.sm", "clocks.max.sm", "mig.mode.current",
    "pcie.link.gen.current", "pcie.link.width.current", "pcie.link.gen.max", "pcie.link.width.max",
    "clocks_throttle_reasons.active",
)  # fmt: skip
# Drivers before 510 refuse a query that names one of these.
NEWER_COLUMNS = ("compute_cap", "mig.mode.current")
TOOL = SOURCE = "nvidia-smi"
LIST = (TOOL, "-L")
TOPOLOGY = (TOOL, "topo", "-m")
_OLDER_COLUMNS = tuple(name for name in COLUMNS if name not in NEWER_COLUMNS)
QUERIES = tuple((TOOL, f"--query-gpu={','.join(columns)}", "--format=csv") for columns in (COLUMNS, _OLDER_COLUMNS))
"""The query, and the one for older drivers that refuse it."""
FOLDER = "/usr/lib/wsl/lib"  # where Windows puts the tool for its Linux
MEMORY_ERRORS = (TOOL, "--query-gpu=index,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader,nounits")
"""What the driver counts of memory errors since it was loaded."""
