"""Every example plan is sound and fits the hardware it names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan.files import example_names, example_text, example_title, plan_from_text
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli import main


@pytest.mark.parametrize("name", example_names())
def test_example_fits_what_it_names(name: str) -> None:
    plan = plan_from_text(example_text(name), name)
    catalog = load_catalog()
    assert example_title(name).endswith(".")
    assert catalog.find_hardware(plan.hardware.name)
    if family_of(plan.model.name, catalog).kind == "transformer":
        assert answer(plan).estimate.fits is True


def test_an_example_is_printed_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "llemma_7b_4_2_2_P"]) == 0
    assert capsys.readouterr().out.strip() == example_text("llemma_7b_4_2_2_P").strip()


def test_the_program_of_the_guide_writes_examples_where_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["/usr/bin/ml-capacity", "examples"])
    assert main(["examples"]) == 0
    assert (tmp_path / "examples" / "deep_learning.yaml").exists()


def test_modules_by_the_names_of_the_documents_run_what_was_written_for_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["examples", "--modules", str(tmp_path)]) == 0
    script = (
        "from gpu_migration_analyzer import AWSGPUMigrationAnalyzer, ModelSize, WorkloadType\n"
        "from tools import HardwareAnalyzerV2, ProfilingEngine, StorageEstimator\n"
        "from estimate_train_time import one_batch_predict\n"
        "print(one_batch_predict('llemma_7b_4_2_2_P'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 6e6 < float(done.stdout) < 12e6
    viewer = subprocess.run(
        [sys.executable, "config_viewer.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "workloads known" in viewer.stdout


def test_every_file_is_written_for_one_who_reads_the_first_line_only(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "capacity_tui.tui", "examples", "--write", str(tmp_path / "plans")]
    reads, writes = os.pipe()
    os.close(reads)
    subprocess.run(words, stderr=writes, stdout=subprocess.DEVNULL, timeout=60, check=False)
    os.close(writes)
    assert len(list((tmp_path / "plans").iterdir())) == len(example_names())
