"""``scaling`` and ``bench-configs``: commands of growing size and of many settings, measured and ranked."""

from __future__ import annotations

import json

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.growth import Measurement, Measuring, measuring, ranked_settings
from capacity_tui.engine.growth import parse_grid as parse_setting_grid
from capacity_tui.engine.runs.history import History
from capacity_tui.tui.cli.program import run_command

POINTS = "n,seconds,peak_memory_bytes\n" + "".join(
    f"{n},{(0.05 + 2e-4 * n) * wobble},{30e6 + 400 * n * wobble}\n"
    for n in (100, 1000, 10_000, 50_000)
    for wobble in (0.98, 1.0, 1.02)
)


@pytest.fixture
def points(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text(POINTS)
    return file


def test_a_fit_has_the_keys_that_scripts_use(points, capsys):
    assert run_command(["scaling", "fit", str(points), "--to", "1e8,1B", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["chosen"], told["decided"]) == ("O(n)", True)
    assert all(set(law) == {"name", "parameters", "score", "weight"} for law in told["laws"])
    assert sum(law["weight"] for law in told["laws"]) == pytest.approx(1)
    assert [each["n"] for each in told["extrapolated"]] == [1e8, 1e9]
    assert all(each["low"] < each["value"] < each["high"] for each in told["extrapolated"])
    assert told["extrapolated"][0]["value"] == pytest.approx(2e4, rel=0.02)
    assert set(told["fits"]) == {"seconds", "peak_memory_bytes"}


def test_a_fit_reads_for_people(points, capsys):
    assert run_command(["scaling", "fit", str(points), "--figure", "peak_memory_bytes"]) == 0
    told = capsys.readouterr().out
    assert "Peak memory: O(n)" in told
    assert "100.0 M" in told and "GiB" in told


@pytest.mark.parametrize("words", [["--figure", "colour"], ["--to", "0"], ["--to", "many"]])
def test_what_a_fit_cannot_do_is_refused(points, words):
    with pytest.raises(CapacityError):
        run_command(["scaling", "fit", str(points), *words])


@pytest.fixture(autouse=True)
def _own_places(monkeypatch, tmp_path):
    monkeypatch.setenv("CAPACITY_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))


def sh(script: str) -> tuple[str, ...]:
    return ("--", "sh", "-c", script)


def test_a_command_is_measured_at_growing_sizes(tmp_path, capsys):
    script = f"sleep $(echo {{n}} | sed s/^/0.0/); head -c {{n}}000 /dev/zero > {tmp_path}/out-{{n}}"
    words = ["scaling", "run", "--sizes", "8,1,2,4", "--repeats", "1", "--to", "1e6", "--format", "json"]
    assert run_command([*words, "--disk", f"{tmp_path}/out-{{n}}", *sh(script)]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert [each["set"] for each in told["measured"]] == [{"n": str(n)} for n in (1, 2, 4, 8)]
    assert [each["value"] for each in told["fits"]["disk_bytes"]["points"]] == [1000, 2000, 4000, 8000]
    assert told["fits"]["disk_bytes"]["chosen"] == "O(n)"
    assert told["figure"] == "seconds"
    assert told["complete"]
    assert captured.err.count("n=") == 4
    kept = History(tmp_path / "history.sqlite").find()
    assert sorted(each.details["set"]["n"] for each in kept) == ["1", "2", "4", "8"]


def test_a_series_goes_on_where_it_was_stopped(tmp_path, capsys):
    log = tmp_path / "log"
    script = f"echo {{n}} >> {log}; test -e {tmp_path}/later || test {{n}} -lt 30 || kill -INT $PPID"
    words = ["scaling", "run", "--sizes", "10,20,30,40", "--repeats", "1", *sh(script)]
    assert run_command(words) == 0
    assert "stopped after 2 of 4 runs" in capsys.readouterr().err
    (tmp_path / "later").touch()
    assert run_command(words) == 0
    told = capsys.readouterr().err
    assert "n=20" in told and "measured before" in told
    assert log.read_text().split() == ["10", "20", "30", "30", "40"]
    assert not list((tmp_path / "state").rglob("*.jsonl"))


def test_a_size_that_takes_too_long_ends_and_larger_ones_are_not_tried(capsys, monkeypatch):
    monkeypatch.setattr(measuring, "_GRACE_SECONDS", 0.2)
    words = ["scaling", "run", "--sizes", "1,2,30,60", "--repeats", "1", "--timeout", "300ms", "--format", "json"]
    assert run_command([*words, *sh("trap '' TERM; test {n} -lt 3 || sleep {n} & wait")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["problem"] for each in told["measured"]] == ["", "", "ended after 0.3 s"]
    assert not told["decided"]


def test_settings_are_ranked_by_what_they_get_done_in_a_second(tmp_path, capsys):
    script = (
        "echo learned $(({chunk} * {chunk} * 10)) of {depth} patterns; test {chunk} != 7 || { echo broken; exit 3; }"
    )
    words = ["bench-configs", "--grid", "depth=1..3:2", "--grid", "chunk=1,99,7", "--metric", r"learned (\d+)"]
    assert run_command([*words, "--format", "json", *sh(script)]) == 0
    ranked = json.loads(capsys.readouterr().out)["ranked"]
    assert len(ranked) == 6
    assert [each["set"]["chunk"] for each in ranked] == ["99", "99", "1", "1", "7", "7"]
    assert ranked[0]["efficiency"] == pytest.approx(98010 / ranked[0]["seconds"])
    assert ranked[0]["efficiency"] >= ranked[1]["efficiency"]
    assert [each["exit_code"] for each in ranked] == [0, 0, 0, 0, 3, 3]
    assert "broken" in ranked[-1]["problem"]
    assert {"set", "seconds", "metric", "efficiency", "peak_memory_bytes", "exit_code"} <= set(ranked[0])
    assert len(History(tmp_path / "history.sqlite").find()) == 6


def test_the_time_that_any_run_takes_to_start_does_not_favour_large_ones():
    def run(samples, depth, seconds):
        return Measurement({"samples": str(samples), "depth": str(depth)}, 0, seconds, 0, metric=float(samples))

    runs = [run(n, depth, 0.5 + depth * n / 1000) for n in (100, 300) for depth in (1, 2)]
    ranked = ranked_settings(runs)
    assert [each.start_seconds for each in ranked] == [pytest.approx(0.5)] * 4
    assert [(each.set["depth"], round(each.efficiency)) for each in ranked] == [
        ("1", 1000), ("1", 1000), ("2", 500), ("2", 500)
    ]  # fmt: skip
    alone = ranked_settings(runs[:2])
    assert {each.start_seconds for each in alone} == {0.0}


def test_sizes_that_laws_disagree_about_are_not_known(capsys):
    script = "sleep 0.0$(({n} % 7))"
    assert run_command(["scaling", "run", "--sizes", "100,1000,10000", "--no-history", *sh(script)]) == 0
    out = capsys.readouterr().out
    assert "not known" in out
    assert " y " not in out


def test_a_grid_and_its_metric_are_read_from_what_is_given(capsys):
    words = ["bench-configs", "--metric", "json:model.patterns", "--grid", "depth=3", "--no-history"]
    script = """printf '{\n "model": {"patterns": 1%s}\n}' {depth}; : awk '{print}'"""
    assert run_command([*words, "--format", "csv", *sh(script)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head == "depth,efficiency,metric,seconds,peak_memory_bytes,exit_code"
    assert row.split(",")[2] == "13.0"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench-configs", "--grid", "depth=1", "--", "true"], "nothing in the command takes {depth}"),
        (["bench-configs", "--", "true"], "nothing in the command changes"),
        (["bench-configs", "--grid", "n=3..1", "--", "true", "{n}"], "no range"),
        (["bench-configs", "--grid", "n=1..9999999", "--", "true", "{n}"], "no range"),
        (["bench-configs", "--grid", "n=1", "--metric", "(", "--", "true", "{n}"], "no regular expression"),
        (["bench-configs", "--grid", "n=1", "--metric", "x", "--", "true", "{n}"], "its output has no x"),
        (["bench-configs", "--grid", "n=1", "--", "no-such-program", "{n}"], "cannot be started"),
        (["scaling", "run", "--", "true"], "nothing in the command takes {n}"),
        (["scaling", "run", "--sizes", "1,2", "--", "false", "{n}"], "no run ended well"),
    ],
)
def test_what_cannot_be_measured_is_told(words, said):
    with pytest.raises(CapacityError) as refused:
        run_command(words)
    assert said in refused.value.one_line()


def test_the_default_grid_has_what_the_command_takes():
    learn = Measuring(("learn", "--depth={depth}", "{chunk}", "{samples}"), 1.0)
    assert len(parse_setting_grid((), learn)) == 8 * 5 * 3
    assert len(parse_setting_grid((), Measuring(("learn", "{chunk}"), 1.0))) == 5


def test_a_fit_says_what_a_larger_job_needs(points, capsys):
    words = ["scaling", "fit", str(points), "--to", "10M", "--recommend", "24h"]
    assert run_command(words) == 0
    told = capsys.readouterr().out
    assert "For n = 10.0 M in 1 d you need" in told
    assert run_command([*words, "--format", "json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["recommended"]
    assert (job["n"], job["deadline_seconds"], job["parts"]) == (1e7, 86400, 1)
    assert job["machines"][0]["usd_per_hour"] > 0


def test_runs_of_a_plan_are_kept_beside_what_was_predicted(tmp_path, capsys):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "model: {name: 500M}\ntraining: {seq_len: 512, global_batch: 8}\nhardware: {name: h100-sxm-80gb, devices: 1}\n"
    )
    script = "for s in 1 2 3 4; do echo step $s loss 2.5 step_time 0.{training.micro_batch} s; done"
    words = ["bench-configs", "--plan", str(plan), "--grid", "training.micro_batch=1,2", *sh(script)]
    assert run_command(words) == 0
    runs = History(tmp_path / "history.sqlite").find()
    assert {run.kind for run in runs} == {"run"}
    kept = {run.plan["training"]["micro_batch"]: run for run in runs}
    assert {batch: run.actual["computation.step_seconds"] for batch, run in kept.items()} == {1: 0.1, 2: 0.2}
    assert all(run.predicted["computation.step_seconds"]["value"] > 0 for run in runs)
