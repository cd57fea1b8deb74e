"""Answers and plans as texts that people and programs read."""

from capacity_tui.engine.plan.files.writing import dump_plan
from capacity_tui.engine.present.markdown import to_markdown
from capacity_tui.engine.present.results import result_as_dict, to_json, to_yaml

__all__ = ["dump_plan", "result_as_dict", "to_json", "to_markdown", "to_yaml"]
