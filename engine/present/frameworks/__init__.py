"""Plans as the files that training frameworks and inference engines read."""

from capacity_tui.engine.present.frameworks.folder import framework_files

__all__ = ["framework_files"]
