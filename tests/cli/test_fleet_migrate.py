"""``fleet migrate``, ``fleet run`` and ``fleet set`` as scripts and people see them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from capacity_tui.tui.cli import main

TO = "aws-p5-48xlarge,aws-g6e-xlarge,aws-g4dn-xlarge"
ASKED = (
    "fleet",
    "migrate",
    "--from",
    "P5",
    "--gpus",
    "1",
    "--task",
    "infer",
    "--model",
    "small",
    "--precision",
    "fp16",
)
KEYS = {
    "instance", "count", "devices", "fits", "short_bytes", "performance_ratio", "usd_month", "usd_month_spot",
    "saving_percent", "performance_percent", "move_usd", "break_even_hours", "risk", "complexity", "remedies",
}  # fmt: skip


@pytest.fixture
def run(capsys):
    def command(*arguments, expected=0):
        assert main(arguments) == expected
        told = capsys.readouterr()
        return told.out if not expected else told.err

    return command


def test_a_script_gets_every_machine_under_names_it_can_rely_on(run):
    found = json.loads(run(*ASKED, "--to", TO, "--format", "json"))
    assert found["verdict"] in ("stay", "move") and found["complete"]
    for each in (found["current"], *found["alternatives"]):
        assert each.keys() >= KEYS
        assert each["risk"].keys() >= {"level", "reasons"}
    assert {each["instance"] for each in found["alternatives"]} == set(TO.split(","))
    assert {each["priority"] for each in found["recommendations"]} == {"cost", "performance", "reliability"}


def test_people_read_verdict_table_and_what_moving_takes(run):
    text = run(*ASKED, "--to", TO, "--top", "2")
    assert text.startswith("move: ") and "set-up" in text and "1 more" in text


def test_all_forms_say_the_same(run, tmp_path: Path):
    files = [tmp_path / f"out.{suffix}" for suffix in ("csv", "md", "yaml", "html")]
    for file in files:
        run(*ASKED, "--to", "aws-g6e-xlarge", "-o", str(file))
    rows = list(csv.DictReader(io.StringIO(files[0].read_text("utf-8"))))
    as_yaml = yaml.safe_load(files[2].read_text("utf-8"))
    assert [row["instance"] for row in rows] == ["aws-p5-48xlarge", "aws-g6e-xlarge"]
    assert float(rows[1]["usd_month"]) == pytest.approx(as_yaml["alternatives"][0]["usd_month"])
    for page in files[1], files[3]:
        assert "aws-g6e-xlarge" in page.read_text("utf-8")
    assert files[3].read_text("utf-8").startswith("<!doctype html>")


def test_a_whole_plan_may_be_the_job(run):
    example = json.loads(run("fleet", "migrate", "--model", "vllm_70b_4_h100", "--to", "aws-p5-48xlarge", "--format",
                             "json"))  # fmt: skip
    assert example["current"]["devices"] > 0 and len(example["alternatives"]) == 1
    same = json.loads(run("fleet", "migrate", "vllm_70b_4_h100", "--to", "aws-p5-48xlarge", "--format", "json"))
    assert same["alternatives"] == example["alternatives"]
    line = json.loads(run("fleet", "migrate", "serve llama-3.1-8b h100 batch 8", "--to", TO, "--format", "json"))
    assert line["current"]["instance"] == "h100-sxm-80gb" and len(line["alternatives"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "P55", "--model", "small"), "P55"),
        (("--from", "P5", "--model", "smal"), "smal"),
        (("--model", "small"), "current machine is not given"),
        ((), "PLAN"),
        (("vllm_70b_4_h100", "--model", "small"), "PLAN"),
        (("nosuch.yaml",), "nosuch.yaml"),
        (("--from", "P5", "--model", "small", "--precision", "fp17"), "fp17"),
        (("--from", "P5", "--model", "small", "--region", "us-eest-1"), "us-eest-1"),
        (("--from", "P5", "--model", "small", "--to", "nowhere"), "nowhere"),
        (("--from", "P5", "--model", "small", "--data", "much"), "much"),
        (("--from", "P5", "--model", "small", "--hours", "800"), "800"),
    ],
)
def test_slips_of_the_pen_are_named_in_one_line(run, arguments, words):
    told = run("fleet", "migrate", *arguments, expected=2)
    assert words in told and "Traceback" not in told


def test_workloads_that_nobody_knows_are_named(run):
    assert "inference_small_p6" in run("fleet", "run", "inference_small_p6", expected=2)
    assert "basic_demo" in run("fleet", "set", "basic_demo", expected=2)


def test_workloads_and_sets_are_compared_with_the_instances_that_are_named(run):
    one = json.loads(run("fleet", "run", "inference_small_p5", "--to", "G6e", "--format", "json"))
    several = json.loads(run("fleet", "set", "research_academic", "--to", "G6e", "--format", "json"))
    assert [entry["workload"] for entry in several["runs"]] == ["research_training_g6e", "batch_inference_g5"]
    for entry in (*one["runs"], *several["runs"]):
        assert {each["instance"] for each in entry["alternatives"]} <= {"aws-g6e-4xlarge"}


def test_a_move_whose_price_nobody_knows_says_so(run, tmp_path: Path):
    own = {"gpu_type": "NVIDIA L40S", "gpu_memory_gb": 48, "gpus_per_instance": 8, "on_demand_cost_per_hour": 90.0}
    (tmp_path / "gpu_instances.json").write_text(json.dumps({"gpu_instances": {"Mine": own}}))
    asked = ("--from", "Mine", "--task", "infer", "--model", "small", "--to", "G6e", "--config", str(tmp_path))
    told = run("fleet", "migrate", *asked)
    assert "but the migration cost is not known:" in told.splitlines()[0]


def test_kinds_of_jobs_go_by_the_names_of_workload_files(run):
    asked = ("fleet", "migrate", "--from", "P5", "--gpus", "1", "--model", "SMALL", "--to", "G6e", "--format", "json")
    for name, own in (("INFERENCE", "infer"), ("FINE_TUNING", "finetune"), ("TRAINING", "train")):
        said, plain = (json.loads(run(*asked, "--task", kind)) for kind in (name, own))
        del said["seconds"], plain["seconds"]
        assert said == plain
    assert "finetune" in run(*asked, "--task", "FINE_TUNINGG", expected=2)


def test_what_misses_a_limit_or_memory_says_so_in_its_row(run):
    said = json.loads(run("fleet", "migrate", "--from", "G6", "--model", "small", "--to", "G5", "--format", "json"))
    assert said["current"]["verdict"] == "does_not_fit" and said["current"]["remedies"][0]["is_enough"]
