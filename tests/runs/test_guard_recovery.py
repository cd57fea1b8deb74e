"""Guarded runs that meet trouble: what they are started again with, and when they are not."""

from __future__ import annotations

import os
import signal
import sys
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard import Listeners, begin, new_order, supervisor
from capacity_tui.engine.runs.guard.failures import Kernel, KernelWatch
from capacity_tui.engine.runs.guard.pauses import Pause, Supply
from capacity_tui.engine.solve import answer

PLAN = """
task: train
model: {name: llama-3.2-1b}
training: {seq_len: 4096, micro_batch: 4, global_batch: 64, steps: 200}
hardware: {name: h100-sxm-80gb, devices: 1}
watch: {interval: 0.2, nan: stop}
recovery: {max_restarts: 2, out_of_memory: [micro_batch, checkpointing], unstable: accumulate, hang: restart}
"""
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24 GiB"
GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@pytest.fixture(scope="module")
def estimated():
    return answer(plan_from_text(PLAN, "plan.yaml"))


class Guarded:
    """A run under guard, with all that was told of it."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.setenv("CAPACITY_TUI_STATE", str(folder / "state"))
        monkeypatch.chdir(folder)
        self.told, self.output, self.entries = [], b"", []

    def run(self, estimated, code, *words, **options):
        def output(_, data):
            self.output += data

        told = Listeners(self.told.append, lambda _, __: None, output, self.entries.append)
        order = new_order([sys.executable, "-c", code, *words], estimated.plan, **options)
        return begin(order, estimated, told).run()

    def events(self, kind):
        return [event for event in self.told if event["event"] == kind]


@pytest.fixture
def guarded(tmp_path, monkeypatch):
    return Guarded(tmp_path, monkeypatch)


def test_out_of_memory_halves_the_micro_batch_and_goes_on_from_the_newest_checkpoint(guarded, estimated, tmp_path):
    with zipfile.ZipFile(tmp_path / "state-7.pt", "w") as file:
        file.writestr("state", "7")
    (tmp_path / "state-8.pt").write_bytes(b"PK\x03\x04 cut short")
    code = f"import sys; print(sys.argv[1:]); sys.argv[1] == '4' and sys.exit({FULL!r})"
    words = ["{training.micro_batch}", "{run.accumulation}", "{training.checkpointing}", "{run.checkpoint}"]
    assert guarded.run(estimated, code, *words, checkpoints=tmp_path) == 0
    first, second = guarded.output.decode().splitlines()[0], guarded.output.decode().splitlines()[-1]
    assert first == str(["4", "16", "none", str(tmp_path / "state-7.pt")])
    assert second == str(["2", "32", "none", str(tmp_path / "state-7.pt")])
    (failure,) = guarded.events("failure")
    assert (failure["kind"], failure["where"], failure["device"]) == ("out_of_memory", "device", 0)
    (step,) = guarded.events("step")
    assert step["change"] == {"training.micro_batch": 2}
    after, before = (step["figures"]["memory.reserved_bytes"][when] for when in ("after", "before"))
    assert after < before
    (entry,) = guarded.entries
    assert entry.details["restarts"] == 1
    assert entry.plan["training"]["micro_batch"] == 2
    assert "step" in [event["event"] for event in entry.details["events"]]


def test_a_changed_value_that_nothing_takes_is_announced(guarded, estimated):
    code = f"import sys; sys.argv[1] == '1' and sys.exit({FULL!r})"
    assert guarded.run(estimated, code, "{run.attempt}") == 0
    (event,) = guarded.events("values_not_taken")
    assert event["keys"] == ["training.micro_batch"]
    assert event["variables"] == ["CAPACITY_TUI_TRAINING_MICRO_BATCH"]


def test_a_disk_that_has_no_room_for_another_start_keeps_the_exit_code(guarded, estimated, tmp_path):
    code = (
        "import os, sys\n"
        "folder = os.path.join(sys.argv[1], 'attempt-2')\n"
        f"open(folder, 'w').close(); sys.exit({FULL!r})\n"
    )
    assert guarded.run(estimated, code, "{run.folder}", "{training.micro_batch}") == 1
    assert "attempt-2" in guarded.events("no_step")[-1]["reason"]
    assert guarded.events("end")[0]["exit_code"] == 1


def test_restarts_are_bounded_and_the_last_exit_code_stays(guarded, estimated):
    assert guarded.run(estimated, f"import sys; print({FULL!r}, file=sys.stderr); sys.exit(9)") == 9
    assert len(guarded.events("started")) == 3
    assert guarded.events("end")[0]["restarts"] == 2
    (last,) = guarded.events("no_step")
    assert last["reason"] == "not started again: recovery.max_restarts is 2"


def test_an_end_of_which_nothing_is_known_is_left_alone(guarded, estimated):
    assert guarded.run(estimated, "raise SystemExit(5)") == 5
    assert [event["event"] for event in guarded.told] == ["started", "end"]


@pytest.mark.parametrize("number", [9, 15])
def test_a_killed_run_goes_on_from_its_newest_complete_checkpoint(guarded, estimated, tmp_path, monkeypatch, number):
    monkeypatch.setattr(KernelWatch, "report", lambda _: Kernel(oom_kills=0))
    with zipfile.ZipFile(tmp_path / "state-7.pt", "w") as file:
        file.writestr("state", "7")
    code = f"import os, sys; sys.argv[1] == '1' and os.kill(os.getpid(), {number}); print(sys.argv[2])"
    assert guarded.run(estimated, code, "{run.attempt}", "{run.checkpoint}", checkpoints=tmp_path) == 0
    (failure,) = guarded.events("failure")
    assert failure["kind"] == "killed"
    assert guarded.output.decode().splitlines()[-1] == str(tmp_path / "state-7.pt")
    assert len(guarded.events("started")) == 2


@pytest.mark.parametrize(
    ("words", "has_checkpoint", "reason"),
    [(["{run.checkpoint}"], False, "is complete"), ([], True, "by hand from"), ([], None, "--checkpoints")],
)
def test_a_killed_run_that_cannot_go_on_says_why_not(
    guarded, estimated, tmp_path, monkeypatch, words, has_checkpoint, reason
):
    monkeypatch.setattr(KernelWatch, "report", lambda _: Kernel(oom_kills=0))
    if has_checkpoint:
        with zipfile.ZipFile(tmp_path / "state-7.pt", "w") as file:
            file.writestr("state", "7")
    code = "import os, signal; os.kill(os.getpid(), 9)"
    folder = None if has_checkpoint is None else tmp_path
    assert guarded.run(estimated, code, *words, checkpoints=folder) == 137
    (event,) = guarded.events("no_step")
    assert reason in event["reason"]


def test_what_cannot_be_started_says_why(guarded, estimated):
    with pytest.raises(CapacityError, match="--checkpoints DIR"):
        new_order(["echo", "{run.checkpoint}"], estimated.plan)
    with pytest.raises(CapacityError, match="no-such-command cannot be started") as error:
        begin(new_order(["no-such-command"], estimated.plan), estimated, None)
    assert error.value.exit_code == 127
    assert not (Path.cwd() / "state").exists()


def test_a_loss_that_is_no_number_ends_the_run_and_all_that_it_started(guarded, estimated):
    code = (
        "import subprocess, sys, time\n"
        "if sys.argv[1] == '1':\n"
        "    left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        "    print('left', left.pid, flush=True)\n"
        "    for step in range(600):\n"
        "        print('step', step, 'loss', 'nan' if step > 3 else 2, flush=True)\n"
        "        time.sleep(.1)\n"
    )
    assert guarded.run(estimated, code, "{run.attempt}") == 0
    (failure,) = guarded.events("failure")
    assert failure["kind"] == "unstable"
    assert guarded.events("step")[0]["change"]["training.global_batch"] == 128
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(int(guarded.output.split()[1])).status() == psutil.STATUS_ZOMBIE


def test_on_battery_a_run_starts_with_fewer_threads(guarded, estimated, monkeypatch):
    monkeypatch.setattr(supervisor, "supply_now", lambda: Supply(False, 0.9))
    plan = edited(estimated.plan, {"recovery.battery.threads": 1}).plan
    on_battery = replace(estimated, resolved=replace(estimated.resolved, plan=plan))
    assert guarded.run(on_battery, "import os; print(os.environ['OMP_NUM_THREADS'])") == 0
    assert guarded.output == b"1\n"
    assert "on battery: 1 of" in guarded.events("battery")[0]["reason"]


def test_a_trainer_asks_for_a_smaller_batch_before_memory_runs_out(guarded, estimated):
    code = (
        "import sys, time\n"
        "from types import SimpleNamespace\n"
        "from capacity_tui.engine.runs.guard.callback import GuardCallback\n"
        "first = sys.argv[1] == '1'\n"
        "callback = GuardCallback(memory=lambda: 0.99 if first else 0.5)\n"
        "control = SimpleNamespace(should_save=False, should_training_stop=False)\n"
        "with callback.saving(): time.sleep(.05)\n"
        "for step in range(5):\n"
        "    callback.on_step_begin(None, None, control)\n"
        "    callback.on_step_end(None, SimpleNamespace(global_step=step), control)\n"
        "    if control.should_training_stop: break\n"
        "print(step, callback.micro_batch, callback.accumulation, control.should_save, callback.problem)\n"
    )
    assert guarded.run(estimated, code, "{run.attempt}") == 0
    assert guarded.output.decode().splitlines() == ["1 2 32 True ", "4 2 32 False "]
    assert guarded.events("save_interval")[0]["seconds"] > 0
    assert guarded.events("restart")[0]["micro_batch"] == 2
    assert guarded.events("step")[0]["trouble"] == "memory_pressure"


@pytest.fixture
def small_group():
    """A control group of 100 MB, where one may be made."""
    root = next((root for root in GROUPS if (root / "cgroup.procs").exists()), None)
    group = None if root is None else root / f"guard-{os.getpid()}"
    limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max")
    try:
        group.mkdir()
        for name, text in zip(limits, ("104857600", "104857600", "104857600", "0"), strict=True):
            with suppress(OSError):
                (group / name).write_text(text)
        if not any((group / name).exists() for name in limits):
            raise OSError("no limit of memory")
    except (OSError, AttributeError) as error:
        pytest.skip(f"control groups cannot be written here: {error}")
    yield group
    with suppress(OSError):
        group.rmdir()


def test_a_process_that_the_kernel_kills_for_memory_is_started_again_with_less(guarded, estimated, small_group):
    on_processor = answer(edited(estimated.plan, {"hardware": {"name": "cpu-8c-3.5ghz-baseline"}}).plan)
    code = (
        "import os, sys, time\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "time.sleep(.5)\n"
        "held = [b'x' * (30 << 20) for _ in range(int(sys.argv[2]))]\n"
        "print('held', len(held))\n"
    )
    words = [str(small_group / "cgroup.procs"), "{training.micro_batch}"]
    assert guarded.run(on_processor, code, *words) == 0
    (failure,) = guarded.events("failure")
    assert (failure["kind"], failure["where"]) == ("out_of_memory", "host")
    assert guarded.output == b"held 1\n"  # by the estimate, two would take more than the machine has


def test_what_was_halted_goes_on_when_whoever_halted_it_is_killed():
    with psutil.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as worker:
        halting = os.fork()
        if not halting:
            Pause([worker.pid])
            time.sleep(60)
        until = time.monotonic() + 60
        while worker.status() != psutil.STATUS_STOPPED and time.monotonic() < until:
            time.sleep(0.01)
        assert worker.status() == psutil.STATUS_STOPPED
        os.kill(halting, signal.SIGKILL)
        os.waitpid(halting, 0)
        while worker.status() == psutil.STATUS_STOPPED and time.monotonic() < until:
            time.sleep(0.01)
        assert worker.status() != psutil.STATUS_STOPPED
        worker.kill()
