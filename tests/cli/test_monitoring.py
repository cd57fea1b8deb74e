"""``monitor``: what it says of logs, processes and commands, and that commands notice nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing

import pytest

from capacity_tui.engine.runs import RunFollower, list_runs
from capacity_tui.tui.cli import main

STEP = (
    " [2026-01-06 02:{0:02d}:{1:02d}] iteration {2:8d}/    1000 | consumed samples: {3:12d} | elapsed time per "
    "iteration (ms): 6000.0 | global batch size:     8 | lm loss: {4:.6E} | grad norm: 1.0 |\n"
)
STEPS = "".join(STEP.format(n // 10, n % 10 * 6, n, n * 8, 3 - n / 100) for n in range(1, 101))
PLAN = """
task: train
model: {name: llama-3.2-1b}
training: {seq_len: 2048, micro_batch: 1, global_batch: 64, steps: 1000}
hardware: {name: rtx-4090, devices: 1}
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))
    path = tmp_path / "train.log"
    path.write_text(STEPS)
    return path


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_a_log_beside_its_plan_says_how_fast_it_is_and_why(log, tmp_path, capsys):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    assert main(["monitor", "--log", str(log), "--plan", str(plan), "--once", "--json"]) == 0
    state = objects(capsys.readouterr().out)[-1]
    assert (state["step"], state["total_steps"], state["program"]) == (100, 1000, "Megatron-LM")
    assert state["step_seconds"] == pytest.approx(6.0)
    assert state["eta"]["low"] <= state["eta"]["value"] <= state["eta"]["high"]
    assert state["eta"]["value"] == pytest.approx(5400, rel=0.01)
    compared = {each["figure"]: each for each in state["compared"]}
    step = compared["computation.step_seconds"]
    expected = "inside" if step["predicted"]["low"] <= 6 <= step["predicted"]["high"] else None
    assert step["verdict"] == (expected or ("slower" if step["predicted"]["high"] < 6 else "faster"))
    assert step["ratio"] == pytest.approx(6 / step["predicted"]["value"])
    assert [each["code"] for each in state["why"]] == ["smaller_batch"]
    assert main(["monitor", "--log", str(log), "--plan", str(plan), "--once"]) == 0
    said = capsys.readouterr().out
    assert "step 100/1 000" in said
    assert "the log says 8 samples a step, the plan 64" in said


def test_trouble_in_a_log_is_told_as_an_event(log, capsys):
    with log.open("a") as file:
        file.write(STEPS.splitlines()[-1].replace("     100/", "     101/").replace("2.000000E+00", "nan") + "\n")
    assert main(["monitor", "--log", str(log), "--once", "--json"]) == 0
    alarm, state = objects(capsys.readouterr().out)
    assert (alarm["event"], alarm["kind"], alarm["level"]) == ("alarm", "not_finite", "error")
    assert state["loss"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give --log FILE"),
        (["--log", "no-such.log", "--once"], "there is no such log"),
        (["--pid", "99999999"], "no process has the number"),
        (["--log", "x", "--pattern", "("], "cannot be used"),
        (["--log", "x", "--plan", "no-such-plan"], "no-such-plan"),
        (["--pid", "1", "--", "true"], "not both"),
        (["--once", "--", "true"], "--once looks at a run"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_one_line(arguments, said, capsys):
    assert main(["monitor", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_command_keeps_its_output_and_its_exit_code(log, capfd):
    script = "import sys, time\nfor n in range(1, 7):\n    print(f'step {n}/6 loss {5 - n}'); time.sleep(0.1)\n"
    command = [sys.executable, "-c", f"{script}print('bad', file=sys.stderr); sys.exit(7)"]
    assert main(["monitor", "--interval", "0.3", "--", *command]) == 7
    caught = capfd.readouterr()
    assert caught.out == "".join(f"step {n}/6 loss {5 - n}\n" for n in range(1, 7))
    assert "bad\n" in caught.err
    assert "step 6/6  loss -1" in caught.err
    assert main(["history", "list", "--format", "json"]) == 0
    (kept,) = json.loads(capfd.readouterr().out)["runs"]
    assert kept["kind"] == "run"
    (run,) = [run for run in list_runs() if run.id == kept["id"]]
    assert (run.exit_code, run.goes_on, run.command) == (7, False, tuple(command))
    with closing(RunFollower(run.folder)) as follower:
        last = follower.poll().events[-1]
    assert (last["event"], last["step"], last["last"]) == ("state", 6, True)
    assert kept["actual"]["computation.step_seconds"] == pytest.approx(0.1, rel=0.5)


def test_json_of_a_command_has_stdout_for_itself(log, capfd):
    command = [sys.executable, "-c", "print('step 1/2 loss 3'); print('step 2/2 loss 2')"]
    before = list_runs()
    assert main(["monitor", "--json", "--no-history", "--", *command]) == 0
    assert list_runs() == before, "nothing of it is kept"
    caught = capfd.readouterr()
    state, end = objects(caught.out)
    assert (state["step"], end["event"], end["exit_code"]) == (2, "end", 0)
    assert "step 1/2 loss 3" in caught.err


def test_looks_and_events_go_out_as_lines_and_as_metrics(log, tmp_path, capfd):
    lines = tmp_path / "looks.jsonl"
    tell = "print({'loss': 1.5, 'epoch': 0.1})"
    assert (
        main(["monitor", "--no-history", "--jsonl", str(lines), "--serve", "0", "--", sys.executable, "-c", tell]) == 0
    )
    looks = [json.loads(line) for line in lines.read_text().splitlines()]
    assert looks[-1]["loss"] == 1.5
    assert looks[-1]["last"]
    assert all("time" in look for look in looks)
    assert main(["monitor", "--once", "--serve", "0", "--log", str(log)]) == 2


def test_a_signal_reaches_the_command(log):
    child = (
        "import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9)); print('up'); time.sleep(30)"
    )
    watched = subprocess.Popen(
        [sys.executable, "-c", "import sys; from capacity_tui.tui.cli import main; sys.exit(main())", "monitor",
         "--no-history", "--", sys.executable, "-c", child],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with watched:
        assert watched.stdout.readline() == "up\n"
        watched.send_signal(signal.SIGUSR1)
        assert watched.wait(60) == 9


def test_a_process_is_followed_by_the_file_it_writes_to(log, tmp_path, capsys):
    script = "import time\nfor n in range(1, 40):\n    print(f'step {n}/40 loss 2.5', flush=True); time.sleep(0.05)\n"
    with (tmp_path / "out.log").open("w") as out:
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=out)
    reaper = threading.Thread(target=child.wait)
    reaper.start()
    assert main(["monitor", "--pid", str(child.pid), "--interval", "0.3", "--json", "--no-history"]) == 0
    reaper.join()
    told = objects(capsys.readouterr().out)
    states = [each for each in told if each["event"] == "state"]
    assert states[-1]["step"] == 39
    assert states[0]["process"]["rss_bytes"] > 0


def test_ctrl_c_ends_the_watching_in_good_order(log, capsys):
    timer = threading.Thread(target=lambda: (time.sleep(0.8), os.kill(os.getpid(), signal.SIGINT)))
    timer.start()
    assert main(["monitor", "--log", str(log), "--interval", "0.2"]) == 0
    timer.join()
    assert "step 100/1 000" in capsys.readouterr().out
    assert main(["history", "list", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["kind"] == "run"
