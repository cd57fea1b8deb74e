"""Every Python example of the page about fleets runs, and prints what the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from capacity_tui.engine.compat import AWSGPUMigrationAnalyzer, MigrationReport, RunReport, WorkloadType, fleet_guide
from capacity_tui.engine.errors import CatalogError

PAGE = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FEW = ("P5",)


@pytest.fixture
def few_instances(monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """Compare with one instance, which takes a fraction of the time that nine take."""
    monkeypatch.setattr(fleet_guide, "guide_instances", lambda: FEW)
    return FEW


@pytest.mark.usefixtures("few_instances")
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {})
    said = capsys.readouterr().out
    assert said
    result = re.search(re.escape(EXAMPLES[number]) + r"```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    if result is not None:
        assert said == result[1]


def test_the_page_has_the_guides_examples() -> None:
    assert len(EXAMPLES) == 6
    for name in ("run_workload_by_id", "run_workload_set", "generate_migration_report", "list_available_workloads"):
        assert any(f".{name}(" in example for example in EXAMPLES)


def test_by_default_jobs_are_compared_with_the_nine() -> None:
    nine = AWSGPUMigrationAnalyzer(quiet=True).instances
    assert nine == ("G4dn", "G5", "G6", "G6e", "P4d", "P4de", "P5", "P5e", "P6")


@pytest.mark.usefixtures("few_instances")
def test_reports_are_text_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    analyzer = AWSGPUMigrationAnalyzer(quiet=True)
    report = analyzer.generate_migration_report("P5", 1, WorkloadType.INFERENCE, "13B", precision="fp8")
    assert isinstance(report, MigrationReport)
    assert report.data["verdict"] in ("stay", "move")
    assert str(report).startswith(f"**{report.data['verdict']}") or report.migration.verdict in str(report)
    run = analyzer.run_workload_by_id("inference_small_p5")
    assert isinstance(run, RunReport)
    assert "Significant cost savings with G6/G6e instances" in str(run)
    assert capsys.readouterr().out == ""


def test_names_that_are_not_there_say_what_is_near(tmp_path: Path) -> None:
    analyzer = AWSGPUMigrationAnalyzer(quiet=True)
    with pytest.raises(CatalogError, match="inference_small_p5"):
        analyzer.run_workload_by_id("inference_smal_p5")
    with pytest.raises(CatalogError, match="basic_demos"):
        analyzer.run_workload_set("basic_demo")
    with pytest.raises(CatalogError, match="int8"):
        analyzer.get_model_size_gb("medium", "int9")
    with pytest.raises(ValueError, match="dreaming"):
        analyzer.generate_migration_report("P5", 1, "dreaming", "medium")
    with pytest.raises(CatalogError, match="no such file or folder"):
        AWSGPUMigrationAnalyzer(config=tmp_path / "nothing")


def test_the_analyzer_reads_the_folder_that_the_guide_lays_beside_its_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    own = {"gpu_instances": {"P5": {"on_demand_cost_per_hour": 45.0}}}
    (tmp_path / "config" / "gpu_instances.json").write_text(json.dumps(own))
    monkeypatch.chdir(tmp_path)
    assert AWSGPUMigrationAnalyzer().catalog.instances["aws-p5-48xlarge"].on_demand_usd_per_hour == 45.0
    monkeypatch.chdir(tmp_path / "config")
    assert AWSGPUMigrationAnalyzer().catalog.instances["aws-p5-48xlarge"].on_demand_usd_per_hour != 45.0
