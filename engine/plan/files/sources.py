"""Where plans come from: files, pipes, standard input, examples and saved plans by name."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from capacity_tui.engine.catalog import Document, load_catalog, nearest, read_stream, read_yaml
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.files import reading_error
from capacity_tui.engine.plan.files.loading import example_names, example_text, place_in_document, plan_from_document
from capacity_tui.engine.plan.files.saved import dump_plan, list_plans
from capacity_tui.engine.plan.line.lexicon.words import Asked, Assumption
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.record import dataclass

STANDARD_INPUT = "-"
_OF_AN_ANSWER = {"plan", "fits", "verdict"}
_PLAN_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class PlanSource:
    """A plan that was read but not yet checked."""

    document: Document  # its data, with the line of each key
    folder: Path | None = None  # where a model file that it names may lie; None for what has no folder
    made: Plan | None = None  # the plan itself where the document does not say all of it; None where it does
    # places of fields that come from files of other tools
    places: Mapping[str, Place] = field(default_factory=dict, hash=False)
    assumed: tuple[Assumption, ...] = ()  # what a line leaves open
    not_understood: tuple[str, ...] = ()  # words, keys and options that have no meaning in the plan
    asked: Asked | None = None  # what a line asks that its plan does not say

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        name: str,
        places: Mapping[str, Place] | None = None,
        assumed: tuple[Assumption, ...] = (),
        not_understood: tuple[str, ...] = (),
        asked: Asked | None = None,
    ) -> PlanSource:
        """Return a plan that no document says, under a name for messages."""
        document = Document(read_yaml(dump_plan(plan)).data, name)
        return cls(document, None, plan, places or {}, assumed, not_understood, asked)

    def plan(self) -> Plan:
        """Return the plan; raises PlanError if it is not one: with file, line, field and what is allowed."""
        return self.made or plan_from_document(self.document, self.folder)

    def placed(self, error: CapacityError) -> CapacityError:
        """Return an error found after reading, which knows its field, with file and line."""
        if error.place.file is not None:
            return error
        known = self.places.get(error.place.field or "")
        place = known or place_in_document(self.document, error.place.field)
        return type(error)(error.title, error.detail, error.hint, place)


def read_source(name: str, standard_input: BinaryIO | None = None) -> PlanSource:
    """Read a plan by what a person calls it.

    Args:
        name: a file or pipe, the name of an example or of a saved plan, or ``-`` for standard input.
        standard_input: what ``-`` reads.

    Raises:
        StorageError: the file cannot be read.
        DocumentError: it is too large, not text or not YAML.
        PlanError: nothing is called that.
    """
    if name == STANDARD_INPUT and standard_input is not None:
        try:
            return PlanSource(_plan_in(read_yaml(read_stream(standard_input, "<stdin>"), "<stdin>")))
        except OSError as error:
            raise reading_error(error, Path("<stdin>")) from error
    path = Path(name)
    try:
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            with path.open("rb") as stream:
                return PlanSource(_plan_in(read_yaml(read_stream(stream, name), name)))
    except FileNotFoundError:
        located = locate_plan(name)
        if isinstance(located, Path):
            return _read_file(located)
        return PlanSource(read_yaml(example_text(located), located))
    except (OSError, ValueError) as error:
        raise reading_error(error, path) from error
    return _read_file(path)


def locate_plan(name: str) -> Path | str:
    """Return the file that a person means: one by its path, or a saved plan by its name; or the name of an example.

    Raises:
        StorageError: there is no such file, or it cannot be reached.
        PlanError: nothing is called that.
    """
    try:
        if Path(name).exists():
            return Path(name)
    except (OSError, ValueError) as error:
        raise reading_error(error, Path(name)) from error
    if name in example_names():
        return name
    saved = {plan.name: plan.path for plan in list_plans()}
    if name in saved:
        return saved[name]
    if load_catalog().architectures.find_id(name) is not None:
        hint = f'it is a model: say what is done with it and where, as in "train {name} on 8xh100"'
        raise PlanError("no such plan", hint=hint, place=Place(name))
    if "/" in name or name.endswith(_PLAN_SUFFIXES):
        raise _missing_file(Path(name))
    close = nearest(name, (*example_names(), *saved), 1)
    hint = f"did you mean {close[0]}?" if close else "`capacity-tui examples` lists plans that come with the program"
    raise PlanError("no such file, example or saved plan", hint=hint, place=Place(name))


def may_be_line(name: str) -> bool:
    """Return whether a name is some words, such as a plan in a line; and no file, example or saved plan.

    Kana and ideographs are words that no space parts, unless they name a file by its ending.
    """
    is_file = Path(name).suffix[1:].isascii() and Path(name).suffix[1:].isalnum()
    has_words = not is_file and any("\u3040" <= character <= "\u9fff" for character in name)
    if not (has_words or any(map(str.isspace, name.strip()))):
        return False
    try:
        if Path(name).exists():
            return False
        locate_plan(name)
    except (OSError, ValueError, CapacityError):
        return True
    return False


def _missing_file(path: Path) -> CapacityError:
    """Return what to say of a file that is not there; examples are there by name, and can be written to a folder."""
    error = reading_error(FileNotFoundError(2, "No such file or directory"), path)
    if path.stem not in example_names():
        return error
    folder = f" {path.parent}" if str(path.parent) != "." else " ."
    hint = f"the example is called {path.stem}, without a path; `capacity-tui examples --write{folder}` writes its file"
    return type(error)(error.title, error.detail, hint, error.place)


def _read_file(path: Path) -> PlanSource:
    return PlanSource(_plan_in(read_yaml(path)), path.parent)


def _plan_in(document: Document) -> Document:
    """Return the plan that an answer begins with, as ``plan -o answer.yaml`` writes it; of others the document."""
    data = document.data
    if not (isinstance(data, Mapping) and data.keys() >= _OF_AN_ANSWER):
        return document
    lines = {path[1:]: line for path, line in document.lines.items() if path[0] == "plan" and len(path) > 1}
    return Document(data["plan"], document.file, lines)
