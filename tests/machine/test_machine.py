"""Constants of a machine: fitted to samples and runs, stored, and used by estimates for this machine alone."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import cluster_of_machine, device_key, with_measured
from capacity_tui.engine.errors import HardwareError, PlanError, StorageError
from capacity_tui.engine.estimate.timing import attention_rate, gemm_rate
from capacity_tui.engine.machine import FitError, detect, read_constants
from capacity_tui.engine.numeric import Curve
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.runs.history import History
from capacity_tui.engine.runs.sampling import (
    Sample,
    SampleFile,
    fit_runs,
    fit_samples,
    keep_run,
    read_runs,
    run_entry,
    user_run,
    write_measured,
)
from capacity_tui.engine.runs.sampling.calibration import chosen_files
from capacity_tui.engine.runs.sampling.kernels import KernelCase, kernel_grid, scales
from capacity_tui.engine.solve import answer

PLAN = {
    "model": {"name": "transformer_decoder", "spec": {"layers": 4, "hidden": 256, "heads": 4, "vocab": 1024}},
    "training": {"seq_len": 256, "micro_batch": 4, "global_batch": 4, "precision": "fp32"},
    "hardware": {"name": "detected"},
}


@pytest.fixture(scope="module")
def machine():
    return replace(detect(), accelerators=(), measured=())


@pytest.fixture(scope="module")
def device(machine):
    return cluster_of_machine(machine, load_catalog()).device


def sample_of(case: KernelCase, seconds: float) -> Sample:
    return Sample(case.kernel, case.step, case.dtype, case.shape, seconds, seconds, 0.0, 5, "2026-01-02")


def ideal(device, share=0.5, half=100.0, stream=0.6):
    """Samples of a machine that does exactly what the formulas say."""
    peak = device.peaks["fp32"]
    samples = []
    for case in kernel_grid(scales()["cpu"], ("fp32",), frozenset({"gemm", "attention", "norm", "activation", "copy"})):
        shape = case.shape
        if case.kernel == "gemm":
            rate = gemm_rate(shape["m"], shape["n"], shape["k"], peak, share, device.units, 0.2, 32.0 / 2)
            seconds = max(case.flops / rate, case.bytes / (device.bandwidth * stream))
        elif case.kernel == "attention":
            backward = case.step == "backward"
            length, width = (2.0 * half, 8.0) if backward else (half, 16.0)
            seconds = case.flops / attention_rate(
                shape["seq"], shape["head_dim"], peak, 0.24 if backward else 0.3, length, width
            )
        else:
            seconds = case.bytes / (device.bandwidth * (stream if case.kernel == "copy" else 0.4))
        samples.append(sample_of(case, float(seconds)))
    return samples


@pytest.fixture(scope="module")
def measured(device):
    return fit_samples(device, [SampleFile(None, {"torch": "2"}, 3e8, tuple(ideal(device)))])


def test_constants_are_found_again(device, measured):
    assert measured.gemm["fp32"] * float(device.efficiency.sustained) == pytest.approx(0.5, rel=0.02)
    assert measured.constants["stream"] == pytest.approx(0.6, rel=0.01)
    assert measured.constants["elementwise"] == pytest.approx(0.4, rel=0.01)
    assert measured.constants["attention_half_length"] == 100
    assert measured.constants["attention_half_width"] == 16
    assert measured.constants["attention_reach"] == pytest.approx(0.3, rel=0.01)
    assert measured.constants["attention_backward_half_length"] == 200
    assert measured.constants["attention_backward_reach"] == pytest.approx(0.24, rel=0.01)
    assert measured.constants["context_bytes"] == 3e8
    errors = {error.name: error for error in measured.errors}
    assert errors["gemm.fp32"].median < 0.01
    assert errors["gemm.fp32"].interpolated is not None
    assert measured.date == "2026-01-02"


def test_unsteady_medians_give_way_to_the_fastest(device):
    disturbed = [replace(sample, seconds=3 * sample.seconds, spread=0.9) for sample in ideal(device)]
    found = fit_samples(device, [SampleFile(None, {}, None, tuple(disturbed))])
    assert found.gemm["fp32"] * float(device.efficiency.sustained) == pytest.approx(0.5, rel=0.02)


def test_too_few_samples_are_refused(device):
    with pytest.raises(HardwareError, match="too few samples"):
        fit_samples(device, [SampleFile(None, {}, None, ())])


def test_torch_counts_before_numpy(tmp_path):
    numpy, torch, gloo = (
        SampleFile(tmp_path / name, software)
        for name, software in (("a", {"numpy": "2"}), ("b", {"torch": "2"}), ("c", {"collectives": "gloo"}))
    )
    assert chosen_files([numpy, torch, gloo]) == (torch, gloo)
    assert chosen_files([numpy]) == (numpy,)


def test_what_is_written_is_read_again(tmp_path, measured):
    path = write_measured(measured, tmp_path)
    assert read_constants(path) == measured


@pytest.mark.parametrize(
    ("sizes", "ratios"),
    [((0, 1), (1, 1)), ((-1, 1), (1, 1)), ((1, math.inf), (1, 1)), ((2, 1), (1, 1)), ((1, 2), (1, math.nan))],
)
def test_a_curve_that_no_machine_has_is_refused(tmp_path, measured, sizes, ratios):
    path = write_measured(measured, tmp_path)
    curve = {"name": "gemm.fp32", "sizes": sizes, "ratios": ratios}
    path.write_text(json.dumps({**json.loads(path.read_text()), "curves": [curve]}))
    with pytest.raises(StorageError, match=r"gemm\.fp32"):
        read_constants(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"device": "x"}', "\x00"])
def test_a_damaged_file_is_refused_with_a_remedy(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(StorageError, match="calibrate"):
        read_constants(path)


def test_detection_survives_damaged_constants(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path))
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "cpu.json").write_text("{}")
    found = detect()
    assert found.measured == ()
    trouble = next(probe for probe in found.troubles if probe.name == "measured constants")
    assert "cpu.json: measured constants are damaged" in trouble.detail


def test_estimates_for_this_machine_use_what_was_measured(machine, measured):
    plan = plan_from_data(PLAN)
    before = answer(plan, machine).estimate
    after = answer(plan, replace(machine, measured=(measured,))).estimate
    assert after.basis.calibration == "measured on this machine, 2026-01-02"
    assert before.basis.calibration != after.basis.calibration
    assert after.memory.parts["context"] == pytest.approx(3e8)
    assert float(after.computation.step_seconds.value) != float(before.computation.step_seconds.value)


def test_named_hardware_stays_as_catalogued(machine, measured):
    plan = plan_from_data({**PLAN, "hardware": {"name": "h100-sxm-80gb"}})
    mine = replace(measured, device="h100-sxm-80gb")
    mine_too, alone = answer(plan, replace(machine, measured=(mine,))), answer(plan, machine)
    assert result_as_dict(mine_too.plan, mine_too.estimate) == result_as_dict(alone.plan, alone.estimate)


def test_another_devices_constants_are_left_alone(device, measured):
    assert with_measured(device, (replace(measured, device="another"),)) == device


def test_outside_the_sampled_range_the_roofline_stays_and_is_named(machine, measured):
    tiny = replace(measured, curves=(Curve("gemm.fp32", (1.0, 2.0, 4.0), (2.0, 2.0, 2.0)),))
    none = replace(measured, curves=())
    plan = plan_from_data(PLAN)
    with_curve = answer(plan, replace(machine, measured=(tiny,))).estimate
    without = answer(plan, replace(machine, measured=(none,))).estimate
    assert with_curve.computation.step_seconds == without.computation.step_seconds
    assert any("outside the sampled sizes" in note for note in with_curve.basis.assumed)


def test_a_curve_interpolates_between_and_ends_at_its_ends():
    curve = Curve("gemm.fp32", (1e6, 1e8), (0.5, 1.5))
    assert curve.at(np.array([1e5, 1e6, 1e7, 1e8, 1e9])) == pytest.approx([1, 0.5, 1.0, 1.5, 1])


def test_a_run_of_ones_own_sets_speed_and_memory(tmp_path, machine, device):
    plan = answer(plan_from_data(PLAN), machine).plan
    run = user_run(plan, 1.5, 3 * 2**30)
    catalog = load_catalog()
    fitted = fit_runs(None, (run,), machine, catalog)
    estimate = answer(plan, replace(machine, measured=(fitted,))).estimate
    assert float(estimate.computation.step_seconds.value) == pytest.approx(1.5, rel=1e-3)
    assert float(estimate.memory.reserved_bytes.value) == pytest.approx(3 * 2**30, rel=1e-3)
    assert {error.name for error in fitted.errors} == {"own runs, step time", "own runs, memory"}
    key = device_key(device)
    history = History(tmp_path / "history.sqlite")
    entry = run_entry(run, machine, catalog)
    assert entry.ratio["computation.step_seconds"] == 1.5 / entry.predicted["computation.step_seconds"]["value"]
    assert keep_run(entry, history) == read_runs(key, history) == (run,)
    assert read_runs("another", history) == ()


def test_a_run_that_is_not_its_plan_is_refused(machine):
    plan = answer(plan_from_data(PLAN), machine).plan
    with pytest.raises(PlanError, match="cannot be this plan"):
        fit_runs(None, (user_run(plan, 1e6, None),), machine, load_catalog())
    with pytest.raises(PlanError, match="below what"):
        fit_runs(None, (user_run(plan, None, 1000.0),), machine, load_catalog())
    with pytest.raises(PlanError, match="nothing was measured"):
        user_run(plan, None, None)


def test_constants_are_plain_data(tmp_path, measured):
    data = json.loads(write_measured(measured, tmp_path).read_text())
    assert data["software"] == {"torch": "2"}
    assert data["curves"][0]["name"]


def test_samples_of_one_type_leave_ranges_of_another_as_they_were(machine, device, measured):
    """What products in fp32 reach says nothing of those in bf16."""

    def width(precision, errors):
        plan = plan_from_data({**PLAN, "training": {**PLAN["training"], "precision": precision}})
        fitted = replace(measured, errors=errors)
        return answer(plan, replace(machine, measured=(fitted,))).estimate.ranges["step"]

    sampled = (FitError("gemm.fp32", 9, 0.01, 0.02, 0.01),)
    assert width("fp32", sampled).high < width("fp32", ()).high
    native = device.native("bf16")
    if native != "fp32":
        assert width("bf16", sampled) == width("bf16", ())
