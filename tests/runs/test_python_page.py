"""The example of profiling that the page for scripts gives does what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_example_of_profiling_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
                  if "ProfilingEngine" in block]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(PAGE), "exec"), {})
    told = capsys.readouterr().out
    assert re.match(r"Peak RAM: \d+\.\d\d MB\nCPU Avg: \d+\.\d%\nBottleneck: \w+ \(\d+%\)\n", told)
    written = json.loads((tmp_path / "training_profile.json").read_text())
    assert [(stage["name"], stage["samples"]) for stage in written["stages"]] == [("load", 1000), ("train", 1000)]
