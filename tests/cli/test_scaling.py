"""``scaling`` and ``bench-configs``: commands of growing size and of many settings, measured and ranked."""

from __future__ import annotations

import json

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless.group import run_command

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
