"""Laws of growth: planted ones are found under noise, short data decide nothing, ranges widen and hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.growth import GrowthFit, fit_growth, growth_fit, laws, read_points
from tests.estimate.formula_text import value_of

SIZES = (100, 1000, 10_000, 50_000)
PLANTED = {
    "O(1)": lambda n: 2.0 + 0 * n,
    "O(log n)": lambda n: 0.5 + 0.3 * np.log(n),
    "O(n)": lambda n: 0.05 + 2e-4 * n,
    "O(n log n)": lambda n: 0.05 + 2e-5 * n * np.log(n),
    "O(n^2)": lambda n: 0.05 + 1e-8 * n**2,
    "O(n^3)": lambda n: 0.05 + 1e-12 * n**3,
    "power law": lambda n: 0.05 + 1e-4 * n**1.5,
}
FAR = (1e6, 1e8, 1e9)


def measured(law: str, noise: float, sizes=SIZES, repeats: int = 3, seed: int = 1):
    draw = np.random.default_rng(seed)
    return [
        (float(n), float(PLANTED[law](float(n)) * np.exp(draw.normal(0, noise)))) for n in sizes for _ in range(repeats)
    ]


@pytest.fixture(scope="module")
def found() -> dict[str, GrowthFit]:
    """Fits of every planted law, from the sizes that are measured by default with noise of 3 %."""
    return {law: fit_growth("seconds", measured(law, 0.03), FAR) for law in PLANTED}


@pytest.mark.parametrize("law", PLANTED)
def test_a_planted_law_is_found_under_noise(found, law):
    choice = found[law].choice
    assert choice.chosen is not None
    assert choice.chosen.fitted.law.name == law
    assert choice.decided, choice.reason
    if law == "power law":
        assert choice.chosen.fitted.power == pytest.approx(1.5, abs=0.03)


@pytest.mark.parametrize("law", PLANTED)
def test_ranges_hold_what_was_planted_and_widen(found, law):
    ends = found[law].extrapolated
    assert [each.n for each in ends] == list(FAR)
    assert all(each.low <= PLANTED[law](each.n) <= each.high for each in ends)
    assert all(each.low <= each.value <= each.high for each in ends)
    widths = [each.high / each.low for each in ends]
    assert widths == sorted(widths)
    assert widths[-1] > 1.03 * widths[0]


def test_without_repeats_six_sizes_decide_where_four_do_not():
    long = fit_growth("seconds", measured("O(n)", 0.03, (100, 300, 1000, 3000, 10_000, 30_000), 1))
    short = fit_growth("seconds", measured("O(n)", 0.03, repeats=1))
    assert long.choice.decided
    assert not short.choice.decided
    assert "too few" in short.choice.reason


@pytest.mark.parametrize("sizes", [(100,), (100, 1000), (100, 1000, 10_000), (100, 110, 120, 130)])
def test_short_data_decide_nothing_and_a_further_size_is_named(sizes):
    fit = fit_growth("seconds", measured("O(n)", 0.03, sizes))
    assert not fit.choice.decided
    assert fit.choice.next_size is not None and fit.choice.next_size > max(sizes)
    assert (fit.choice.chosen is None) == (len(sizes) < 3) == (not fit.extrapolated)


def test_a_constant_is_decided_over_two_decades_alone():
    short = fit_growth("seconds", [(n, 2.0 * wobble) for n in (100, 200, 500, 1000) for wobble in (0.99, 1.0, 1.01)])
    long = fit_growth("seconds", [(n, 2.0 * wobble) for n in SIZES for wobble in (0.99, 1.0, 1.01)])
    assert short.choice.chosen.fitted.law.name == long.choice.chosen.fitted.law.name == "O(1)"
    assert (short.choice.decided, long.choice.decided) == (False, True)
    assert "below the start" in short.choice.reason


def test_the_size_that_is_named_would_decide():
    sizes = (100, 200, 400, 1000)
    fit = fit_growth("seconds", measured("O(n)", 0.08, sizes))
    assert not fit.choice.decided
    further = fit_growth("seconds", measured("O(n)", 0.08, (*sizes, int(fit.choice.next_size))))
    assert further.choice.decided
    assert further.choice.chosen.fitted.law.name == "O(n)"


def test_noise_is_that_of_repeats():
    fit = fit_growth("seconds", measured("O(n)", 0.1, repeats=30))
    assert fit.choice.measured.noise == pytest.approx(0.1, rel=0.2)


def test_more_noise_makes_wider_ranges():
    widths = [
        (far := fit_growth("seconds", measured("O(n)", noise), (1e8,)).extrapolated[0]).high / far.low
        for noise in (0.01, 0.05, 0.2)
    ]
    assert widths == sorted(widths)


@settings(max_examples=4)
@given(factor=st.floats(1e-6, 1e6), law=st.sampled_from(["O(n)", "O(n^2)"]))
def test_units_change_no_law(factor, law):
    points = measured(law, 0.02)
    plain = fit_growth("seconds", points, (1e8,))
    scaled = fit_growth("seconds", [(n, value * factor) for n, value in points], (1e8,))
    assert scaled.choice.chosen.fitted.law is plain.choice.chosen.fitted.law
    assert scaled.choice.chosen.weight == pytest.approx(plain.choice.chosen.weight, rel=1e-3)
    assert scaled.extrapolated[0].value == pytest.approx(plain.extrapolated[0].value * factor, rel=1e-4)


@pytest.mark.parametrize("points", [[], [(0.5, 1.0)], [(10, 0.0)], [(float("nan"), 1.0)]])
def test_what_cannot_be_measured_is_refused(points):
    with pytest.raises(CapacityError):
        fit_growth("seconds", points)


@pytest.mark.parametrize(
    "name", ["shape", "grown", "information_criterion", "small_sample_charge", "relative_likelihood"]
)
def test_the_formula_shown_is_the_one_computed(name):
    equation = getattr(laws, name, None) or getattr(growth_fit, name)
    draw = np.random.default_rng(5)
    for _ in range(20):
        symbols = {symbol: float(draw.uniform(1, 20)) for symbol in equation.symbols}
        assert float(equation(**symbols)) == pytest.approx(value_of(equation.formula, symbols), rel=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "n,seconds\n100,1\n1000,2\n",
        "\ufeffSamples;Time;note\n100;1;cold\n1000;2;\n",
        "# measured on Monday\n100\t1\n\n1_000\t2\n",
        "100 1\n1000 2\n",
    ],
)
def test_tables_are_read_as_they_are_written(text):
    assert read_points(text) == {"seconds": ((100.0, 1.0), (1000.0, 2.0))}


def test_columns_without_names_are_the_figures_in_their_order():
    found = read_points("100,1,5e6,7\n1000,2,,8\n")
    assert found == {
        "seconds": ((100.0, 1.0), (1000.0, 2.0)),
        "peak_memory_bytes": ((100.0, 5e6),),
        "disk_bytes": ((100.0, 7.0), (1000.0, 8.0)),
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [("", None), ("n\n5\n", 1), ("a,b\n1,2\n", 1), ("n,seconds\nx,2\n", 2), ("n,seconds\n1,fast\n", 2)],
)
def test_a_table_that_cannot_be_read_says_where(text, line):
    with pytest.raises(CapacityError) as refused:
        read_points(text, "p.csv")
    assert refused.value.place.line == line
    assert refused.value.hint
