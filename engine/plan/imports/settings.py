"""One setting for each field from all files and the command line, and settings that contradict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.setting import LEVELS, ImportedSetting, Level

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
    """The settings of all files and the command line, by field and by quantity.

    Attributes:
        all: every setting, the strongest first.
        keeps: whether a comment keeps the plan that the files were written for.
        chosen: the setting that counts.
        clashes: settings that contradict each other.
    """

    all: Mapping[str, Sequence[ImportedSetting]]
    keeps: bool = False
    chosen: dict[str, ImportedSetting] = field(default_factory=dict)
    clashes: list[Clash] = field(default_factory=list)

    def value(self, name: str, otherwise: object = None) -> object:
        """Return the value of a field or quantity."""
        setting = self.chosen.get(name)
        return otherwise if setting is None else setting.value

    def count(self, name: str, otherwise: int | None = None) -> int | None:
        """Return a whole number.

        Raises:
            PlanError: invalid.
        """
        setting = self.chosen.get(name)
        if setting is None:
            return otherwise
        value = setting.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 or value < 0:
            raise PlanError("not allowed", repr(value)[:60], "allowed: a whole number", setting.place)
        return int(value)

    def is_given(self, name: str) -> bool:
        """Whether it is set by more than a tool's default."""
        setting = self.chosen.get(name)
        return setting is not None and setting.level != "default"

    def set(self, name: str, value: object, source: ImportedSetting, level: Level = "said") -> None:
        """Set a field from the option of another name."""
        self.chosen[name] = ImportedSetting(name, value, source.place, source.text, source.tool, level)

    def derive(self, name: str, value: object, why: str) -> None:
        """Set a field from several others."""
        self.chosen[name] = ImportedSetting(name, value, Place(), why, level="derived")

    def clash(self, rule: str, title: str, names: Sequence[str]) -> None:
        """Note that settings contradict each other."""
        candidates = (self.chosen.get(name) or next(iter(self.all.get(name, ())), None) for name in names)
        settings = [setting for setting in candidates if setting is not None]
        detail = "; ".join(setting.words for setting in settings)
        self.clashes.append(Clash(rule, title, detail, tuple(setting.place for setting in settings)))


def strongest_settings(imported: Sequence[ImportedSetting]) -> Settings:
    """Return the strongest setting of every field; options that differ are a clash."""
    by_field: dict[str, list[ImportedSetting]] = {}
    keeps = any(setting.level == "kept" for setting in imported)
    for setting in imported:
        # A kept plan is complete: it includes the defaults of the tool.
        if keeps and setting.level == "default" and "." in setting.field:
            continue
        by_field.setdefault(setting.field, []).append(setting)
    ranked = {name: sorted(entries, key=lambda entry: LEVELS.index(entry.level)) for name, entries in by_field.items()}
    settings = Settings(ranked, keeps)
    for name, entries in ranked.items():
        equals = [entry for entry in entries if entry.level == entries[0].level]
        # Of words that stand for several values the one counts that says most.
        first = next((one for one in equals if all(_allows(other, one) for other in equals)), entries[0])
        settings.chosen[name] = _kept_word(first, entries)
        differing = [entry for entry in equals if not _allows(entry, first)]
        if differing and first.level == "said" and name not in _RANKED:
            words = "; ".join(entry.words for entry in (first, *differing))
            places = tuple(entry.place for entry in (first, *differing))
            settings.clashes.append(Clash("given_twice", f"{name} is given twice", words, places))
    return settings


def _allows(one: ImportedSetting, other: ImportedSetting) -> bool:
    """Whether an option's word is also written for the value of another."""
    return other.value in (one.value, *one.besides)


def _kept_word(first: ImportedSetting, others: Sequence[ImportedSetting]) -> ImportedSetting:
    """Return what a comment keeps where the option's own word is written for that too."""
    kept = next((other for other in others if other.level == "kept"), None)
    return kept if kept is not None and first.level == "said" and kept.value in first.besides else first


def is_kept(setting: ImportedSetting | None) -> bool:
    """Whether a value comes from a comment: options that were changed since go before it."""
    return setting is not None and setting.level == "kept"
