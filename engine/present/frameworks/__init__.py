"""Plans as the files that training frameworks, inference engines, launchers and orchestrators read."""

from capacity_tui.engine.present.frameworks.orchestrators import Wishes, object_name
from capacity_tui.engine.present.frameworks.targets import (
    TARGETS,
    TOOLS,
    adapter_tools,
    export_files,
    framework_files,
    targets_of,
)

__all__ = [
    "TARGETS",
    "TOOLS",
    "Wishes",
    "adapter_tools",
    "export_files",
    "framework_files",
    "object_name",
    "targets_of",
]
