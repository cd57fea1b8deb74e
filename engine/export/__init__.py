"""Answers and plans as texts that people and programs read."""

from capacity_tui.engine.export.markdown import to_markdown
from capacity_tui.engine.export.results import result_as_dict, to_json, to_yaml
from capacity_tui.engine.workload.writing import dump_plan

__all__ = ["dump_plan", "result_as_dict", "to_json", "to_markdown", "to_yaml"]
