"""One value for each field that files of other tools and the command line speak of, and what contradicts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.said import LEVELS, Said

FRAMEWORK = Key.TRAINING_FRAMEWORK
_RANKED = {FRAMEWORK}
"""Fields of which several values are no contradiction: rules of derived.py choose."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Settings that contradict each other.

    Attributes:
        rule: stable name of what is contradicted.
        title: what is wrong, in words.
        detail: the settings, each with its place.
        places: where they stand.
    """

    rule: str
    title: str
    detail: str
    places: tuple[Place, ...] = ()


@dataclass(slots=True)
class Settings:
    """What all files and the command line say together, by field and by quantity.

    Attributes:
        all: everything that is said, the strongest first.
        keeps: whether a comment keeps the plan that the files were written for.
        said: the value that counts.
        clashes: what contradicts it.
    """

    all: Mapping[str, Sequence[Said]]
    keeps: bool = False
    said: dict[str, Said] = field(default_factory=dict)
    clashes: list[Clash] = field(default_factory=list)

    def value(self, name: str, otherwise: object = None) -> object:
        """Return the value of a field or quantity."""
        found = self.said.get(name)
        return otherwise if found is None else found.value

    def count(self, name: str, otherwise: int | None = None) -> int | None:
        """Return a whole number.

        Raises:
            PlanError: it is none.
        """
        found = self.said.get(name)
        if found is None:
            return otherwise
        value = found.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 or value < 0:
            raise PlanError("not allowed", repr(value)[:60], "allowed: a whole number", found.place)
        return int(value)

    def is_given(self, name: str) -> bool:
        """Whether an option or the command line says something, not a tool that goes without."""
        found = self.said.get(name)
        return found is not None and found.level != "default"

    def derive(self, name: str, value: object, why: str) -> None:
        """Set what follows from others."""
        self.said[name] = Said(name, value, Place(), why, level="derived")

    def clash(self, rule: str, title: str, names: Sequence[str]) -> None:
        """Keep that settings contradict each other."""
        given = (self.said.get(name) or next(iter(self.all.get(name, ())), None) for name in names)
        found = [each for each in given if each is not None]
        detail = "; ".join(each.words for each in found)
        self.clashes.append(Clash(rule, title, detail, tuple(each.place for each in found)))


def chosen(said: Sequence[Said]) -> Settings:
    """Return one value for every field that something is said of; options that differ are a clash."""
    by_field: dict[str, list[Said]] = {}
    keeps = any(each.level == "kept" for each in said)
    for each in said:
        # A plan that is kept says all; what a tool does without an option is among it.
        if keeps and each.level == "default" and "." in each.field:
            continue
        by_field.setdefault(each.field, []).append(each)
    ranked = {name: sorted(entries, key=lambda each: LEVELS.index(each.level)) for name, entries in by_field.items()}
    settings = Settings(ranked, keeps)
    for name, entries in ranked.items():
        alike = [each for each in entries if each.level == entries[0].level]
        # Of words that stand for several values the one counts that says most.
        first = next((each for each in alike if all(_allows(other, each) for other in alike)), entries[0])
        settings.said[name] = _kept_word(first, entries)
        differing = [each for each in alike if not _allows(each, first)]
        if differing and first.level == "said" and name not in _RANKED:
            words = "; ".join(each.words for each in (first, *differing))
            places = tuple(each.place for each in (first, *differing))
            settings.clashes.append(Clash("given_twice", f"{name} is given twice", words, places))
    return settings


def _allows(one: Said, other: Said) -> bool:
    """Whether an option's word is also written for the value of another."""
    return other.value in (one.value, *one.besides)


def _kept_word(first: Said, others: Sequence[Said]) -> Said:
    """Return what a comment keeps where the option's own word is written for that too."""
    kept = next((each for each in others if each.level == "kept"), None)
    return kept if kept is not None and first.level == "said" and kept.value in first.besides else first


def is_kept(said: Said | None) -> bool:
    """Whether a value comes from a comment: options that were changed since go before it."""
    return said is not None and said.level == "kept"
