"""The ledger of first looks: kept as it was, and read into errors and ranges that an unseen run gets."""

from __future__ import annotations

import hashlib
import math
from importlib.resources import files
from itertools import groupby

import pytest

from capacity_tui.engine.present.runs import reports_as_markdown
from capacity_tui.engine.runs.accuracy import first_looks, first_sights

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
