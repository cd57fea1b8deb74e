"""The ledger of first looks: kept as it was, and read into errors and ranges that an unseen run gets."""

from __future__ import annotations

import hashlib
import math
from importlib.resources import files
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from capacity_tui.engine.present.runs import reports_as_markdown
from capacity_tui.engine.runs.accuracy import first_looks, first_sights, predictive_factor

# Of the rows of each commit whose program looked first. A further source adds rows of a further commit and a line here.
LOOKED = {"fb8dd430": "7cc5c1f434b269ec"}


def digest(commit: str) -> str:
    text = (files("capacity_tui.profiles") / "measurements/first_looks.csv").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.endswith(f",{commit}")]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def test_what_was_predicted_at_first_sight_is_never_written_again():
    commits = {look.commit for look in first_looks()}
    assert {commit: digest(commit) for commit in commits} == LOOKED


def test_every_figure_is_told_with_its_publishers():
    sights = {(sight.quantity, sight.kind): sight for sight in first_sights(first_looks())}
    full = sights["allocated_bytes", "full"]
    assert (full.runs, full.publishers) == (50, 1)
    assert full.median_error == pytest.approx(0.086, abs=0.001)
    assert full.inside == pytest.approx(0.44)
    loads = sights["time_to_first_token_seconds", "load"]
    assert loads.unserved > 0
    assert math.isinf(loads.median_error)


def test_the_page_begins_with_it():
    page = reports_as_markdown((), {}, {})
    assert page.index("## At first sight") < len(page)
    assert "unserved" in page


def test_a_publisher_of_many_runs_outweighs_no_other():
    looks = first_looks()
    batches = [look for look in looks if (look.quantity, look.kind) == ("output_tokens_per_second", "batch")]
    (sight,) = first_sights(batches)
    by_source = [
        list(rows) for _, rows in groupby(sorted(batches, key=lambda look: look.source), lambda look: look.source)
    ]
    shares = [sum(look.is_inside for look in rows) / len(rows) for rows in by_source]
    assert sight.inside_by_publisher == pytest.approx(sum(shares) / len(shares))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.floats(0.0, 0.5))
def test_the_factor_of_a_further_publisher_is_that_of_students_t(medians, scatter):
    count = len(medians)
    mean = sum(medians) / count
    variance = sum((value - mean) ** 2 for value in medians) / (count - 1) * (1 + 1 / count)
    expected = math.exp(t.ppf(0.9, count - 1) * math.sqrt(variance + scatter**2))
    assert predictive_factor(medians, scatter) == pytest.approx(expected, rel=0.02)


def test_one_publisher_says_nothing_of_the_next():
    with pytest.raises(ValueError, match="two"):
        predictive_factor([0.1], 0.1)
