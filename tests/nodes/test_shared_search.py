"""A search that is shared out: the same answer whatever the chunks, the workers and their order, and after an end."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError, LauncherError
from capacity_tui.engine.nodes.chunks import (
    Chunk,
    Cutting,
    Evaluator,
    Work,
    evaluate,
    outcomes_as_text,
    outcomes_from_text,
    search_environment,
)
from capacity_tui.engine.nodes.ray_nodes import ray_session
from capacity_tui.engine.nodes.shared_search import Filled, Journal, Outcomes, SharedSearch
from capacity_tui.engine.solve.search import Answer, Question, answerable, search
from tests.nodes.questions import questions

QUESTIONS = questions()
cuttings = st.builds(Cutting, st.integers(1, 4), st.integers(1, 200), st.integers(1, 20))


class WorkersHere:
    """Workers of this process, each with an evaluator of its own, that end their chunks in any order."""

    def __init__(self, question: Question, cutting: Cutting, workers: int, random: Random) -> None:
        asked = answerable(question)
        self._workers = [Evaluator(asked, load_catalog(), None, cutting) for _ in range(workers)]
        self._given: list[tuple[Chunk, Filled]] = []
        self._random = random
        self.evaluated: list[Chunk] = []

    @property
    def room(self) -> int:
        return 2 * len(self._workers)

    def give(self, chunk: Chunk, filled: Filled) -> None:
        self._given.append((chunk, dict(filled)))

    def finished(self) -> Iterator[tuple[Chunk, Outcomes]]:
        chunk, filled = self._given.pop(self._random.randrange(len(self._given)))
        self.evaluated.append(chunk)
        outcomes = self._random.choice(self._workers).evaluated(chunk, filled)
        yield chunk, outcomes_from_text(outcomes_as_text(outcomes))


class Nothing:
    """A journal that knows nothing and keeps nothing."""

    def outcomes(self, chunk: Chunk) -> Outcomes | None:
        return None

    def keep(self, chunk: Chunk, outcomes: Outcomes) -> None:
        pass


@cache
def found_here(name: str) -> Answer:
    return replace(search(QUESTIONS[name], load_catalog()), seconds=0.0)


def test_a_worker_goes_from_search_to_search_without_beginning_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(*_: object) -> Catalog:
        made.append("")
        return load_catalog()

    monkeypatch.setattr("capacity_tui.engine.nodes.chunks.catalog_of", counted)
    works = [
        pickle.dumps(Work(answerable(question), None, {}, search_environment(question), Cutting(1, 1, 1)))
        for question in list(QUESTIONS.values())[:2]
    ]
    texts = [evaluate(work, (0, 1, 0, 0), pickle.dumps({})) for work in works * 3]
    assert texts[:2] * 3 == texts
    assert len(made) == 2


def shared(name: str, cutting: Cutting, workers: WorkersHere, journal: Journal | Nothing | None = None) -> Answer:
    searching = SharedSearch(QUESTIONS[name], load_catalog(), None, journal or Nothing(), cutting)
    return replace(searching.run(workers), seconds=0.0)


@settings(max_examples=12)
@given(st.sampled_from(sorted(QUESTIONS)), cuttings, st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_answer_is_that_of_a_search_here_to_the_last_bit(
    name: str, cutting: Cutting, workers: int, random: Random
) -> None:
    found = shared(name, cutting, WorkersHere(QUESTIONS[name], cutting, workers, random))
    assert found == found_here(name)


def test_the_questions_are_worth_sharing_out() -> None:
    assert sum(bool(found_here(name).top) for name in QUESTIONS) >= 5
    fine = Cutting(1, 1, 1)
    workers = WorkersHere(QUESTIONS["each by itself"], fine, 1, Random(1))
    shared("each by itself", fine, workers)
    assert any(chunk.end for chunk in workers.evaluated)


@pytest.mark.parametrize("damage", (b"", b"3-4-0-0 [[[[[0,0"))
def test_a_search_that_was_killed_goes_on_from_there(tmp_path: Path, damage: bytes) -> None:
    name, cutting, path = "unlike settings, a front of three", Cutting(1, 1, 1), tmp_path / "journal.jsonl"
    workers = WorkersHere(QUESTIONS[name], cutting, 2, Random(7))
    first = SharedSearch(QUESTIONS[name], load_catalog(), None, Journal(path), cutting)
    with pytest.raises(KeyboardInterrupt):
        first.run(workers, stopped=lambda: die_after(workers, 5))
    with path.open("ab") as file:
        file.write(damage)
    others = WorkersHere(QUESTIONS[name], cutting, 1, Random(8))
    second = SharedSearch(QUESTIONS[name], load_catalog(), None, Journal(path), cutting)
    assert replace(second.run(others), seconds=0.0) == found_here(name)
    assert second.resumed == 5
    assert not {*others.evaluated} & {*workers.evaluated}


def test_a_search_that_is_stopped_says_what_it_has() -> None:
    name, cutting = "unlike settings, a front of three", Cutting(1, 1, 1)
    workers = WorkersHere(QUESTIONS[name], cutting, 1, Random(3))
    searching = SharedSearch(QUESTIONS[name], load_catalog(), None, Nothing(), cutting)
    shares: list[float] = []
    found = searching.run(workers, lambda answer: shares.append(answer.share_done), lambda: len(workers.evaluated) >= 6)
    assert not found.complete
    assert 0 < found.share_done < 1
    assert 0 < found.evaluated < found_here(name).evaluated


def test_a_question_that_makes_no_sense_is_refused_as_here() -> None:
    name = "nothing can be"
    question = replace(QUESTIONS[name], hardware=("no-such-device",))
    with pytest.raises(CapacityError) as here:
        search(question)
    with pytest.raises(CapacityError) as elsewhere:
        SharedSearch(question, load_catalog(), None, Nothing(), Cutting())
    assert str(elsewhere.value) == str(here.value)


@pytest.mark.parametrize("address", ("", "nowhere", "local:0", "local:x", "host:notaport"))
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(LauncherError, match="local:4"), ray_session(address):
        pass


def die_after(workers: WorkersHere, chunks: int) -> bool:
    if len(workers.evaluated) >= chunks:
        raise KeyboardInterrupt
    return False
