"""Chunks of a search: their part of a question, their environment, and their results as lossless text."""

from __future__ import annotations

import json
import os
import pickle
import platform
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib.metadata import entry_points
from importlib.resources import files
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.fleet_files import fleet_files_below
from capacity_tui.engine.files import CONFIG_VARIABLE, config_folder
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import GROUP
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.search import (
    BlockResult,
    Prepared,
    Question,
    Refused,
    Rejected,
    Row,
    Scorer,
    TopK,
    goal_of,
    space_part,
    spaces_of,
)
from capacity_tui.engine.solve.space import BLOCK, Axis, LazyBlock, Values


@dataclass(frozen=True, slots=True)
class Cutting:
    """How large chunks are."""

    numbers: int = 4  # spaces of a chunk, as ``Spaces`` numbers them
    combinations: int = 2 * BLOCK  # combinations that a number may have before it is cut into chunks of its own
    pieces: int = 64  # pieces that it may have before it is cut

    def chunks_of(self, pieces: int, combinations: int) -> int:
        """Return how many chunks a number is worth."""
        return max(1, min(pieces, max(-(-combinations // self.combinations), -(-pieces // self.pieces))))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a question."""

    first: int
    last: int  # the number behind its last one
    begin: int = 0  # its first piece, where it is of one number that is cut
    end: int = 0  # the piece behind its last one; 0 where it is of whole numbers


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a number of a chunk."""

    # the outcomes of its pieces, in their order; of a number that is cut only what holds of all of them
    parts: tuple[BlockResult, ...]
    pieces: int = 0  # how many pieces it has that are not evaluated yet, as it is cut
    chunks: int = 0

    def cut(self, number: int) -> tuple[Chunk, ...]:
        """Return the chunks of what is not evaluated yet."""
        ends = [index * self.pieces // self.chunks for index in range(self.chunks + 1)] if self.chunks else []
        return tuple(Chunk(number, number + 1, begin, end) for begin, end in pairwise(ends))


def outcomes_as_text(outcomes: Iterable[Outcome]) -> str:
    """Return the outcome of a chunk on one line of text: of each record its values, in the order of its fields."""
    return json.dumps(tuple(outcomes), separators=(",", ":"), default=_values_of)


def _values_of(record: Any) -> list[object]:
    return [getattr(record, field.name) for field in fields(record)]


def outcomes_from_text(text: str) -> tuple[Outcome, ...]:
    """Return the outcome of a chunk; ValueError, KeyError or TypeError for what ``outcomes_as_text`` does not write."""
    return tuple(
        Outcome(tuple(_read_part(part) for part in parts), int(pieces), int(chunks))
        for parts, pieces, chunks in json.loads(text)
    )


def _read_part(data: Sequence[Any]) -> BlockResult:
    evaluated, valid, fitting, rejected, missed, varied, rows, front = data
    return BlockResult(
        evaluated=int(evaluated),
        valid=int(valid),
        fitting=int(fitting),
        rejected=tuple(Rejected(*entry) for entry in rejected),
        missed=tuple(Rejected(*entry) for entry in missed),
        varied=tuple(Axis(path, tuple(map(_value, values))) for path, values in varied),
        rows=tuple(map(_read_row, rows)),
        front=tuple(map(_read_row, front)),
    )


def _read_row(data: Sequence[Any]) -> Row:
    order, change, point = data
    return Row(tuple(order), {path: _value(value) for path, value in change.items()}, tuple(point))


def _value(value: object) -> object:
    """Return a value of a plan's field: what is no single value there is never a list."""
    return tuple(map(_value, value)) if isinstance(value, list) else value


class Evaluator:
    """Evaluates chunks of one question."""

    def __init__(self, question: Question, catalog: Catalog, machine: Machine | None, cutting: Cutting) -> None:
        self._spaces, self._cutting = spaces_of(question, catalog, machine), cutting
        self._goal = goal_of(question)
        self._judge = Scorer(question, self._goal)
        self._begin = partial(TopK, question, self._goal, catalog, machine)
        self._made: tuple[int, tuple[Prepared | Refused, ...]] = (-1, ())

    def evaluated(self, chunk: Chunk, filled: Mapping[tuple[object, ...], Values]) -> tuple[Outcome, ...]:
        self._spaces.filled.update(filled)
        best = self._begin()
        if chunk.end:
            prepared = self._spaces_at(chunk.first)
            pieces = islice(_pieces(prepared), chunk.begin, chunk.end)
            return (Outcome(tuple(self._judged(pieces, best))),)
        return tuple(self._number(number, best) for number in range(chunk.first, chunk.last))

    def _number(self, number: int, best: TopK) -> Outcome:
        """Return the outcome of a number; one that is large is not evaluated, but says how large it is."""
        candidates = self._spaces_at(number)
        parts = [space_part(candidate) for candidate in candidates]
        spaces = [candidate.space for candidate in candidates if isinstance(candidate, Prepared)]
        pieces = sum(1 for _ in _pieces(candidates))
        chunks = self._cutting.chunks_of(pieces, sum(space.grid.size for space in spaces))
        if chunks > 1:
            return Outcome(tuple(parts), pieces, chunks)
        return Outcome((*parts, *self._judged(_pieces(candidates), best)))

    def _judged(self, pieces: Iterator[tuple[Prepared, LazyBlock]], best: TopK) -> Iterator[BlockResult]:
        """Yield the outcomes of pieces, without those behind the best so far."""
        for prepared, piece in pieces:
            part = self._judge.block_part(prepared, piece(), best.worst, best.front)
            best.add(part)
            yield part

    def _spaces_at(self, number: int) -> tuple[Prepared | Refused, ...]:
        if self._made[0] != number:
            self._made = (number, tuple(space for _, space in self._spaces.all(number, number + 1)))
        return self._made[1]


def _pieces(candidates: tuple[Prepared | Refused, ...]) -> Iterator[tuple[Prepared, LazyBlock]]:
    for candidate in candidates:
        if isinstance(candidate, Prepared):
            for piece in candidate.space.lazy_blocks():
                yield candidate, piece


PACKAGES = ("engine", "profiles")  # What a worker needs of the program
_SOURCES = frozenset({".py", ".pyi", ".yaml", ".csv", ".json", ".html"})
_USER_FILES = frozenset({".yaml", ".yml", ".json", ".csv", ".toml"})


@dataclass(frozen=True, slots=True)
class SearchEnvironment:
    """What must be alike where an answer is to be the same."""

    program: str  # digest of the program and its catalogue
    numpy: str
    plugins: tuple[str, ...]  # families of models that other packages add
    files: tuple[tuple[str, int], ...]  # size of each file that the question names; -1 for one that is not there

    def unlike(self, mine: SearchEnvironment) -> str:
        """Return in words what is not alike elsewhere, and what to do; nothing where all is."""
        where = f"on {platform.node()}"
        if self.numpy != mine.numpy:
            return f"NumPy {mine.numpy} {where}, {self.numpy} here; install the same"
        if lacking := sorted({*self.plugins} - {*mine.plugins}):
            return f"no model {lacking[0]} {where}; install the package that adds it"
        other_files = dict(mine.files)
        for name, size in self.files:
            if other_files.get(name) != size:
                return f"not the same {name} {where}; put it where all nodes see it"
        return "" if self.program == mine.program else f"another version of capacity-tui {where}; install the same"


def search_environment(question: Question) -> SearchEnvironment:
    """Return what an answer to a question rests on here."""
    named = (question.plan.model.config,) if question.plan.model.config else ()
    sizes = tuple((name, _size(Path(name))) for name in named)
    plugins = tuple(sorted(entry.name for entry in entry_points(group=GROUP)))
    return SearchEnvironment(_program_digest(), np.__version__, plugins, sizes)


def files_of_user() -> dict[str, bytes]:
    """Return the user's own files that estimates rest on, by their path below the folder of what the user writes."""
    home = config_folder()
    paths = (path for path in home.rglob("*") if path.suffix in _USER_FILES and path.is_file()) if home.is_dir() else ()
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in sorted(paths)}


def catalog_of(user_files: Mapping[str, bytes]) -> Catalog:
    """Return the catalogue with the user's files laid over it, wherever these come from.

    They are written into a folder that the process keeps, and that is what the user writes for it from then on.
    """
    home = Path(tempfile.mkdtemp(prefix="capacity-tui-"))
    for name, content in user_files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    os.environ[CONFIG_VARIABLE] = str(home)
    return Catalog(home / "catalog", fleet_files_below(home))


def sources() -> Iterator[tuple[str, Path]]:
    """Yield the files of the program that a worker needs, by their path in the package."""
    for package in PACKAGES:
        root = Path(str(files(f"capacity_tui.{package}")))
        for path in sorted(root.rglob("*")):
            if path.suffix in _SOURCES and path.is_file():
                yield f"{package}/{path.relative_to(root).as_posix()}", path


@cache
def _program_digest() -> str:
    digest = sha256()
    for name, path in sources():
        digest.update(f"{name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


@dataclass(frozen=True, slots=True)
class Work:
    """What all chunks of a search have in common."""

    question: Question
    machine: Machine | None  # the detected machine, for plans that run on it
    user_files: Mapping[str, bytes]  # the user's own files, by their path below the folder of what the user writes
    rests_on: SearchEnvironment
    cutting: Cutting


def evaluate(work: bytes, chunk: tuple[int, int, int, int], filled: bytes) -> tuple[str, str]:
    """Return the outcome of a chunk, as text; or what is not alike here, in words, as the second of the pair."""
    evaluator, unlike = _prepared(work)
    if unlike:
        return "", unlike
    # Both were pickled by the program that asks, and came through the same cluster as this code.
    return outcomes_as_text(evaluator.evaluated(Chunk(*chunk), pickle.loads(filled))), ""  # noqa: S301


@lru_cache(maxsize=4)
def _prepared(work: bytes) -> tuple[Evaluator, str]:
    """Return what evaluates the chunks of a search; of a few, since a warm worker may get those of several by turns."""
    unpickled: Work = pickle.loads(work)  # noqa: S301 - as above
    evaluator = Evaluator(unpickled.question, catalog_of(unpickled.user_files), unpickled.machine, unpickled.cutting)
    return evaluator, unpickled.rests_on.unlike(search_environment(unpickled.question))
