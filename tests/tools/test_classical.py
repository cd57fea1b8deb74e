"""Fits of classical algorithms' constants to fits that were measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from tools.calibrate.__main__ import main
from tools.calibrate.classical import classical_constants, classical_problem
from tools.calibrate.classical_measuring import CALIBRATION, HELD_OUT, Measured, append_measured, measure, read_measured
from tools.calibrate.constants import with_values
from tools.calibrate.fitting import fit

CATALOG = load_catalog()
RATES = {"fp64": 5.0e10, "fp32": 1.0e11, "stream": 1.0e10}
ALGORITHMS = ("svm_linear", "kmeans")


def made(fits, values):
    """Return the calibration fits of some algorithms as a machine with other constants would measure them."""
    cases = [case for case in CALIBRATION if case.algorithm in ALGORITHMS][::3]
    bare = [Measured(case.algorithm, case.spec, 1.0, 1.0, RATES) for case in cases]
    changed = with_values(CATALOG, values)
    found = [float(run.figure(changed)) for run in classical_problem(fits, bare, CATALOG).runs]
    field = "seconds" if fits == "time" else "bytes"
    return [replace(each, **{field: value}) for each, value in zip(bare, found, strict=True)]


@pytest.mark.parametrize("fits", ["time", "memory"])
def test_a_fit_finds_the_constants_of_a_slower_machine(fits):
    wanted = {each: 1.5 * each.prior for each in classical_constants(fits, CATALOG) if each.rows[0] in ALGORITHMS}
    problem = classical_problem(fits, made(fits, wanted), CATALOG)
    before = np.abs(problem.errors(problem.shipped).residuals)
    after = np.abs(fit(problem, evaluations=4).errors.residuals)
    assert after.max() < 0.3 * before.max()


def test_measured_fits_are_kept_in_a_file(tmp_path):
    path = tmp_path / "fits.jsonl"
    one = Measured("kmeans", {"n": 100, "p": 5, "k": 3}, 0.5, 1e6, RATES)
    append_measured(path, one)
    append_measured(path, one)
    assert read_measured(path) == (one, one)


def test_without_measured_fits_the_command_says_how_to_measure(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["classical", "--measured", str(tmp_path / "none.jsonl")])
    assert "--measure" in capsys.readouterr().err


def test_every_algorithm_is_measured_and_others_are_held_out():
    algorithms = set(CATALOG.algorithms) - {"common"}
    assert {case.algorithm for case in CALIBRATION} == {case.algorithm for case in HELD_OUT} == algorithms


def test_a_fit_is_measured_in_a_process_of_its_own():
    pytest.importorskip("sklearn")
    case = next(case for case in CALIBRATION if case.algorithm == "linear_regression_normal")
    (found,) = measure([replace(case, spec={**case.spec, "n": 2000, "p": 5})])
    assert found.seconds > 0
    assert set(found.rates) == set(RATES)
