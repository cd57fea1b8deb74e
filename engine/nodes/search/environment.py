"""The environment of an answer: the same question, program, catalogue and files give the same answer."""

from __future__ import annotations

import os
import pickle
import platform
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.fleet_files import fleet_files_below
from capacity_tui.engine.files import CONFIG_VARIABLE, config_folder
from capacity_tui.engine.models import GROUP
from capacity_tui.engine.nodes.search.chunks import Chunk, Cutting, Evaluator, outcomes_as_text
from capacity_tui.engine.solve.search import Question

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

PACKAGES = ("engine", "profiles")
"""What a worker needs of the program."""
_SOURCES = frozenset({".py", ".pyi", ".yaml", ".csv", ".json", ".html"})
_USER_FILES = frozenset({".yaml", ".yml", ".json", ".csv", ".toml"})


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What must be alike where an answer is to be the same.

    Attributes:
        program: digest of the program and its catalogue.
        plugins: families of models that other packages add.
        files: size of each file that the question names; -1 for one that is not there.
    """

    program: str
    numpy: str
    plugins: tuple[str, ...]
    files: tuple[tuple[str, int], ...]

    def unlike(self, mine: Circumstances) -> str:
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


def circumstances(question: Question) -> Circumstances:
    """Return what an answer to a question rests on here."""
    named = (question.plan.model.config,) if question.plan.model.config else ()
    sizes = tuple((name, _size(Path(name))) for name in named)
    plugins = tuple(sorted(entry.name for entry in entry_points(group=GROUP)))
    return Circumstances(_program_digest(), np.__version__, plugins, sizes)


def own_files() -> dict[str, bytes]:
    """Return the user's own files that estimates rest on, by their path below the folder of what the user writes."""
    home = config_folder()
    paths = (path for path in home.rglob("*") if path.suffix in _USER_FILES and path.is_file()) if home.is_dir() else ()
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in sorted(paths)}


def catalog_of(user_files: Mapping[str, bytes]) -> Catalog:
    """Return the catalogue with somebody's own files laid over it, wherever these come from.

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
    """What all chunks of a search have in common.

    Attributes:
        machine: the detected machine, for plans that run on it.
        own_files: the user's own files, by their path below the folder of what the user writes.
        rests_on: what must be alike.
    """

    question: Question
    machine: Machine | None
    own_files: Mapping[str, bytes]
    rests_on: Circumstances
    cutting: Cutting


def evaluate(work: bytes, chunk: tuple[int, int, int, int], filled: bytes) -> tuple[str, str]:
    """Return what a chunk came to, as text; or what is not alike here, in words, as the second of the pair."""
    evaluator, unlike = _prepared(work)
    if unlike:
        return "", unlike
    # Both were pickled by the program that asks, and came through the same cluster as this code.
    return outcomes_as_text(evaluator.evaluated(Chunk(*chunk), pickle.loads(filled))), ""  # noqa: S301


@lru_cache(maxsize=1)
def _prepared(work: bytes) -> tuple[Evaluator, str]:
    unpickled: Work = pickle.loads(work)  # noqa: S301 - as above
    evaluator = Evaluator(unpickled.question, catalog_of(unpickled.own_files), unpickled.machine, unpickled.cutting)
    return evaluator, unpickled.rests_on.unlike(circumstances(unpickled.question))
