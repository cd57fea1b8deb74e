"""Scripts of jobs: what they ask for, what they quote, and what is refused before any queue sees it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.nodes.jobs import SlurmOptions
from capacity_tui.engine.nodes.jobs.job_request import JobRequest, Launch, duration_of, gpus_of_gres, seconds_of
from capacity_tui.engine.nodes.jobs.partitions import PartitionCost, is_same_device, read_prices
from capacity_tui.engine.nodes.jobs.proposal import Offer, hosts_proposal, in_order
from capacity_tui.engine.nodes.jobs.slurm_jobs import batch_script


def request(**changes: object) -> JobRequest:
    values: dict[str, object] = {
        "name": "run", "device": "h100-sxm-80gb", "is_on_gpus": True, "nodes": 2, "per_node": 8, "whole_nodes": True
    }  # fmt: skip
    return JobRequest(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2-00:00:00", 172800), ("1:30:00", 5400), ("12:30", 750), ("30", 1800), ("1-12", 129600), ("UNLIMITED", None)],
)
def test_durations_are_read_as_slurm_means_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_a_duration_is_never_shorter_than_it_was() -> None:
    assert [seconds_of(duration_of(seconds)) for seconds in (1, 60, 3661, 90_061)] == [60, 60, 3720, 90_120]


def test_gpus_are_counted_by_type() -> None:
    assert gpus_of_gres("gpu:h100:8(S:0-1),gpu:a100:2,shard:16") == {"h100": 8, "a100": 2}
    assert gpus_of_gres("gres/gpu:4") == {"": 4} and gpus_of_gres("(null)") == {}


@pytest.mark.parametrize(
    ("kind", "device", "same"),
    [
        ("h100", "h100-sxm-80gb", True),
        ("nvidia_h100_80gb_hbm3", "h100-sxm-80gb", True),
        ("a100", "h100-sxm-80gb", False),
        ("a100_40gb", "a100-sxm-80gb", False),
        ("mi300x", "mi300x", True),
        ("nvidia_geforce_rtx_4090", "rtx-4090", True),
        ("4090", "rtx-4090", True),
        ("rtx4090", "rtx-4090", True),
        ("nvidia_rtx_6000_ada_generation", "rtx-6000-ada", True),
        ("nvidia_a100-sxm4-80gb", "a100-sxm-80gb", True),
        ("h100", "h100-pcie-80gb", True),
        ("nvidia_h100_pcie", "h100-sxm-80gb", False),
        ("nvidia_h100_nvl", "h100-sxm-80gb", False),
        ("nvidia_h100_80gb_hbm3_1g.10gb", "h100-sxm-80gb", False),
        ("l40", "l40s", False),
        ("gpu", "h100-sxm-80gb", False),
    ],
)
def test_types_as_administrators_write_them_are_devices_of_the_catalogue(kind: str, device: str, same: bool) -> None:
    assert is_same_device(kind, device) is same


def test_strange_words_stay_single_words_of_a_script_that_a_shell_can_read() -> None:
    launch = Launch(("train.py", "--note", "it's; $(rm -rf /) `x`"), "torchrun", checkpoints=Path("my runs"))
    script = batch_script(
        request(checkpoints=Path("my runs")), launch, SlurmOptions(), "a: 1\nEND_OF_PLAN\n", "gpu", "h100"
    )
    assert "'it'\"'\"'s; $(rm -rf /) `x`'" in script and "--checkpoints 'my runs'" in script
    assert "<<'END_OF_PLAN_'" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


@pytest.mark.parametrize("options", [{"account": "a b"}, {"qos": "x\n#SBATCH --uid=0"}, {"more": ("rm -rf",)}])
def test_what_would_be_another_line_of_a_script_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(CapacityError):
        SlurmOptions(**options)  # type: ignore[arg-type]


def test_a_job_longer_than_its_partition_allows_comes_back_as_often_as_it_takes() -> None:
    long = request(limit_seconds=100_000.0, checkpoints=Path("kept"), most_restarts=2)
    script = batch_script(long, Launch(("train.py",), "torchrun"), SlurmOptions(), "", "gpu", "", 36_000.0)
    assert "--time=0-10:00:00" in script and "-le 4 ]" in script and long.turns(36_000.0) == 3
    assert long.turns(100_000.0) == 1 and long.turns(99_999.0) == 2, "each turn starts anew and saves"
    assert "--signal=B:USR1@300" in script
    short = batch_script(long, Launch(("train.py",), "torchrun"), SlurmOptions(), "", "gpu", "", 240.0)
    assert "--signal=B:USR1@120" in short, "it is told half way, not before it began"
    assert "scontrol requeue" not in batch_script(request(), Launch(("train.py",), "torchrun"), SlurmOptions(), "")


def test_hosts_get_a_script_with_a_rank_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is run with an `ssh` that is a shell of this machine, and a `torchrun` that says what it is given."""
    for name, text in {"ssh": 'shift 5; exec "$@"', "torchrun": 'echo "$@" >> said'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    proposal = hosts_proposal(request(), Launch(("train.py", "a b"), "torchrun", False), ("root@n1", "n2", "n3"))
    work = tmp_path / "my work"
    work.mkdir()
    subprocess.run(["bash", "-s"], input=proposal.script, text=True, check=True, cwd=work, timeout=20)
    said = sorted((work / "said").read_text().splitlines())
    for rank, line in enumerate(said):
        assert f"--node-rank={rank} --master-addr=n1 --master-port=29500 train.py a b" in line
    assert len(said) == 2 and "not used: n3" in proposal.remarks
    end = next(line for line in proposal.script.splitlines() if "<<'" in line).split("'")[1]
    hostile = Launch(("train.py", f"a\n{end}\ntouch pwned"), "torchrun", False)
    script = hosts_proposal(request(), hostile, ("n1", "n2")).script
    subprocess.run(["bash", "-s"], input=script, text=True, check=True, cwd=work, timeout=20)
    assert (work / "said").read_text().count("touch pwned") == 2
    assert not (work / "pwned").exists()
    with pytest.raises(CapacityError, match="1 hosts for 2 nodes"):
        hosts_proposal(request(), Launch(("train.py",), "torchrun", False), ("n1",))


def test_what_was_started_on_hosts_is_told_to_end_when_the_script_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an `ssh` that is a shell of this machine in a session of its own, as on another one."""
    (tmp_path / "ssh").write_text('#!/bin/bash\nshift 5; exec setsid --wait "$@"\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "train.py").write_text(
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path(f'saved-{os.getpid()}').touch(), os._exit(0)))\n"
        "pathlib.Path(f'began-{os.getpid()}').touch()\n"
        "time.sleep(60)\n"
    )
    proposal = hosts_proposal(request(), Launch((sys.executable, "train.py"), "command", False), ("n1", "n2"))
    (tmp_path / "run.sh").write_text(proposal.script)
    script = subprocess.Popen(["bash", "run.sh"], cwd=tmp_path)
    until = time.monotonic() + 20
    while len(list(tmp_path.glob("began-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    script.send_signal(signal.SIGINT)
    script.wait(20)
    assert len(list(tmp_path.glob("saved-*"))) == 2


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (("python", "train.py", "-u"), "train.py -u"),
        (("python3", "-m", "mine.train"), "-m mine.train"),
        (("python", "-u", "train.py"), "--no-python python -u train.py"),
        (("python3",), "--no-python python3"),
        (("./train",), "--no-python ./train"),
    ],
)
def test_torchrun_is_given_what_it_takes(words: tuple[str, ...], runs: str) -> None:
    assert Launch(words, "torchrun").torchrun(request(), ["--standalone"]).endswith(f" --standalone {runs}")


def test_prices_that_are_none_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("gpu: 98\nspot: {usd_per_nod_hour: 3}\n")
    with pytest.raises(CapacityError, match=r"prices.yaml:2.*did you mean usd_per_node_hour"):
        read_prices(file)
    file.write_text("gpu: -1\n")
    with pytest.raises(CapacityError, match="0 or more"):
        read_prices(file)


def test_some_seconds_between_answers_of_a_scheduler_do_not_choose_the_dearer_partition() -> None:
    def offer(name: str, start: str | None, hourly: float | None, why_not: str = "") -> Offer:
        return Offer(name, request(), "", why_not, start, "", None, 1, PartitionCost(hourly, (), ""))

    offers = [
        offer("gone", None, None, "no GPUs"),
        offer("night", "2026-11-30T22:00:00", 1.0),
        offer("gpu", "2026-11-30T12:00:59", 98.0),
        offer("spot", "2026-11-30T12:01:01", 48.0),
        offer("unknown", None, 2.0),
    ]
    assert [one.partition for one in in_order(offers)] == ["spot", "gpu", "night", "unknown", "gone"]
