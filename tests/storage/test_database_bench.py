"""Databases of patterns: what is stored is found, sizes are told from a tenth, and nothing stays.

MongoDB's part runs against what tests serve, and against the database that CAPACITY_TEST_MONGODB_URI names; its size is
compared there alone.
"""

from __future__ import annotations

import json
import os
import sqlite3

import pytest

from capacity_tui.engine.errors import CapacityError, StorageError
from capacity_tui.engine.present import TextPart
from capacity_tui.engine.present.storage import database_bench_parts
from capacity_tui.engine.storage import BenchQuestion, measure_database
from capacity_tui.engine.storage import database_bench as benches
from capacity_tui.engine.storage.pattern_store import patterns
from capacity_tui.tui.cli import main

VARIABLE = "CAPACITY_TEST_MONGODB_URI"


@pytest.mark.parametrize(("documents", "chunk"), [(1000, 5), (1000, 15), (1700, 10), (5000, 25)])
def test_a_file_is_as_large_as_a_tenth_of_it_tells(documents, chunk, tmp_path):
    found = measure_database(BenchQuestion(documents=documents, chunk=chunk, folder=tmp_path))
    assert found.calibrated_on == documents // 10
    assert abs(found.error) < 0.15
    assert found.size.total_bytes > found.content_bytes > 0
    assert 0 < found.size.index_bytes < found.size.total_bytes
    assert list(tmp_path.iterdir()) == []


def test_rates_and_latencies_belong_together(tmp_path):
    found = measure_database(BenchQuestion(folder=tmp_path))
    for latency in (found.insert, found.query):
        assert 0 < latency.ms(0.5) <= latency.ms(0.95) <= latency.ms(0.99)
        assert latency.ms(0) <= latency.mean_ms <= latency.ms(1)
        assert latency.mean_ms == pytest.approx(1000 / latency.per_second)
    assert found.write_per_second > 0
    said = [part.text for part in database_bench_parts(found) if isinstance(part, TextPart)]
    assert any(line.startswith("Estimated from 100 of them") for line in said)


def test_patterns_are_the_same_in_any_portions():
    whole = tuple(patterns(0, 50, 5))
    assert whole == (*patterns(0, 20, 5), *patterns(20, 30, 5))
    assert len({each.name for each in whole}) == 50
    assert whole[0].frequency == 100_000
    assert all(len(each.words) == 5 for each in whole)


def test_stopping_leaves_nothing_behind(tmp_path):
    def stop(step: str) -> None:
        if "one after the other" in step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_database(BenchQuestion(folder=tmp_path), stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (BenchQuestion("redis"), "no back-end is called 'redis'; there are sqlite, mongodb"),
        (BenchQuestion(documents=999), "give at least 1000"),
        (BenchQuestion(chunk=0), "needs words"),
        (BenchQuestion("mongodb"), "--uri mongodb://"),
    ],
)
def test_questions_that_cannot_be_say_what_can(question, said):
    with pytest.raises(CapacityError) as refused:
        measure_database(question)
    assert said in refused.value.one_line()


def test_a_folder_that_cannot_hold_it_is_named(tmp_path, monkeypatch):
    with pytest.raises(StorageError, match="gone"):
        measure_database(BenchQuestion(folder=tmp_path / "gone"))

    def full(*_words: object, **_more: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(StorageError, match="disk is full"):
        measure_database(BenchQuestion(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_what_was_measured(tmp_path, capsys):
    assert main(["storage", "bench", "--documents", "1k", "--folder", str(tmp_path), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["insert_ms"].keys() >= {"p50", "p95", "p99"}
    assert min(told[key] for key in ("write_per_second", "read_per_second", "bytes", "estimated_bytes")) > 0


def test_options_of_another_back_end_are_refused(capsys):
    assert main(["storage", "bench", "--uri", "mongodb://db.example", "--folder", "/tmp"]) == 2
    assert "--folder belongs to the back-end sqlite" in capsys.readouterr().err


@pytest.fixture(params=["served", "named"])
def uri(request):
    found = request.getfixturevalue("mongodb_uri") if request.param == "served" else os.environ.get(VARIABLE)
    return found or pytest.skip(f"{VARIABLE} names no database")


def test_a_mongodb_stores_finds_and_is_left_as_it_was(uri, monkeypatch, request):
    from pymongo import MongoClient

    monkeypatch.setattr(benches, "_QUERIES", 50)
    monkeypatch.setattr(benches, "_SIZES_ASKED", 5)
    found = measure_database(BenchQuestion("mongodb", chunk=5, uri=uri))
    assert found.version.startswith("MongoDB ")
    assert min(found.write_per_second, found.query.per_second, found.insert.ms(0.5)) > 0
    assert abs(found.error) < 0.15
    with MongoClient(uri) as client:
        assert client.get_default_database("capacity_tui").list_collection_names(filter={"name": "x"}) == []
        assert not [name for name in client["capacity_tui"].list_collection_names() if "bench" in name]


def test_a_mongodb_out_of_reach_tells_no_password(monkeypatch):
    pytest.importorskip("pymongo", reason="the extra mongodb is not installed")
    monkeypatch.setattr("capacity_tui.engine.extras.ANSWER_MILLISECONDS", 100)
    with pytest.raises(StorageError, match="cannot be measured") as refused:
        measure_database(BenchQuestion("mongodb", uri="mongodb://me:secret@127.0.0.1:1/patterns"))
    assert "secret" not in refused.value.one_line()
    with pytest.raises(StorageError) as refused:
        measure_database(BenchQuestion("mongodb", uri="me:secret@127.0.0.1"))
    assert "secret" not in refused.value.one_line()
