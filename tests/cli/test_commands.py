"""The command line: data on stdout, one line on stderr for what is wrong, promised exit codes."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.plan.files import load_plan, plan_from_text
from capacity_tui.engine.plan.files.saved import save_plan
from tests.cli.outcome import PLAN

pytestmark = pytest.mark.usefixtures("place")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan",), "Missing argument"),
        (("paln",), "No such command"),
        (("plan", "plan.yaml", "--format", "xml"), "'xml' is not one of"),
        (("plan", "missing.yaml"), "missing.yaml"),
        (("plan", "."), "not a file"),
        (("--gpu", "h100", "plan", "plan.yaml"), "put it behind the command"),
        (("models", "--details", "gpt5"), "nearest known"),
        (("hardware", "--details", "h1000"), "nearest known"),
        (("examples", "--show", "transfromer"), "did you mean transformer"),
        (("plan", "plan.yaml", "--explain", "memory.nothing"), "no figure"),
        (("plan", "plan.yaml", "-o", "no/such/folder/a.json"), "make the folder first"),
        (("plan", "plan.yaml", "-o", "plan.yaml"), "this is the plan itself"),
        (("plan", "plan.yaml", "-o", "plan.pdf"), ".pdf files cannot be written"),
    ],
)
def test_what_is_refused(run, arguments: tuple[str, ...], says: str) -> None:
    outcome = run(*arguments)
    assert says in outcome.refusal
    assert outcome.out == ""


@pytest.mark.parametrize("form", ["table", "markdown", "json", "yaml"])
def test_plan_in_every_format(run, form: str) -> None:
    outcome = run("plan", "plan.yaml", "--format", form)
    assert outcome.code == 0
    assert outcome.err == ""
    assert "gpt2-small" in outcome.out


def test_brief_keeps_what_people_read_of_a_plan(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # wide enough that no range of the full plan goes on in a second line
    full, brief = (run("plan", "plan.yaml", *words).out.splitlines() for words in ((), ("--brief",)))
    assert len(brief) <= 16 < len(full)
    assert brief[0] == full[0]
    figures = [line for line in brief if line.startswith("  ") and "limited by" not in line]
    assert figures
    # The same figures with the same ranges; only columns are narrower.
    assert {" ".join(line.split()) for line in figures} <= {" ".join(line.split()) for line in full}


@pytest.mark.parametrize("name", ["vllm_70b_4_h100", "pretrain_70b_512_h100", "deep_learning", "linear_regression"])
def test_brief_has_room_for_itself_on_the_usual_terminal(run, monkeypatch, name: str) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    assert run("plan", name).out.count("\n") <= 20


@pytest.mark.parametrize("words", [["-v"], ["--compare"], ["--explain", "cost"], ["--format", "json"]])
def test_brief_is_refused_where_nothing_is_to_be_shortened(run, words: list[str]) -> None:
    assert "--brief" in run("plan", "plan.yaml", "--brief", *words).refusal


@pytest.mark.parametrize(
    ("rows", "is_terminal", "options", "is_brief"),
    [
        (24, True, [], True),
        (25, True, [], False),
        (24, False, [], False),
        (24, True, ["--no-brief"], False),
        (24, True, ["-v"], False),
        (24, True, ["-o", "report.txt"], False),
        (60, True, ["--brief"], True),
    ],
)
def test_a_plan_is_brief_by_itself_on_a_terminal_of_24_rows(
    run, monkeypatch, rows: int, is_terminal: bool, options: list[str], is_brief: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    monkeypatch.setenv("LINES", str(rows))
    monkeypatch.setenv("COLUMNS", "100")
    out = run("plan", "plan.yaml", *options).out
    assert ("In brief" in out) is is_brief


def test_plan_json_has_the_figures(run) -> None:
    result = json.loads(run("plan", "plan.yaml", "--format", "json").out)
    assert result["fits"] is True
    assert result["plan"]["hardware"]["devices"] == 1
    assert result["memory"]["per_device_bytes"]["low"] < result["memory"]["per_device_bytes"]["high"]
    seconds = result["computation"]["estimated_train_time_seconds"]["value"]
    assert seconds == pytest.approx(1000 * result["computation"]["step_seconds"]["value"])


def test_several_plans_are_one_object_a_line(run, place: Path) -> None:
    (place / "other.yaml").write_text(PLAN.replace("gpt2-small", "smollm2-135m"))
    lines = run("plan", "other.yaml", "plan.yaml", "other.yaml").out.splitlines()
    names = [json.loads(line)["plan"]["model"]["name"] for line in lines]
    assert names == ["smollm2-135m", "gpt2-small", "smollm2-135m"]


def test_several_plans_take_the_form_of_the_output_file(run, place: Path) -> None:
    assert "html is one page for one plan" in run("plan", "plan.yaml", "plan.yaml", "-o", "both.html").refusal
    assert not (place / "both.html").exists()
    assert run("plan", "plan.yaml", "plan.yaml", "-o", "both.yaml").code == 0
    assert (place / "both.yaml").read_text().count("---") == 2


def test_one_bad_plan_of_several_does_not_hide_the_others(run, place: Path) -> None:
    (place / "bad.yaml").write_text(PLAN.replace("seq_len: 1024", "seq_len: none"))
    outcome = run("plan", "bad.yaml", "plan.yaml")
    assert outcome.refusal.startswith("capacity-tui: bad.yaml:2: training.seq_len: not allowed: 'none'")
    assert json.loads(outcome.out)["fits"] is True


def test_changes_from_the_command_line(run) -> None:
    outcome = run(
        "plan", "plan.yaml", "--gpu", "8xH100-SXM", "--set", "training.micro_batch=2",
        "--set", "model.name=llama-3.2-1b", "--format", "json",
    )  # fmt: skip
    plan = json.loads(outcome.out)["plan"]
    assert (plan["hardware"]["devices"], plan["training"]["micro_batch"]) == (8, 2)
    assert plan["model"]["name"] == "llama-3.2-1b"


def test_a_deadline_in_a_line_is_kept_or_missed(run) -> None:
    line = "train llama-3.1-8b 8xh100 20B tokens"
    late, early = run("plan", f"{line} within 24h", "--check"), run("plan", f"{line} within 900h", "--check")
    assert (late.code, early.code) == (1, 0)
    assert "misses limit: time" in late.out
    assert "misses" not in early.out


def test_check_answers_with_the_exit_code(run) -> None:
    assert run("plan", "plan.yaml", "--check").code == 0
    too_large = ("plan", "plan.yaml", "--set", "model.name=llama-3-70b")
    assert run(*too_large).code == 0
    assert run(*too_large, "--check").code == 1


def test_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLAN.encode())))
    assert json.loads(run("plan", "-", "--format", "json").out)["fits"] is True
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"model: [")))
    assert run("validate", "-").refusal.startswith("capacity-tui: <stdin>:")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert "not UTF-8" in run("plan", "-").refusal


def test_standard_input_is_bounded(run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:
            buffer[:] = b"a: 1\n" * (len(buffer) // 5) + b"#" * (len(buffer) % 5)
            return len(buffer)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    assert "too large" in run("plan", "-").refusal


def test_a_pipe_is_read_like_a_file(run, place: Path) -> None:
    os.mkfifo(place / "pipe")
    writer = threading.Thread(target=(place / "pipe").write_text, args=(PLAN,))
    writer.start()
    assert json.loads(run("plan", "pipe", "--format", "json").out)["fits"] is True
    writer.join()


def test_plans_answer_by_name(run, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(place / "data"))
    save_plan("my run", plan_from_text(PLAN, "plan"))
    assert json.loads(run("plan", "my run", "--format", "json").out)["fits"] is True
    assert run("validate", "qlora_rtx_4090").code == 0
    assert "did you mean my run?" in run("plan", "my rum").refusal
    assert "check the path" in run("plan", "absent.yaml").refusal
    assert "check the path" in run("plan", "a" * 5000).refusal


def test_output_file_decides_the_format(run, place: Path) -> None:
    outcome = run("plan", "plan.yaml", "-o", "out.json")
    assert (outcome.out, outcome.err) == ("", "wrote out.json\n")
    assert json.loads((place / "out.json").read_text())["fits"] is True
    run("plan", "plan.yaml", "-o", "out.md")
    assert (place / "out.md").read_text().startswith("# gpt2-small")
    run("plan", "plan.yaml", "-o", "out.txt", "--format", "yaml")
    assert yaml.safe_load((place / "out.txt").read_text())["fits"] is True


def test_three_configurations_as_plan_files(run, place: Path) -> None:
    outcome = run("configs", "--model", "gpt2-small", "--gpu", "2xrtx-4090", "-o", "plans")
    assert outcome.code == 0
    for mode in ("conservative", "balanced", "extreme"):
        plan = load_plan(place / "plans" / f"{mode}.yaml")
        assert (plan.model.name, plan.hardware.devices) == ("gpt2-small", 2)
    again = run("configs", "--model", "gpt2-small", "--gpu", "2xrtx-4090", "-o", "plans")
    assert "is there already" in again.refusal


def test_one_configuration(run) -> None:
    text = run("configs", "--gpu", "rtx-4090", "--mode", "balanced", "--format", "yaml").out
    assert plan_from_text(text, "configs").hardware.name == "rtx-4090"
    table = run("configs", "--gpu", "rtx-4090").out
    assert "conservative" in table
    assert "extreme" in table


def test_detecting_this_machine(run) -> None:
    machine = json.loads(run("detect", "--format", "json").out)
    assert machine["memory"]["total_bytes"]["value"] > 0
    assert "CPU" in run("detect", "--profile-only").out


def test_internal_errors_have_no_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("capacity_tui.engine.solve.answer", fail)
    outcome = run("plan", "plan.yaml")
    assert outcome.code == 70
    assert outcome.err.count("\n") == 1
    assert "ZeroDivisionError: division by zero" in outcome.err


def test_interrupt_is_quiet(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("capacity_tui.engine.solve.answer", interrupt)
    outcome = run("plan", "plan.yaml")
    assert (outcome.code, outcome.err.strip()) == (130, "")


def test_configurations_say_what_each_mode_chose(run) -> None:
    out = run("configs", "--gpu", "rtx-4090").out
    rows = {line.split("  ")[0].strip(): line for line in out.splitlines() if line.strip()}
    assert {"model", "sequence", "micro / global batch", "checkpointing"} <= rows.keys()
    assert "1024 tok" in rows["sequence"]
    assert "4096 tok" in rows["sequence"]
