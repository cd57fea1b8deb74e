"""What options of other tools mean in a plan, for reading and writing their files: ``profiles/tools/*.yaml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from capacity_tui.engine.catalog.parsed import parse_shipped

NOTHING: Final = object()
"""The default of an option that has none."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a tool that a plan has a word for.

    Attributes:
        name: as the tool calls it; dots lead into its sections.
        path: plan field that it sets, or a quantity that fields follow from (``derived.py``); empty where its values
            name fields themselves.
        values: what its words stand for: a value of the field, of several the first (the others are written as this
            word too), several values by field, or None for nothing.
        unmodelled: words that change a run and that no plan has a word for, and why.
        meaning: the function of ``meanings.py`` that reads its value; empty for a number, or a word of ``values``.
        default: the tool's own value where the option is left out.
        tool: whose options stand below this one, or in the file that it names.
        sets: what it says by being there.
    """

    name: str
    path: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    unmodelled: Mapping[str, str] = field(default_factory=dict, hash=False)
    meaning: str = ""
    default: object = NOTHING
    tool: str = ""
    sets: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool whose configurations are read.

    Attributes:
        id: the name of its file.
        name: for people, with the version its names are of.
        source: where its names and defaults were read.
        form: ``document`` for YAML, JSON and TOML, ``command`` for options of a command line.
        signs: options, or words of a command, that tell its files from others.
        options: what a plan has words for, by name.
        other_names: further names of options.
        sets: what every file of the tool says.
        defaults: what the tool does where no option says otherwise.
        unmodelled: options that change a run and that no plan has a word for, and why.
        ignored: options without a part in an estimate, and sections of them.
    """

    id: str
    name: str
    source: str
    form: str
    signs: tuple[str, ...]
    options: Mapping[str, Option] = field(hash=False)
    other_names: Mapping[str, str] = field(hash=False)
    sets: Mapping[str, Any] = field(hash=False)
    defaults: Mapping[str, Any] = field(hash=False)
    unmodelled: Mapping[str, str] = field(hash=False)
    ignored: frozenset[str]

    @property
    def short_name(self) -> str:
        """Its name without the version."""
        return self.name.rstrip("0123456789. ")

    def knows(self, name: str) -> bool:
        """Whether the tool has an option, or a section, of a name."""
        named = self.other_names.get(name, name)
        return named in self.known or any(known.startswith(f"{named}.") for known in self.known)

    @property
    def known(self) -> Collection[str]:
        """The names of its options."""
        return {*self.options, *self.unmodelled, *self.ignored}

    def words(self, option: str) -> Mapping[object, str]:
        """Return the words of an option by what they mean in a plan; of several that mean the same, the first."""
        found: dict[object, str] = {}
        for word, value in self.options[option].values.items():
            for each in value if isinstance(value, list) else [value]:
                if not isinstance(each, dict | None):
                    found.setdefault(each, word)
        return found


def word_of(value: object) -> str:
    """Return a value as the tables write it: small letters, true and false."""
    return "null" if value is None else str(value).strip().casefold()


@cache
def tools() -> Mapping[str, Tool]:
    """Return the tools by id."""
    folder = files("capacity_tui.profiles") / "tools"
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".yaml"))
    return {name.removesuffix(".yaml"): _tool(name.removesuffix(".yaml")) for name in found}


@cache
def _tool(name: str) -> Tool:
    rows = parse_shipped(files("capacity_tui.profiles") / "tools" / f"{name}.yaml")
    options = {option: _option(option, row) for option, row in rows.get("options", {}).items()}
    written = {option: row.get("also", ()) for option, row in rows.get("options", {}).items() if isinstance(row, dict)}
    return Tool(
        id=name,
        name=rows["name"],
        source=rows["source"],
        form=rows.get("form", "document"),
        signs=tuple(rows.get("signs", ())),
        options=options,
        other_names={other: option for option, others in written.items() for other in others},
        sets=rows.get("sets", {}),
        defaults=rows.get("defaults", {}),
        unmodelled=rows.get("unmodelled", {}),
        ignored=frozenset(rows.get("ignored", ())),
    )


def tool(name: str) -> Tool:
    """Return one tool."""
    return _tool(name)


def _option(name: str, row: str | Mapping[str, Any]) -> Option:
    if isinstance(row, str):
        return Option(name, row)
    return Option(
        name=name,
        path=row.get("field", ""),
        values={str(word): value for word, value in row.get("values", {}).items()},
        unmodelled={str(word): why for word, why in row.get("unmodelled", {}).items()},
        meaning=row.get("meaning", ""),
        default=row.get("default", NOTHING),
        tool=row.get("tool", ""),
        sets=row.get("sets", {}),
    )
