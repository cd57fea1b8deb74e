"""Text from outside: what a terminal would obey is shown instead, wherever it comes in and goes out."""

import csv
import io
import json
import unicodedata
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.machine import Host, detect
from capacity_tui.engine.present import machine_parts, table_part
from capacity_tui.engine.printable import csv_table, printable, printable_data, printable_lines
from capacity_tui.tui.cli.output import as_text
from capacity_tui.tui.cli.program import group
from capacity_tui.tui.cli.rich_tables import rich_parts

EVIL = "\x1b]0;PWNED\x07\x1b[31mEvil\x9b0m\u202e"
SIZES = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 32000}


def obeyed(text: str) -> list[str]:
    """The characters a terminal would act upon."""
    return [c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]


@given(st.text())
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    assert not obeyed(printable(text))
    assert "\n" not in printable(text)
    assert printable(printable(text)) == printable(text)


@given(st.text())
def test_lines_stay_lines(text: str) -> None:
    assert printable_lines(text).count("\n") == text.count("\n")


def test_escapes_can_be_seen() -> None:
    assert printable(EVIL) == r"\x1b]0;PWNED\x07\x1b[31mEvil\x9b0m\u202e"
    assert printable("a\tb\nc") == "a b c"
    assert printable("Größe 30 µm → 日本語 ✓") == "Größe 30 µm → 日本語 ✓"


def test_data_keep_their_form() -> None:
    assert printable_data({"a\x1b": ["\x07", 1, None, True]}) == {r"a\x1b": [r"\x07", 1, None, True]}


def test_errors_show_what_was_hidden() -> None:
    assert PlanError("no model is called", EVIL).one_line() == f"no model is called: {printable(EVIL)}"


def plan_of_class(folder: Path, name: str) -> Path:
    """A plan of a model whose configuration says this class."""
    (folder / "config.json").write_text(json.dumps({"architectures": [name], **SIZES}), encoding="utf-8")
    path = folder / "plan.yaml"
    path.write_text("model: {config: config.json}\nhardware: {name: h100-sxm-80gb}\n", encoding="utf-8")
    return path


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    return plan_of_class(tmp_path, "LlamaForCausalLM")


def test_a_models_class_name_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    output = CliRunner().invoke(group, ["plan", str(plan_of_class(tmp_path, EVIL))]).output
    assert not obeyed(output)
    assert "Evil" in output


@pytest.mark.parametrize("form", ["table", "markdown", "json", "yaml", "html"])
def test_a_configurations_name_does_nothing_to_the_terminal(plan_file: Path, form: str) -> None:
    odd = plan_file.with_name("od\x1b[31md.json")
    plan_file.with_name("config.json").rename(odd)
    plan_file.write_text(yaml.safe_dump({"model": {"config": odd.name}, "hardware": {"name": "h100-sxm-80gb"}}))
    output = CliRunner().invoke(group, ["plan", str(plan_file), "--format", form]).output
    assert not obeyed(output)
    assert form in ("table", "markdown") or "[31md.json" in "".join(output.split())


def test_json_with_odd_characters_stays_the_same_data(tmp_path: Path) -> None:
    config = tmp_path / "a\u202e\x9bb.json"
    config.write_text(json.dumps(SIZES), encoding="utf-8")
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"model": {"config": config.name}, "hardware": {"name": "h100-sxm-80gb"}}))
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        output = CliRunner().invoke(group, ["plan", str(path), "--format", form]).stdout
        assert not obeyed(output)
        assert Path(read(output)["plan"]["model"]["config"]).name == config.name


def test_paths_do_nothing_to_the_terminal(plan_file: Path, tmp_path: Path) -> None:
    odd = tmp_path / "od\x1b[31md.yaml"
    odd.write_text(plan_file.read_text("utf-8"), encoding="utf-8")
    result = CliRunner().invoke(group, ["validate", str(odd)])
    assert r"od\x1b[31md.yaml: valid" in result.output


@pytest.mark.parametrize("options", [["--output"], ["--frameworks"]])
def test_paths_that_were_written_do_nothing_to_the_terminal(
    plan_file: Path, tmp_path: Path, options: list[str]
) -> None:
    result = CliRunner().invoke(group, ["plan", str(plan_file), *options, str(tmp_path / "od\x1b[31md.json")])
    assert r"od\x1b[31md.json" in result.output
    assert not obeyed(result.output)


def test_names_of_processes_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    status = "Name:\t\x1b[31;5mEVIL\x07\nUid:\t0\t0\t0\t0\nVmRSS:\t99999999 kB\n"
    (tmp_path / "proc" / "4711").mkdir(parents=True)
    (tmp_path / "proc" / "4711" / "status").write_text(status)
    machine = detect(host=Host(root=tmp_path, system="Linux", environment={}))
    shown = as_text(rich_parts(machine_parts(machine)), to_file=True)
    assert r"\x1b[31;5mEVIL\x07" in shown
    assert not obeyed(shown)


def test_texts_that_reach_a_table_anyway_are_shown() -> None:
    shown = as_text([EVIL], to_file=True)
    assert not obeyed(shown)
    assert r"\x1b[31mEvil" in shown


def test_own_rows_cannot_hide_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from capacity_tui.engine.catalog import load_catalog

    row = {"vendor": "nvidia", "name": f"{EVIL}\n```\nmore", "generation": "hopper", "memory_mib": 1024}
    (tmp_path / "accelerators.yaml").write_text(yaml.safe_dump({"my-gpu": row}), encoding="utf-8")
    table = load_catalog(tmp_path).accelerators
    shown = table["my-gpu"].name if "my-gpu" in table else "".join(map(str, table.problems))
    assert not obeyed(shown)


def test_spaces_that_keep_a_number_with_its_unit_stay() -> None:
    assert printable("1.5\N{NO-BREAK SPACE}GiB") == "1.5\N{NO-BREAK SPACE}GiB"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_figures_of_a_table_are_whole_or_told_to_have_no_room(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    figures = [f"${number} 160.25" for number in range(11, 19)]
    heads = [f"head{number}" for number in range(8)]
    lines = as_text(rich_parts([table_part(["name", *heads], [["some instance", *figures]], range(1, 9))])).splitlines()
    shown = [figure for figure in figures if figure in " ".join(lines)]
    told = " ".join(lines).partition("no room for: ")[2].replace(",", "").split()
    assert all(len(line) <= width for line in lines)
    assert told == [head for head, figure in zip(heads, figures, strict=True) if figure not in shown]
    assert "…" not in "".join(lines)


def test_no_cell_of_a_table_of_values_is_a_formula() -> None:
    rows = [{"a": "=cmd|' /C calc'!A0", "b": -1.5, "@c": "-1.5"}, {"a": "@SUM(1)", "b": "+1e3", "@c": "-x, y"}]
    found = list(csv.reader(io.StringIO(csv_table(["a", "b", "@c"], rows))))
    assert found == [["a", "b", "'@c"], ["'=cmd|' /C calc'!A0", "-1.5", "-1.5"], ["'@SUM(1)", "+1e3", "'-x, y"]]
