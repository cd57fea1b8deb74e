"""What the menu of exports offers of real plans."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from capacity_tui.engine.errors import MissingPartError
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.present.pictures import as_png
from capacity_tui.engine.runs.history import History
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.shown.results import Export


@pytest.fixture(scope="module")
def exports() -> dict[str, Export]:
    document = CapacityEngine().open("qlora_rtx_4090")
    column = document.compare().columns[0]
    return {export.title: export for export in document.exports(column.mode)}


def test_a_plan_with_adapters_has_files_of_every_tool(exports: dict[str, Export]) -> None:
    assert list(exports) == [
        "Plan as YAML",
        "One-line command",
        "Framework files",
        "Files for Axolotl",
        "Files for LLaMA-Factory",
        "Files for torchtune",
        "Kubernetes",
        "SkyPilot",
        "dstack",
        "Docker Compose",
        "torchrun",
        "accelerate",
        "deepspeed",
        "mpirun",
        "Report in Markdown",
        "Report as a web page",
        "Picture: Memory",
        "Picture: Time",
        "Picture: Roofline",
    ]
    ast.parse(exports["Framework files"].files["train.py"])
    assert yaml.safe_load(exports["Files for Axolotl"].files["axolotl.yaml"])["adapter"] == "qlora"
    assert exports["Report as a web page"].text.startswith("<!doctype html>")


def test_every_form_is_the_same_plan(exports: dict[str, Export]) -> None:
    [text] = exports["Plan as YAML"].files.values()
    plan = plan_from_text(text, "exported")
    assert plan.parallelism.dp == 1
    assert "Predicted on" in text
    assert exports["One-line command"].text.startswith("capacity-tui plan --model llama-3.1-8b --task qlora --gpu rtx")
    assert "Where the memory goes" in exports["Report in Markdown"].text


def test_a_pinned_plan_is_exported_as_itself() -> None:
    document = CapacityEngine().open("qlora_rtx_4090").pinned("balanced").edited("training.micro_batch", "1")
    [pinned] = document.pins()
    exported = {export.title: export for export in document.exports(pinned)}
    [(name, text)] = exported["Plan as YAML"].files.items()
    assert "/" not in name
    assert f"Pinned as {pinned}." in text
    plan = plan_from_text(text, name)
    assert (plan.training.micro_batch, plan.scenarios) == (2, {})
    assert "micro_batch=2" in exported["One-line command"].text


def test_what_is_exported_can_be_kept_in_the_history(exports: dict[str, Export], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", "")
    keep = exports["Plan as YAML"].keep
    assert keep is not None
    file = tmp_path / "history.sqlite"
    assert keep(str(file)) == keep("off") == ""
    [kept] = History(file).find()
    assert (kept.kind, kept.plan and kept.plan["parallelism"]["dp"]) == ("estimate", 1)


def test_pictures_of_a_plan_are_files_of_their_own(exports: dict[str, Export]) -> None:
    for title, words in (("Memory", "at the peak"), ("Time", "compute"), ("Roofline", "ridge")):
        (text,) = exports[f"Picture: {title}"].files.values()
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert words in text
    assert as_png(text).startswith(b"\x89PNG")


def test_a_png_without_its_converter_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingPartError) as caught:
        as_png("<svg/>")
    assert "install" in caught.value.hint
