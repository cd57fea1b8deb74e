"""Exponent and deduplication of texts: planted laws are found, real text is counted as by brute force."""

import io
import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.present import TextPart
from capacity_tui.engine.present.storage import corpus_parts, corpus_picture
from capacity_tui.engine.storage import FitQuestion, expected_distinct, fit_corpus, pattern_storage
from capacity_tui.engine.storage.corpus import Counter as BoundedCounter
from capacity_tui.engine.storage.corpus import Tally, mixed
from capacity_tui.engine.storage.zipf import fit_law
from capacity_tui.tui.cli import main

LIBRARY = [re.__file__, json.__file__, pytest.__file__]  # Real text on every machine: modules of the standard library


def zipf_draws(alpha, kinds, draws, seed=1):
    ends = np.cumsum(np.arange(1, kinds + 1.0) ** -alpha)
    return np.searchsorted(ends / ends[-1], np.random.default_rng(seed).random(draws))


def tally_of(draws):
    counts = np.sort(np.unique(draws, return_counts=True)[1])[::-1]
    return Tally(int(counts.sum()), counts, np.ones(len(counts)), 1.0)


@pytest.mark.parametrize(("kinds", "draws"), [(5_000, 100_000), (1_000_000, 30_000)])
@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.0, 1.3, 2.0])
def test_a_planted_law_is_found(alpha, kinds, draws):
    law = fit_law(tally_of(zipf_draws(alpha, kinds, draws)))
    assert law.holds and law.goodness > 0.95
    assert law.alpha == pytest.approx(alpha, abs=0.06)
    assert law.alpha_low < law.alpha < law.alpha_high
    expected = float(expected_distinct(10.0 * draws, alpha, kinds))
    near = 0.08 if law.distinct(float(draws)) > 1000 else 0.4
    assert float(law.distinct(10.0 * draws)) == pytest.approx(expected, rel=near), "of ten times the text"


def test_ranges_hold_the_planted_exponent_about_as_often_as_they_say():
    laws = [fit_law(tally_of(zipf_draws(0.9, 20_000, 10_000, seed))) for seed in range(6)]
    inside = sum(law.alpha_low <= 0.9 <= law.alpha_high for law in laws)
    assert 3 <= inside <= 6


@pytest.mark.parametrize(
    ("name", "draws", "reason"),
    [
        ("even", np.random.default_rng(1).integers(0, 1000, 100_000), "equally often"),
        ("geometric", np.random.default_rng(1).geometric(0.01, 100_000), "off the law"),
        ("all different", np.arange(5_000), "came twice"),
        ("few", np.repeat(np.arange(10), 100), "too few"),
    ],
)
def test_what_follows_no_law_is_said_to(name, draws, reason):
    law = fit_law(tally_of(draws))
    assert not law.holds and reason in law.why_not, name


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Sources of the standard library, as a folder, counted once."""
    folder = tmp_path_factory.mktemp("library")
    for number, file in enumerate(LIBRARY * 2):
        (folder / f"{number}.txt").write_text(Path(file).read_text("utf-8"), encoding="utf-8")
    (folder / "binary").write_bytes(b"\0\1\2")
    return folder, fit_corpus(str(folder), FitQuestion(chunk=4, levels=3))


def pieces(values, length):
    return [tuple(values[place : place + length]) for place in range(0, len(values), length)]


def test_real_text_is_counted_as_by_brute_force(library):
    folder, found = library
    documents = [re.findall(r"\w+|[^\w\s]", file.read_text("utf-8")) for file in sorted(folder.glob("*.txt"))]
    levels = [Counter(token for document in documents for token in document)]
    for _ in range(3):
        documents = [pieces(document, 4) for document in documents]
        levels.append(Counter(piece for document in documents for piece in document))
    for by_hand, level in zip(levels, (found.tokens, *found.levels), strict=True):
        assert level.tally.occurrences == by_hand.total()
        assert level.tally.distinct == len(by_hand) and level.tally.relative_error == 0
        assert level.deduplication == pytest.approx(1 - len(by_hand) / by_hand.total())
        assert level.tally.counts.tolist() == sorted(by_hand.values(), reverse=True)
    assert found.levels[2].deduplication >= 0.5, "each text is there twice"
    assert [file.name for file in found.read.skipped] == ["binary"]
    assert found.sentences is not None and 0 < found.sentences.deduplication < 1


def test_what_was_found_is_what_storage_is_estimated_with(library):
    _, found = library
    asked = found.storage_question()
    stored = pattern_storage(asked, load_catalog())
    for level, fitted in zip(stored.levels, found.levels, strict=True):
        assert level.samples == pytest.approx(fitted.tally.occurrences, rel=0.02)
        assert level.deduplication == fitted.deduplication


def test_more_than_has_room_is_counted_on_a_sample():
    draws = zipf_draws(0.9, 400_000, 400_000)
    hashes = mixed(draws.astype(np.uint64))
    counter = BoundedCounter(20_000)
    for start in range(0, len(hashes), 50_000):
        counter.add(hashes[start : start + 50_000])
    tally, true = counter.tally(), tally_of(draws)
    assert len(tally.counts) <= 20_000 and tally.occurrences == 400_000
    assert 0 < tally.relative_error < 0.02
    assert abs(tally.distinct / true.distinct - 1) < 4 * tally.relative_error
    assert tally.counts[:100].tolist() == true.counts[:100].tolist(), "the most frequent are counted exactly"
    assert fit_law(tally).alpha == pytest.approx(0.9, abs=0.05)


def test_tokens_may_be_numbers(tmp_path):
    draws = zipf_draws(1.0, 2_000, 50_000).astype(np.uint16)
    np.save(tmp_path / "tokens.npy", draws)
    draws.tofile(tmp_path / "tokens.bin")
    saved = fit_corpus(str(tmp_path / "tokens.npy"), FitQuestion(levels=1))
    raw = fit_corpus(str(tmp_path / "tokens.bin"), FitQuestion(levels=1, numbers="uint16"))
    assert saved.tokens.law.alpha == raw.tokens.law.alpha == pytest.approx(1.0, abs=0.03)
    assert saved.tokens.tally.distinct == raw.tokens.tally.distinct == len(np.unique(draws))
    assert saved.sentences is None and saved.read.documents == 1


def test_texts_in_json_lines_are_cut_one_by_one(tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "a b c"}\n{"text": "a b c d"}\n"a b c"\n', encoding="utf-8")
    found = fit_corpus(str(file), FitQuestion(chunk=3, levels=1))
    assert found.read.documents == 3
    assert found.levels[0].tally.counts.tolist() == [3, 1]


def test_a_stop_tells_what_was_counted_by_then(library):
    folder, whole = library
    part = fit_corpus(str(folder), FitQuestion(chunk=4, levels=1), stopped=lambda: True)
    assert not part.complete
    assert 0 < part.tokens.tally.occurrences < whole.tokens.tally.occurrences


def test_standard_input_is_text(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one two one two " * 40)))
    found = fit_corpus("-", FitQuestion(chunk=2, levels=1))
    assert found.levels[0].tally.counts.tolist() == [80]
    with pytest.raises(CapacityError, match="standard input"):
        fit_corpus("-", FitQuestion(numbers="uint16"))


@pytest.mark.parametrize("name", ["empty.txt", "missing.txt"])
def test_what_holds_no_text_is_refused(tmp_path, name):
    (tmp_path / "empty.txt").touch()
    with pytest.raises(CapacityError, match=name):
        fit_corpus(str(tmp_path / name), FitQuestion())


def test_frequencies_are_drawn_and_what_comes_next_is_told(library):
    _, found = library
    drawn = corpus_picture(found, 40, ascii_only=True)
    assert "o counted, . the law; both axes logarithmic" in drawn
    assert all(line.isascii() and len(line) <= 52 for line in drawn)
    said = [part.text for part in corpus_parts(found, 1.0) if isinstance(part, TextPart)]
    assert any("capacity-tui storage estimate --samples 6" in line for line in said)
    assert any("cut at full stops" in line for line in said)


def test_the_command_gives_the_names_that_scripts_rely_on(library, tmp_path, capsys):
    folder, _ = library
    picture = tmp_path / "ranks.svg"
    words = ["storage", "fit", str(folder), "--chunk", "4", "--levels", "2", "--svg", str(picture), "--format", "json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"alpha", "deduplication", "goodness", "holds", "ranks"} <= told.keys()
    assert len(told["deduplication"]) == 2 and told["holds"] in (True, False)
    assert told["ranks"][0].keys() >= {"rank", "count", "fitted"} and told["ranks"][0]["rank"] == 1
    assert picture.read_text("utf-8").startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_a_pipe_that_nobody_writes_to_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CapacityError, match="is no file: a pipe is read as -"):
        fit_corpus(str(tmp_path / "pipe"), FitQuestion())
