"""Fits of the shipped constants: each finds the values its runs were made with, and leaves the program alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from tools.calibrate.__main__ import SERVING, TRAINING
from tools.calibrate.constants import Constant, serving_constants, training_constants, with_values
from tools.calibrate.fitting import Problem, as_shipped, fit, left_out
from tools.calibrate.ranges import UnseenRun
from tools.calibrate.runs import Run, published_runs
from tools.calibrate.served import served_together
from tools.calibrate.telling import fit_in_words
from tools.calibrate.writing import replaced, write_unseen

CATALOG = load_catalog()
EVERY = {"train_time": 100, "finetune_time": 20, "train_memory": 12, "finetune_memory": 10, "inference_memory": 12}


def some_runs(kinds: tuple[str, ...]) -> tuple[Run, ...]:
    """Return a few runs of several publishers."""
    runs = []
    for kind in kinds:
        runs += published_runs((kind,), CATALOG, every=EVERY.get(kind, 90))
    return tuple(runs)


def constants_of(fits: str, where: str) -> tuple[Constant, ...]:
    return training_constants(fits) if where == "training" else serving_constants(fits, CATALOG)


@pytest.fixture(scope="module")
def memory() -> Problem:
    return Problem(some_runs(TRAINING["memory"]), training_constants("memory"), CATALOG)


FITS = [("training", *each) for each in TRAINING.items()] + [("serving", *each) for each in SERVING.items()]


@pytest.mark.parametrize(("where", "fits", "kinds"), FITS)
def test_a_fit_finds_the_values_its_runs_were_made_with(where, fits, kinds):
    runs = some_runs(kinds)
    read = [each for each in constants_of(fits, where) if any(run.reads(each) for run in runs)]
    wanted = {each: float(each.value(0.3 * each.spread)) for each in read}
    changed = with_values(CATALOG, wanted)
    made = tuple(replace(run, measurement=replace(run.measurement, value=float(run.figure(changed)))) for run in runs)
    loose = [each.model_copy(update={"spread": 10.0 * each.spread}) for each in read]
    problem = Problem(made, loose, CATALOG, served_together if where == "serving" else None)
    before = np.abs(problem.errors(problem.shipped).residuals)
    after = np.abs(fit(problem, evaluations=6).errors.residuals)
    assert before.max() > 0.01
    assert np.median(after) < 0.5 * np.median(before)
    assert after.max() < before.max()


def test_served_runs_are_estimated_together_as_they_are_alone():
    runs = published_runs(("serving",), CATALOG, every=12)
    read = [each for each in serving_constants("speed", CATALOG) if any(run.reads(each) for run in runs)]
    alone, together = Problem(runs, read, CATALOG), Problem(runs, read, CATALOG, served_together)
    assert len(together.batches) < len(runs)
    single, many = alone.errors(alone.shipped), together.errors(together.shipped)
    assert many.residuals == pytest.approx(single.residuals, abs=1e-9)
    assert many.slopes == pytest.approx(single.slopes, abs=1e-7)


def test_slopes_are_those_of_single_estimates(memory):
    errors = memory.errors(memory.shipped)
    for column in range(0, len(memory.constants), 3):
        moved = memory.shipped.copy()
        moved[column] += 0.02
        single = (memory.residuals(moved, range(len(memory.runs))) - errors.residuals) / 0.02
        assert single == pytest.approx(errors.slopes[:, column], abs=1e-9)


def test_other_values_of_constants_move_the_runs_they_touch(memory):
    constant = next(each for each in memory.constants if each.field == "bucket_mib")
    run = next(run for run in memory.runs if run.reads(constant))
    before = run.figure(CATALOG)
    changed = with_values(CATALOG, {constant: 2.0 * constant.shipped(CATALOG)})
    assert run.figure(changed) > before
    assert run.figure(CATALOG) == before
    assert changed.frameworks.find_id("Megatron-LM") == CATALOG.frameworks.find_id("Megatron-LM")


def test_a_group_left_out_is_predicted_by_what_others_share_with_it(memory):
    found = as_shipped(memory)
    alone = left_out(memory, found.distances, found.errors, [run.publisher for run in memory.runs])
    assert alone == pytest.approx(found.unseen)
    assert any("of 1" in line for line in fit_in_words(found, found.errors.residuals))


def test_what_runs_say_nothing_about_stays_its_prior(memory):
    silent = [column for column, each in enumerate(memory.constants) if not any(run.reads(each) for run in memory.runs)]
    found = as_shipped(memory)
    assert found.learned[silent] == pytest.approx(0.0, abs=1e-9)
    assert all(0.0 <= share <= 1.0 for share in found.learned)


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("sustained", "  sustained: 0.5\n"),
        ("gemm.fp16", "gemm: {fp32: 0.9, fp16: 0.5}"),
        ("pair.1", "pair: [3.0, 0.5]"),
    ],
)
def test_one_value_is_written_and_nothing_else(field, wanted):
    text = "a:\n  gemm: {fp32: 0.9, fp16: 0.72}\n  sustained: 0.968\n  pair: [3.0, 2.0]\nb:\n  sustained: 1\n"
    changed = replaced(text, "a", field, 0.5)
    assert wanted in changed
    assert sum(new != old for new, old in zip(changed.splitlines(), text.splitlines(), strict=True)) == 1
    with pytest.raises(KeyError):
        replaced(text, "a", "no_such", 0.5)


def test_unseen_runs_are_written_in_percent_of_what_was_predicted_of_them(tmp_path):
    run = SimpleNamespace(measurement=SimpleNamespace(kind="train_time", id="a"))
    named = UnseenRun(run, 16.4, 16.56, 14.4, 20.7, apart=(16.2, 16.5))
    write_unseen([named, UnseenRun(run, 15.0, 16.4, 13.0, 23.4, withheld=True)], tmp_path, tmp_path)
    heads, row = (tmp_path / "fits" / "unseen.csv").read_text().splitlines()
    assert heads.startswith("kind,id,unseen,low,high,without_software")
    assert row == "train_time,a,16.56,87,125,97.8,99.6,99,79.3,143"
    assert (tmp_path / "when_fitted.csv").read_text().splitlines()[1] == "train_time,a,16.4"
