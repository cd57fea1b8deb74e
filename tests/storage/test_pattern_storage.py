"""What the patterns of a corpus take to keep: the rule's numbers, its ranges, and the law beside it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.storage import PatternQuestion, pattern_storage
from capacity_tui.engine.storage import growth as pattern_growth
from capacity_tui.tui.cli import main

CATALOG = load_catalog()


@pytest.fixture(scope="module")
def hundred_million():
    return pattern_storage(PatternQuestion(100e6, 500), CATALOG)


def test_each_level_repeats_a_third_less(hundred_million):
    shares = [round(100 * level.deduplication, 6) for level in hundred_million.levels]
    assert shares == [60.0, 42.0, 29.4, 20.58]
    assert [level.name for level in hundred_million.levels] == ["node0", "node1", "node2", "node3"]


def test_texts_of_one_chunk_leave_what_the_rule_says():
    levels = pattern_storage(PatternQuestion(1_000_000, 15), CATALOG).levels
    assert [level.samples for level in levels] == [1_000_000] * 4
    assert [round(float(level.unique.value)) for level in levels] == [400_000, 580_000, 706_000, 794_200]


def test_the_store_adds_a_fifth(hundred_million):
    found, known = hundred_million, hundred_million.known
    assert found.total_bytes.value == pytest.approx(1.2 * found.raw_bytes, rel=1e-12)
    assert known.overhead_parts == {"index": 0.1, "padding": 0.05, "internal": 0.05}
    assert known.overhead_range == pytest.approx((0.2, 0.25))
    assert found.total_bytes.low < found.total_bytes.value < found.total_bytes.high


def test_everything_can_be_said():
    question = PatternQuestion(1000, 100, 10, 3, 5, (1.1, 0.5), (0.5, 0.2), 0.5, 0.4, (100.0, 200.0), (1e6,))
    levels = pattern_storage(question, CATALOG).levels
    assert [level.samples for level in levels] == [10_000, 2_000, 1_000]
    assert [level.deduplication for level in levels] == [0.5, 0.2, 0.1]
    assert [level.alpha for level in levels] == [1.1, 0.5, 0.5]
    assert [level.bytes.value for level in levels] == pytest.approx([5000 * 140, 1600 * 280, 900 * 280])
    assert all(level.kinds == 1e6 for level in levels)


@settings(max_examples=15)
@given(samples=st.floats(1, 1e10), tokens=st.floats(1, 1e6), chunk=st.integers(1, 100), levels=st.integers(1, 6))
def test_levels_add_up_and_ranges_hold_rule_and_law(samples, tokens, chunk, levels):
    found = pattern_storage(PatternQuestion(samples, tokens, chunk, levels), CATALOG)
    assert float(found.total_bytes.value) == pytest.approx(sum(float(level.bytes.value) for level in found.levels))
    for level in found.levels:
        low, high = float(level.unique.low) * (1 - 1e-9), float(level.unique.high) * (1 + 1e-9)
        assert low <= float(level.unique.value) <= high and low <= float(level.expected) <= high
        assert float(level.expected) <= float(level.samples) * (1 + 1e-6)
        assert float(level.bytes.low) <= float(level.bytes.value) <= float(level.bytes.high)


def test_many_sizes_are_what_each_is_by_itself(hundred_million):
    grown = pattern_growth(hundred_million.question, CATALOG)
    assert grown.question.samples[6] == 1e8
    assert grown.total_bytes.value[6] == pytest.approx(float(hundred_million.total_bytes.value))
    assert grown.expected[6] == pytest.approx(float(hundred_million.expected))
    assert np.all(np.diff(grown.disagreement) > 0), "the law repeats more of a larger corpus, the rule does not"


@pytest.mark.parametrize(
    "question",
    [PatternQuestion(0, 5), PatternQuestion(5, 5, levels=99), PatternQuestion(5, 5, alpha=(9.0,)),
     PatternQuestion(5, 5, deduplication=(1.5,)), PatternQuestion(5, 5, kinds=(1e18,))],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(question):
    with pytest.raises(PlanError, match="from"):
        pattern_storage(question, CATALOG)


def test_the_command_gives_the_names_that_scripts_rely_on(capsys):
    assert main(["storage", "estimate", "--samples", "100M", "--tokens", "500", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"levels", "total_bytes", "raw_bytes", "expected_distinct", "disagreement"} <= told.keys()
    assert all({"name", "samples", "unique", "deduplication", "bytes"} <= level.keys() for level in told["levels"])
    assert [row["samples"] for row in told["growth"]] == pytest.approx([10.0**power for power in range(2, 11)])
    assert any("times the" in line and "expected under the law" in line for line in told["remarks"])
    assert [pieces["kind"] for pieces in told["segmentation"]] == ["chunks", "sentences"]
    assert told["segmentation"][0]["tokens_kept"] < told["segmentation"][1]["tokens_kept"]


def test_the_command_says_what_a_chunk_of_each_rank_occurs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["storage", "estimate", "--samples", "80606", "--tokens", "225", "--levels", "1"]) == 0
    said = capsys.readouterr().out
    assert "rank 1: 100.01 k times, rank 100: 1 000 times, rank 10 000: 10 times" in said


@pytest.mark.parametrize("columns", ["60", "80"])
def test_a_narrow_terminal_keeps_what_matters(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["storage", "estimate", "--samples", "100M", "--tokens", "500"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= int(columns)
    (head,) = [line for line in lines if line.startswith("level")]
    assert {"deduplication", "unique", "bytes"} <= set(head.split())
    assert any(line.startswith("    ") for line in lines), "the other cells stand below their rows"


def test_the_command_names_the_option_it_cannot_read(capsys):
    assert main(["storage", "estimate", "--samples", "many", "--tokens", "5"]) == 2
    assert "--samples" in capsys.readouterr().err
