"""Sampling: grids, timing, files that survive anything, and real processes for collectives."""

import importlib.util
import json
import threading
import time
from pathlib import Path

import pytest

from capacity_tui.engine.errors import MissingPartError, StorageError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.runs.sampling import (
    KERNELS,
    read_samples,
    sample_files,
    sample_kernels,
    sampling_backend,
    sampling_grid,
)
from capacity_tui.engine.runs.sampling.kernels import KernelCase, NumpyBackend, Scale, kernel_grid, scales
from capacity_tui.engine.runs.sampling.samples import HostClock, open_samples, summary, time_kernel

EVERY = frozenset(KERNELS)
TINY = Scale((1, 8), (8, 16), (8,), (4,), (8,), (16,), (64,))
HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")


def tiny_grid():
    return kernel_grid(TINY, ("fp32",), NumpyBackend.kernels)


def run(folder, cases=None, cancelled=None):
    found = sample_kernels(
        NumpyBackend(), "cpu-test", cases or tiny_grid(), limit_seconds=0.001, folder=folder, cancelled=cancelled
    )
    return list(found)


def only_file(folder: Path) -> Path:
    (path,) = sample_files("cpu-test", folder)
    return path


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_grid_is_always_the_same_and_the_quick_one_smaller(kind):
    whole, quick = scales()[kind], scales()[f"{kind}_quick"]
    grid = kernel_grid(whole, ("fp32",), EVERY)
    assert grid == kernel_grid(whole, ("fp32",), EVERY)
    assert len({case.key for case in grid}) == len(grid)
    assert len(kernel_grid(quick, ("fp32",), EVERY)) < len(grid) / 2
    assert {case.kernel for case in grid} == EVERY


def test_work_of_kernels():
    gemm = KernelCase("gemm", "forward", "bf16", {"m": 2, "n": 3, "k": 5})
    assert (gemm.flops, gemm.bytes) == (60.0, 2 * (10 + 15 + 6))
    attention = KernelCase("attention", "forward", "fp32", {"batch": 1, "heads": 2, "seq": 4, "head_dim": 8})
    assert attention.flops == 4 * 2 * 4 * 4 * 8 / 2
    assert KernelCase("optimizer", "forward", "fp32", {"elements": 10}).bytes == 21 * 4 * 10
    assert KernelCase("copy", "forward", "fp32", {"elements": 10}).bytes == 80


def test_sampled_traffic_is_counted_as_estimates_count_it():
    sizes = {"layers": 2, "hidden": 256, "heads": 4, "vocab": 1024}
    training = {"seq_len": 64, "micro_batch": 2, "precision": "fp32", "optimizer": "adamw"}
    model = {"name": "transformer_decoder", "spec": sizes}
    plan = Plan.model_validate({"model": model, "training": training, "hardware": {"name": "h100-sxm-80gb"}})
    work = estimate_plan(plan).estimate.work
    moved = {each.name: float(each.bytes) for phase in work.phases for each in phase.operators}
    loss = KernelCase("loss", "forward", "fp32", {"rows": 128, "width": 1024})
    assert moved["loss"] == pytest.approx(loss.bytes)
    elements = round(float(work.facts.parameters))
    assert moved["optimizer"] == pytest.approx(KernelCase("optimizer", "forward", "fp32", {"elements": elements}).bytes)


def test_timing_tells_median_best_and_spread():
    timing = summary([1.0, 1.0, 2.0, 1.0, 1.0], 10)
    assert (timing.seconds, timing.best, timing.spread, timing.runs) == (1.0, 1.0, 0.0, 10)
    slept = time_kernel(lambda: time.sleep(0.002), HostClock(), 0.05)
    assert slept is not None
    assert 0.002 <= slept.best <= slept.seconds


def test_one_thread_is_charged_for_its_own_work_alone():
    assert HostClock(1).seconds(lambda: time.sleep(0.02), 1) < 0.02 <= HostClock(2).seconds(lambda: time.sleep(0.02), 1)


def test_samples_are_written_with_date_and_software(tmp_path):
    told = run(tmp_path)
    assert [step.done for step in told] == list(range(1, len(tiny_grid()) + 1))
    opened = read_samples(only_file(tmp_path))
    assert opened.software["numpy"]
    timed = [step.sample for step in told if step.sample is not None]
    assert opened.samples == tuple(timed)
    assert all(sample.seconds >= sample.best > 0 and len(sample.date) == 10 for sample in timed)


def test_what_was_cancelled_goes_on_where_it_stopped(tmp_path):
    cancelled = threading.Event()
    first = []
    for step in sample_kernels(
        NumpyBackend(), "cpu-test", tiny_grid(), limit_seconds=0.001, folder=tmp_path, cancelled=cancelled
    ):
        first.append(step)
        if len(first) == 3:
            cancelled.set()
    assert len(first) == 3
    rest = run(tmp_path)
    assert rest[0].done == 4
    assert len(read_samples(only_file(tmp_path)).samples) == len([s for s in (*first, *rest) if s.sample])


def test_cancelling_inside_a_kernel_keeps_nothing_of_it():
    cancelled = threading.Event()
    cancelled.set()
    assert time_kernel(lambda: None, HostClock(), 1.0, cancelled) is None


@pytest.mark.parametrize("damage", ["{half a li", "\x00\x00\x00", '{"name":"gemm","seconds":-1}', "[]"])
def test_a_damaged_file_is_kept_aside_and_the_rest_used(tmp_path, damage):
    run(tmp_path)
    path = only_file(tmp_path)
    whole = read_samples(path)
    path.write_text(path.read_text() + damage)
    rescued = read_samples(path)
    assert rescued.samples == whole.samples
    assert rescued.software == whole.software
    assert rescued.set_aside is not None
    assert damage in rescued.set_aside.read_text()
    assert read_samples(path).set_aside is None
    assert sample_files("cpu-test", tmp_path) == (path,)


def test_an_empty_file_is_damaged_too(tmp_path):
    path = tmp_path / "numpy.jsonl"
    path.write_text("")
    assert read_samples(path).set_aside is not None


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "samples").write_text("in the way")
    with pytest.raises(StorageError):
        open_samples(tmp_path / "samples" / "a.jsonl", {})


def test_numpy_runs_without_torch_and_a_gpu_needs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert sampling_backend("cpu").name == "numpy"
    for asked in (("gpu", None), ("cpu", "torch")):
        with pytest.raises(MissingPartError) as caught:
            sampling_backend(*asked)
        assert caught.value.exit_code == 3
        assert "pip install " in caught.value.hint
        assert "torch" in caught.value.hint.rpartition("install ")[2]


@needs_torch
def test_torch_runs_every_kernel_on_a_cpu(tmp_path):
    backend = sampling_backend("cpu", "torch")
    cases = kernel_grid(TINY, ("fp32",), EVERY)
    told = list(sample_kernels(backend, "cpu-test", cases, limit_seconds=0.001, folder=tmp_path))
    assert {step.sample.name for step in told if step.sample} == EVERY
    assert read_samples(only_file(tmp_path)).context_bytes > 2**20
    assert len(sampling_grid(backend, True)) < len(sampling_grid(backend, False))


class WithTypes(NumpyBackend):
    dtypes = ("fp32", "bf16", "fp16")


def test_a_small_grid_computes_in_the_types_a_processor_has_units_for():
    def computed(*units):
        return {case.kernel for case in sampling_grid(WithTypes(), True, units=units) if case.dtype == "bf16"}

    assert computed("fp64", "fp32") == set()
    assert computed("fp32", "bf16") == {"gemm"}
    assert {case.dtype for case in sampling_grid(WithTypes(), True, units=("bf16",))} == {"fp32", "bf16"}


@needs_torch
def test_collectives_run_between_real_processes(tmp_path):
    from capacity_tui.engine.runs.sampling import COLLECTIVES, collective_groups, sample_collectives

    groups = collective_groups("cpu", 2)
    told = list(sample_collectives("cpu-test", groups, (4096,), folder=tmp_path, timeout_seconds=60))
    assert [step.done for step in told] == [1, 2, 3, 4, 5]
    assert {step.sample.name for step in told if step.sample} <= set(COLLECTIVES)
    assert all(step.sample.shape == {"bytes": 4096, "group": 2} for step in told if step.sample)


@needs_torch
def test_no_rank_outlives_cancelling(tmp_path):
    import psutil

    from capacity_tui.engine.runs.sampling import Group, sample_collectives

    cancelled = threading.Event()
    cancelled.set()
    assert not list(sample_collectives("cpu-test", (Group(2, "gloo"),), (4096,), folder=tmp_path, cancelled=cancelled))
    assert not [child for child in psutil.Process().children() if "rank" in " ".join(child.cmdline())]


def test_each_line_stands_alone(tmp_path):
    run(tmp_path)
    lines = only_file(tmp_path).read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
