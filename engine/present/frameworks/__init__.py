"""Plans as the files that training frameworks and inference engines read."""

from capacity_tui.engine.present.frameworks.folder import adapter_tools, framework_files

__all__ = ["adapter_tools", "framework_files"]
