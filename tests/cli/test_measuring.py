"""``sample`` and ``calibrate`` from the command line: errors, a run of one's own, and what plans say afterwards."""

import json
import sys

import pytest

from capacity_tui.tui.cli import main

PLAN = """
model: {name: transformer_decoder, spec: {layers: 4, hidden: 256, heads: 4, vocab: 1024}}
training: {seq_len: 256, micro_batch: 4, global_batch: 4, precision: fp32}
hardware: {name: detected}
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return str(path)


def step(capsys, plan):
    assert main(["plan", plan, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    return result["computation"]["step_seconds"]["value"], result["basis"]["calibration"]


def test_a_missing_torch_is_exit_3_only_where_it_was_asked_for(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["sample", "kernels", "--with", "torch", "--device", "cpu"]) == 3
    assert main(["sample", "collectives", "--device", "cpu", "--ranks", "2"]) == 3
    told = capsys.readouterr().err
    assert "pip install" in told and "torch" in told
    assert main(["sample", "kernels", "--with", "numpy", "--quick", "--kernel", "residual"]) == 0


def test_samples_become_constants_that_plans_use(plan, capsys):
    nominal, _ = step(capsys, plan)
    assert main(["sample", "kernels", "--with", "numpy", "--quick", "--kernel", "residual", "--kernel", "copy"]) == 0
    assert main(["calibrate", "--device", "cpu"]) == 0
    assert "elementwise" in capsys.readouterr().out
    measured, basis = step(capsys, plan)
    assert basis.startswith("measured on this machine, ")
    assert measured != nominal


def test_a_run_of_ones_own_is_met_from_then_on(plan, capsys):
    assert main(["calibrate", "--plan", plan, "--step-seconds", "1.5", "--peak-gib", "2"]) == 0
    told = capsys.readouterr()
    assert "own runs, step time" in told.out
    assert "own runs, memory" in told.out
    assert told.out.count("training") == 1, "a run is a record"
    assert "as shipped" not in told.out, "it changes no constant"
    assert "0.0 %" not in told.out, "one number is always met"
    assert "from now on" in told.err
    assert step(capsys, plan)[0] == pytest.approx(1.5, rel=1e-3)
    assert main(["calibrate", "--plan", plan, "--step-seconds", "1.2", "--peak-gib", "2"]) == 0
    assert capsys.readouterr().out.count("training") == 2


def test_a_run_much_faster_than_its_samples_is_met_beside_them(plan, capsys):
    assert main(["sample", "kernels", "--with", "numpy", "--quick", "--kernel", "residual", "--kernel", "copy"]) == 0
    assert main(["calibrate", "--device", "cpu"]) == 0
    capsys.readouterr()
    sampled, _ = step(capsys, plan)
    wanted = sampled / 3.0
    assert main(["calibrate", "--plan", plan, "--step-seconds", str(wanted)]) == 0
    assert "elementwise" in capsys.readouterr().out
    met, basis = step(capsys, plan)
    assert basis.startswith("measured on this machine, ")
    assert met == pytest.approx(wanted, rel=0.02)


def test_a_run_that_no_machine_could_do_is_refused_and_not_kept(plan, capsys):
    assert main(["calibrate", "--plan", plan, "--step-seconds", "1e-9"]) == 2
    assert main(["calibrate", "--plan", plan, "--peak-gib", "2000"]) != 0
    capsys.readouterr()
    assert not step(capsys, plan)[1].startswith("measured on this machine")


def test_a_log_tells_the_run(plan, tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text("iter 1: loss 5.0, time 9000.00ms\n" + "iter 2: loss 4.1, time 1250.00ms\n" * 5)
    assert main(["calibrate", "--plan", plan, "--log", str(log)]) == 0
    capsys.readouterr()
    assert step(capsys, plan)[0] == pytest.approx(1.25, rel=1e-3)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["calibrate"], "sample kernels"),
        (["calibrate", "--step-seconds", "2"], "--plan"),
        (["sample", "kernels", "--kernel", "nonsense"], "known: gemm"),
        (["sample", "collectives", "--ranks", "1"], "--ranks"),
    ],
)
def test_bad_words_are_one_line_with_a_remedy(words, told, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert told in error


def test_a_run_needs_something_measured(plan, capsys):
    assert main(["calibrate", "--plan", plan]) == 2
    assert "--step-seconds" in capsys.readouterr().err
