"""Jobs of plans on a real Slurm: submitted, followed, put back in the queue, and told of beside what was predicted."""

import json
import sys
from pathlib import Path

import pytest

from capacity_tui.engine.nodes.jobs import follow_job, queue_of
from capacity_tui.engine.nodes.slurm import Slurm
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.tui.cli.program import run_command
from tests.nodes.slurm_cluster import SlurmCluster

PLAN = "plan.yaml"
TRAINER = """\
import os, pathlib, signal, sys, time
asked_to_end = []
signal.signal(signal.SIGTERM, lambda *_: asked_to_end.append(True))
step = int(sys.argv[2].rpartition("-")[2]) if sys.argv[1:2] == ["--resume"] else 0
if os.environ["SLURM_PROCID"] == "0":
    print("begins at", step, "with", os.environ["CAPACITY_TUI_TRAINING_MICRO_BATCH"], flush=True)
while not asked_to_end and not pathlib.Path("enough").exists():
    step += 1
    if os.environ["SLURM_PROCID"] == "0":
        checkpoint = pathlib.Path(f"kept/checkpoint-{step}")
        checkpoint.mkdir(parents=True)
        (checkpoint / "model.safetensors").write_bytes((8).to_bytes(8, "little") + b"{}      ")
        (checkpoint / "trainer_state.json").write_text("{}")
    time.sleep(0.2)
if asked_to_end:
    pathlib.Path(f"told-{os.environ['SLURM_PROCID']}").touch()
"""


@pytest.fixture(scope="module")
def plan_text() -> str:
    """A plan in which nothing is open, so that commands estimate it and search for nothing."""
    return dump_plan(answer(plan_of_line(read_line("llama-3.1-8b full 16xh100 2k 50M"), None).plan).plan)


@pytest.fixture
def work(plan_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that all nodes see, with a trainer that goes on from checkpoints, and this program in reach of jobs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.setenv("CAPACITY_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.db"))
    (tmp_path / "train.py").write_text(TRAINER)
    (tmp_path / PLAN).write_text(plan_text)
    return tmp_path


def replicas_alone(devices: int) -> list[str]:
    """Return the options that lay a plan out as a sharded replica on each of so many devices."""
    sizes = {"hardware.devices": devices, "parallelism.dp": devices, "parallelism.shard": devices}
    alone = dict.fromkeys(("parallelism.tp", "parallelism.pp", "parallelism.cp", "training.micro_batch"), 1)
    saving = {"parallelism.zero": 3, "training.checkpointing": "full"}
    return [word for path, size in {**sizes, **alone, **saving}.items() for word in ("--set", f"{path}={size}")]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """Return what a command says as JSON."""
    capsys.readouterr()
    assert run_command([*words[:2], "--format", "json", *words[2:]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def begins(work: Path) -> list[int]:
    """Return the step at which each turn of the trainer began."""
    lines = [line for file in work.glob("*.out") for line in file.read_text().splitlines()]
    return [int(line.split()[2]) for line in lines if line.startswith("begins at")]


def test_a_dry_run_says_where_a_job_would_start_and_why_not_elsewhere(
    slurm: SlurmCluster, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "prices.yaml").write_text("gpu: 98\nspot: {usd_per_device_hour: 3}\n")
    found = said(capsys, "cluster", "submit", PLAN, "--slurm", "--checkpoints", "kept", "--prices", "prices.yaml")
    by_name = {each["name"]: each for each in found["partitions"]}
    assert by_name["gpu"]["takes"] and by_name["gpu"]["start"] and by_name["gpu"]["usd_per_hour"] == 2 * 98
    assert by_name["spot"]["takes"] and by_name["spot"]["usd_per_hour"] == 16 * 3
    assert by_name["cpu"]["why_not"] == "its nodes have no GPUs"
    assert found["partition"] == "spot", "it starts as soon there, and is cheaper"
    assert found["job"] is None and not slurm.run("squeue", "-h").strip()
    script = str(found["script"])
    for line in ("--partition=spot", "--nodes=2", "--gres=gpu:h100:8", "--mem=0", "--requeue", "--signal=B:USR1@300"):
        assert f"#SBATCH {line}\n" in script


def test_what_no_partition_can_take_is_told_and_not_submitted(
    slurm: SlurmCluster, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    larger = [PLAN, *replicas_alone(64)]
    assert run_command(["cluster", "submit", *larger]) == 1
    assert "8 needed" in capsys.readouterr().out
    with pytest.raises(Exception, match="no partition can take this job"):
        run_command(["cluster", "submit", *larger, "--submit"])
    with pytest.raises(Exception, match="no partition is called gup; did you mean gpu"):
        run_command(["cluster", "submit", PLAN, "--partition", "gup"])
    assert run_command(["cluster", "submit", PLAN, "--set", "hardware.name=a100-sxm-80gb"]) == 1
    assert "its GPUs are h100" in capsys.readouterr().out
    assert not slurm.run("squeue", "-h").strip()


def test_a_plan_for_some_devices_of_a_node_leaves_the_others(
    slurm: SlurmCluster, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [*replicas_alone(4), "--force"]
    script = str(said(capsys, "cluster", "submit", PLAN, "--partition", "gpu", *few)["script"])
    assert "#SBATCH --gres=gpu:h100:4\n" in script and "--exclusive" not in script and "--cpus-per-task=" in script


def test_a_job_that_ends_before_its_time_or_is_preempted_goes_on_from_its_checkpoint(
    slurm_with_accounting: SlurmCluster, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = slurm_with_accounting
    found = said(
        capsys, "cluster", "submit", PLAN, "--checkpoints", "kept", "--partition", "spot", "--name", "goes on; rm -rf",
        "--submit", "--launcher", "command", "--", "python3", "train.py", "--resume", "{run.checkpoint}",
    )  # fmt: skip
    job = str(found["job"])

    def has_begun(turn: int) -> bool:
        reason = slurm.run("squeue", "-h", "-j", job, "-o", "%r").strip()
        if reason == "BeginTime" or "held" in reason.casefold():
            slurm.begin_again(job)
        return len(begins(work)) == turn and len(list(work.glob("kept/*"))) > turn

    slurm.wait_for("the first turn", lambda: has_begun(1))
    slurm.run("srun", "-p", "gpu", "-N3", "--exclusive", "true")  # goes before jobs of spot
    slurm.wait_for("the second turn", lambda: has_begun(2))
    slurm.run("scancel", "--batch", "--signal=USR1", job)  # as Slurm does before the time of a job ends
    slurm.wait_for("the end of the second turn", lambda: job not in slurm.run("squeue", "-h", "-t", "R", "-o", "%A"))
    assert {file.name for file in work.glob("told-*")} == {"told-0", "told-1"}, "tasks of all nodes were told to save"
    slurm.wait_for("the third turn", lambda: has_begun(3))
    (work / "enough").touch()
    states = [each.state for each in follow_job(queue_of(Slurm()), job, lambda: False, 0.1)]
    assert states[-1] == "COMPLETED"
    first, second, third = begins(work)
    assert first == 0 < second < third

    capsys.readouterr()
    told = said(capsys, "cluster", "jobs", job)["jobs"][0]
    assert (told["state"], told["name"], told["turns"], told["gpus"]) == ("COMPLETED", "goes-on-rm--rf", 3, 16)
    assert told["ratio"]["computation.estimated_train_time_seconds"] > 0
    said(capsys, "cluster", "jobs")
    kept = said(capsys, "history", "list")["runs"]
    of_job = [run for run in kept if run["details"].get("job", {}).get("id") == job]
    assert len(of_job) == 1, "the history has it once, however often jobs are listed"
    assert of_job[0]["actual"]["computation.estimated_train_time_seconds"] == told["seconds"]


def test_jobs_that_were_submitted_from_here_are_ended_and_no_others(
    slurm: SlurmCluster, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--partition", "gpu", "--no-guard", "--launcher", "command", "--submit", "--", "sleep", "600")
    own = str(said(capsys, "cluster", "submit", PLAN, *asked)["job"])
    other = slurm.run("sbatch", "--parsable", "-o", "/dev/null", "-p", "cpu", "--wrap", "sleep 600").strip()
    slurm.wait_for("both jobs", lambda: set(slurm.run("squeue", "-h", "-t", "R", "-o", "%A").split()) == {own, other})
    with pytest.raises(Exception, match="was not submitted from here"):
        run_command(["cluster", "stop", "--slurm", other])
    assert run_command(["cluster", "stop", "--slurm", own]) in (None, 0)
    slurm.wait_for("its end", lambda: slurm.run("squeue", "-h", "-o", "%A").split() == [other])
    with pytest.raises(Exception, match=r"not known|over already"):
        run_command(["cluster", "stop", "--slurm", own])
