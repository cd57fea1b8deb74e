"""Processes of a run: found with all descendants, read where they can be, counted once when they end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.machine import Sampler, detected, missing
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.runs import processes
from capacity_tui.engine.runs.processes import ProcessTree, observe

Memory = namedtuple("Memory", "rss pss")
MIB = 1 << 20
PARENT_AND_CHILD = """
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-S", "-c", "import time; held = b'x' * (40 << 20); print('ready', flush=True); time.sleep(60)"],
    stdout=subprocess.PIPE,
)
child.stdout.readline()
print(child.pid, flush=True)
input()
os._exit(0)
"""


class Table:
    """Processes as a test says; stands for psutil's."""

    def __init__(self) -> None:
        self.entries: dict[int, dict[str, object]] = {}

    def start(self, pid: int, parent: int, cpu: float = 0.0, rss: int = MIB) -> None:
        self.entries[pid] = {"parent": parent, "cpu": cpu, "rss": rss, "waited": 0.0, "status": "running", "hides": {}}

    def work(self, pid: int, cpu: float) -> None:
        self.entries[pid]["cpu"] += cpu

    def end(self, pid: int, waited: bool = True) -> None:
        entry = self.entries.pop(pid)
        parent = self.entries.get(entry["parent"])
        if parent is not None and waited:
            parent["waited"] += entry["cpu"] + entry["waited"]
        for other in self.entries.values():
            if other["parent"] == pid:
                other["parent"] = 1


def process_table(patched: pytest.MonkeyPatch) -> Table:
    """Put an empty table in the place of the system's."""
    made = Table()

    class Process:
        def __init__(self, pid: int) -> None:
            self.pid = pid
            self._entry()

        def _entry(self) -> dict[str, object]:
            if self.pid not in made.entries:
                raise psutil.NoSuchProcess(self.pid)
            return made.entries[self.pid]

        def _told(self, method: str, value: object) -> object:
            hidden = self._entry()["hides"].get(method)
            if hidden is not None:
                raise hidden
            return value

        def oneshot(self) -> AbstractContextManager[None]:
            return nullcontext()

        def ppid(self) -> int:
            return self._told("ppid", self._entry()["parent"])

        def status(self) -> str:
            return self._told("status", self._entry()["status"])

        def name(self) -> str:
            return "worker"

        def memory_info(self) -> Memory:
            return self._told("memory_info", Memory(self._entry()["rss"], 0))

        def memory_full_info(self) -> Memory:
            return self._told("memory_full_info", Memory(self._entry()["rss"], self._entry()["rss"] // 2))

        def cpu_times(self) -> tuple[float, ...]:
            entry = self._entry()
            return self._told("cpu_times", (entry["cpu"], 0.0, entry["waited"], 0.0, 99.0))

        def num_threads(self) -> int:
            return self._told("num_threads", 2)

        def io_counters(self) -> tuple[int, ...]:
            return self._told("io_counters", (1, 2, 3, 4))

    patched.setattr(processes.psutil, "Process", Process)
    patched.setattr(processes.psutil, "pids", lambda: [1, *made.entries])
    return made


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    return process_table(monkeypatch)


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-S", "-c", PARENT_AND_CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with started:
        yield started
        started.kill()


def test_children_count_and_stay_known_when_their_parent_ends(family):
    child = int(family.stdout.readline())
    tree = ProcessTree(family.pid)
    first = tree.sample()
    assert {process.pid for process in first.processes} == {family.pid, child}
    assert first.rss_bytes.value > 40 * MIB
    assert first.cpu_seconds.value > 0
    assert first.threads.value >= 2
    assert first.cpu_percent.reason == "rates need two samples"
    family.stdin.write("\n")
    family.stdin.flush()
    family.wait()
    later = tree.sample()
    assert [process.pid for process in later.processes] == [child]
    assert later.cpu_seconds.value >= first.cpu_seconds.value
    os.kill(child, 9)


def test_a_child_that_was_waited_for_counts_once(table):
    table.start(10, 1, cpu=1.0)
    table.start(11, 10, cpu=2.0)
    times = iter((0.0, 10.0, 20.0))
    tree = ProcessTree(10, clock=lambda: next(times))
    assert tree.sample().cpu_seconds.value == 3.0
    table.work(11, 5.0)
    table.end(11)
    second = tree.sample()
    assert second.cpu_seconds.value == 8.0
    assert second.cpu_percent.value == 50.0


def test_what_an_orphan_used_stays_counted(table):
    table.start(10, 1, cpu=1.0)
    table.start(11, 10, cpu=2.0)
    table.start(12, 11, cpu=4.0)
    tree = ProcessTree(10)
    tree.sample()
    table.end(11)
    assert tree.sample().cpu_seconds.value == 7.0
    table.work(12, 1.0)
    assert tree.sample().cpu_seconds.value == 8.0
    table.end(12)
    last = tree.sample()
    assert last.cpu_seconds.value == 8.0
    assert [process.pid for process in last.processes] == [10]


def test_a_child_that_nobody_waited_for_yet_holds_no_memory(table):
    table.start(10, 1, rss=MIB)
    table.start(11, 10, cpu=2.0, rss=7 * MIB)
    tree = ProcessTree(10)
    tree.sample()
    table.entries[11]["status"] = psutil.STATUS_ZOMBIE
    sample = tree.sample()
    assert sample.rss_bytes.value == MIB
    assert sample.cpu_seconds.value == 2.0
    table.end(11)
    assert tree.sample().cpu_seconds.value == 2.0


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("memory_info", "rss_bytes"),
        ("cpu_times", "cpu_seconds"),
        ("num_threads", "threads"),
        ("io_counters", "read_bytes"),
        ("memory_full_info", "pss_bytes"),
    ],
)
@pytest.mark.parametrize("error", [psutil.AccessDenied(11), AttributeError("not on this system")])
def test_what_one_process_hides_is_missing_with_its_reason_and_never_less(table, method, field, error):
    table.start(10, 1)
    table.start(11, 10)
    table.entries[11]["hides"][method] = error
    sample = ProcessTree(10).sample()
    told = getattr(sample, field)
    assert told.value is None
    assert told.reason.endswith("(1 of 2 processes)")
    others = {"rss_bytes", "cpu_seconds", "threads", "read_bytes", "pss_bytes"} - {field}
    assert all(getattr(sample, other).value is not None for other in others)


def test_hidden_processes_are_said_to_be_hidden(table):
    table.start(10, 1)
    table.entries[10]["hides"]["ppid"] = psutil.AccessDenied(10)
    sample = ProcessTree(10).sample()
    assert sample.processes == ()
    assert sample.rss_bytes.reason == sample.cpu_seconds.reason == processes.HIDDEN


def test_a_run_that_is_over_holds_nothing_but_has_used_what_it_used(table):
    table.start(10, 1, cpu=3.0)
    tree = ProcessTree(10)
    tree.sample()
    assert tree.alive
    table.end(10)
    last = tree.sample()
    assert not tree.alive
    assert last.rss_bytes.reason == processes.GONE
    assert last.cpu_seconds.value == 3.0


@given(steps=st.lists(st.tuples(st.sampled_from(["start", "work", "end", "look"]), st.integers(0, 7)), max_size=30))
def test_totals_never_run_back_nor_exceed_what_was_used(steps):
    with pytest.MonkeyPatch.context() as patched:
        table = process_table(patched)
        table.start(10, 1)
        tree, used, before = ProcessTree(10), 0.0, 0.0
        tree.sample()
        for step, number in steps:
            pids = sorted(table.entries)
            pid = pids[number % len(pids)]
            if step == "start":
                table.start(max(pids) + 1, pid)
            elif step == "work":
                table.work(pid, 1.0)
                used += 1.0
            elif step == "end" and pid != 10:
                table.end(pid)
            seen = tree.sample().cpu_seconds.value if step == "look" else before
            assert before <= seen <= used
            before = seen


def gpu(holders) -> GpuSample:
    known = detected(5, "driver")
    return GpuSample(0, known, known, known, known, known, detected((), "driver"), holders=holders)


@pytest.mark.parametrize(
    ("holders", "expected"),
    [
        (lambda own: detected(((own, 70), (1, 10)), "driver"), 70),
        (lambda own: detected(((1, 10),), "driver"), 0),
        (lambda own: detected(((own, None),), "driver"), "the driver tells no amounts"),
        (lambda own: detected(((999_999_999, 70),), "driver"), "another container"),
        (lambda own: detected((), "driver"), "names no process"),
        (lambda own: missing("driver", "no permission"), "no permission"),
    ],
)
def test_gpu_memory_of_a_run_is_what_its_processes_hold(monkeypatch, holders, expected):
    sampler = Sampler()
    gpus = detected((gpu(holders(os.getpid())),), "driver")
    monkeypatch.setattr(Sampler, "_gpu_samples", lambda self, now: gpus)
    (held,) = observe(ProcessTree(os.getpid()), sampler).gpu_memory_bytes
    assert held.value == expected if isinstance(expected, int) else expected in held.reason
