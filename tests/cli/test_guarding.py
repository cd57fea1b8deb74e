"""``guard``: what a command is given, what is told of it, and who takes it up when its guard is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.runs import list_runs
from capacity_tui.engine.runs.guard import take_up as take_up_guarding
from capacity_tui.engine.runs.history import History
from capacity_tui.tui.cli import main

PLAN = """
task: train
model: {name: llama-3.2-1b}
training: {seq_len: 2048, micro_batch: 4, global_batch: 64, steps: 1000}
hardware: {name: rtx-4090, devices: 1}
watch: {interval: 0.5}
recovery: {max_restarts: 2}
"""


@pytest.fixture(autouse=True)
def plan(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))
    monkeypatch.setenv("CAPACITY_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_a_command_gets_the_plan_and_keeps_its_output_and_exit_code(plan, tmp_path, capfd):
    (tmp_path / "train.yaml").write_text("batch: {training.micro_batch}\n")
    words = ["sh", "-c", "cat $1; echo $2 $CAPACITY_TUI_RUN_ACCUMULATION; echo no >&2; exit 3", "sh", "train.yaml"]
    assert main(["guard", str(plan), "--rewrite", "train.yaml", "--", *words, "{training.seq_len}"]) == 3
    out, err = capfd.readouterr()
    assert out == "batch: 4\n2048 16\n"
    assert "no\n" in err
    assert "guard: ended with exit code 3" in err
    (run,) = History().find()
    assert (run.kind, run.details["exit_code"], run.details["restarts"]) == ("run", 3, 0)
    assert [event["event"] for event in run.details["events"]] == ["started", "end"]
    (listed,) = list_runs()
    assert (listed.id, listed.by, listed.exit_code) == (run.id, "guard", 3)


def test_nothing_of_a_run_is_kept_where_that_is_wanted(plan):
    assert main(["guard", "--no-history", str(plan), "--", "true"]) == 0
    assert not list_runs()
    assert not History().find()


def test_looks_and_events_are_json_lines(plan, capfd):
    code = "import time\nfor n in range(4): print('step', n, 'loss', 3 - n / 10, flush=True); time.sleep(.1)"
    assert main(["guard", str(plan), "--json", "--", sys.executable, "-c", code]) == 0
    out, err = capfd.readouterr()
    told = objects(out)
    assert (told[0]["event"], told[-1]["event"]) == ("started", "end")
    assert [each["loss"] for each in told if "loss" in each][-1] == pytest.approx(2.7)
    assert "step 3 loss 2.7" in err


def test_a_dry_run_says_what_would_be_started_and_starts_nothing(plan, tmp_path, capfd):
    words = ["touch", "made-{training.micro_batch}", "--resume", "{run.checkpoint}"]
    assert main(["guard", str(plan), "--dry-run", "--json", "--checkpoints", "out", "--", *words]) == 0
    (told,) = objects(capfd.readouterr().out)
    assert told["command"] == ["touch", "made-4"]
    assert told["environment"]["CAPACITY_TUI_TRAINING_MICRO_BATCH"] == "4"
    assert (told["recovery"]["max_restarts"], told["watch"]["interval"]) == (2, 0.5)
    assert not (tmp_path / "made-4").exists()
    assert not list_runs()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plan.yaml"], 2, "a command behind --"),
        (["plan.yaml", "--", "echo", "{training.micro}"], 2, "{training.micro_batch} is a placeholder"),
        (["--attach", "nothing"], 2, "no unfinished run"),
    ],
)
def test_what_cannot_be_guarded_says_why(arguments, code, said, capsys):
    assert main(["guard", *arguments]) == code
    assert said in capsys.readouterr().err
    assert not list_runs()


def test_a_command_outlives_its_guard_and_is_taken_up_again(plan, tmp_path, capfd):
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))\n"
        "print('ready', os.environ['CAPACITY_TUI_RUN_ID'], flush=True)\n"
        "time.sleep(60)\n"
    )
    program = [sys.executable, "-m", "capacity_tui.tui", "guard"]
    words = [*program, str(plan), "--", sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as guard:
        name = guard.stdout.readline().split()[1]
        guard.kill()
    (run,) = list_runs()
    assert run.goes_on
    assert not run.is_watched
    refused = []

    def others_are_refused() -> None:
        while b'"attached"' not in (run.folder / "events.jsonl").read_bytes():
            time.sleep(0.02)
        with pytest.raises(CapacityError, match="guarded already") as error:
            take_up_guarding(name, None, None)
        refused.append(error)
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=others_are_refused, daemon=True).start()
    assert main(["guard", "--attach", name[:6]]) == 7
    assert refused
    out, err = capfd.readouterr()
    assert "taken up: attempt 1 goes on" in err
    assert "ready" not in out
    assert History().find()[0].details["exit_code"] == 7
    assert not list_runs()[0].goes_on
