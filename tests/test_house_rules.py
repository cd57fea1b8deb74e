"""What keeps the code readable for whoever takes it over: plain names, and modules and folders of a size to survey.

Each allowance is what was there when the rule began. It only ever shrinks: whoever lowers a number lowers it here too.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
from sources import ROOT, identifiers_of, name_of, nodes_of, source_files, text_of

from capacity_tui.engine.door import public_names

LONGEST_MODULE = 400
MOST_FILES = 15
# Words that say nothing of what they name, by what to write instead.
VAGUE = {
    "asking": "query",
    "beside": "alongside",
    "each": "the item's name: layer, device, row",
    "found": "match, result, value",
    "said": "setting, value",
    "taking": "the noun that is taken",
    "told": "reported, given, event",
}
# Names that hold such words as standard terms do (command not found), by room.
VAGUE_NAMES: dict[str, int] = {"engine/machine": 1, "engine/runs": 3}


def words_of(name: str) -> set[str]:
    """Return the words of an identifier, in small letters."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def room_of(name: str) -> str:
    """Return the room of a file: the first two folders of its path, or the one there is."""
    return "/".join(name.split("/")[:-1][:2])


@pytest.mark.parametrize("folder", ["engine", "tui", "tests", "tools", "benchmarks", "screenshots"])
def test_no_file_is_longer_than_a_reader_can_survey(folder: str) -> None:
    lines = {name_of(file): len(text_of(file).splitlines()) for file in source_files(folder)}
    assert {name: count for name, count in lines.items() if count > LONGEST_MODULE} == {}


@pytest.mark.parametrize("folder", ["engine", "tui"])
def test_no_folder_is_wider_than_a_reader_can_survey(folder: str) -> None:
    files = Counter(name_of(file).rpartition("/")[0] for file in source_files(folder))
    assert {name: count for name, count in files.items() if count > MOST_FILES} == {}


def test_no_two_files_of_tests_have_one_name() -> None:
    """As the whole suite is collected, the second would be taken for the first."""
    names = Counter(file.name for file in source_files("tests") if file.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("folder", ["engine", "tui"])
def test_names_say_what_they_name(folder: str) -> None:
    vague: dict[str, list[str]] = {}
    for file in source_files(folder):
        name = name_of(file)
        for line, identifier in identifiers_of(file):
            if not VAGUE.keys().isdisjoint(words_of(identifier)):
                vague.setdefault(room_of(name), []).append(f"{name}:{line} {identifier}")
    over = {room: names for room, names in vague.items() if len(names) > VAGUE_NAMES.get(room, 0)}
    assert over == {}, f"a name of a thing of its field instead: {VAGUE}"


@pytest.mark.parametrize("folder", ["engine", "tui", "tools", "benchmarks", "screenshots"])
def test_fields_are_explained_beside_them_and_in_docstrings_only_where_help_shows_them(folder: str) -> None:
    shown = {name for _, name in public_names(ROOT / "engine" / "__init__.pyi").values()}
    listing = [
        f"{name_of(file)}:{node.lineno} {node.name}"
        for file in source_files(folder)
        for node in nodes_of(file)
        if isinstance(node, ast.ClassDef) and node.name not in shown
        if "Attributes:" in (ast.get_docstring(node) or "")
    ]
    assert listing == [], "a comment behind each field instead"
