"""Settings read from files of other tools, each with file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.options.tools import Tool
from capacity_tui.engine.record import dataclass

Level: TypeAlias = Literal["typed", "said", "kept", "base", "default", "derived"]
"""Origin of a setting, the strongest first: typed on the command line; an option in a file; the comment of an exported
file; the plan that files are laid over; the tool's default. Settings derived from others come last."""

LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class ImportedSetting:
    """A value for a field of a plan, or for a quantity that fields are derived from."""

    field: str  # plan field, or quantity
    value: object
    place: Place  # file, line and the option's name
    text: str = ""  # as written in the file, or what it is derived from
    tool: str = ""  # the tool's id; empty where no tool sets it
    level: Level = "said"  # origin
    besides: tuple[object, ...] = ()  # further values that the same word stands for

    @property
    def words(self) -> str:
        """Where it comes from, for people."""
        key = self.place.field or ""
        stands = ":".join(str(part) for part in (self.place.file, self.place.line) if part is not None)
        if self.level == "typed":
            return key or "typed"
        if self.level == "derived":
            return self.text
        if self.level == "default" and not key:
            return f"{stands}: the tool's default"
        if self.level == "default" and self.place.line is None:
            return f"{stands}: not given, {key} is {self.text} by default"
        return f"{stands}: {key} {self.text}".rstrip() if key else f"{stands}: a file of this tool"


@dataclass(frozen=True, slots=True)
class Remark:
    """An option that sets nothing in the plan."""

    place: Place  # file, line and the option's name
    why: str = ""  # what is not counted, or the options that may be meant


@dataclass(slots=True)
class Reading:
    """What was read from one file."""

    file: str  # its name as the user gave it
    tool: Tool
    settings: list[ImportedSetting] = field(default_factory=list)  # in the order of the file; defaults last
    ignored: list[Place] = field(default_factory=list)  # options that no estimate depends on
    unmodelled: list[Remark] = field(default_factory=list)  # options that change a run and that plans have no word for
    unknown: list[Remark] = field(default_factory=list)  # options that the tool does not have
    named: list[tuple[Path, Place, str]] = field(default_factory=list)  # files that it refers to, and the tool of each
    written: Mapping[str, str] = field(default_factory=dict)  # texts of files that it writes itself, by their names
    started: Set[Path] = field(default_factory=set)  # scripts that it reads in or starts

    @property
    def given(self) -> list[tuple[str, object]]:
        """What options of the file set, by field."""
        return [(one.field, one.value) for one in self.settings if one.level == "said"]

    def words_of_unknown(self, remark: Remark) -> str:
        """Return what to say of an option that the list of the tool's options lacks."""
        known = f"not among the options known of {self.tool.name}"
        return f"{known}; did you mean {remark.why}?" if remark.why else f"{known}: newer, or of a plug-in"


def settings_from(values: Mapping[str, object], source: ImportedSetting) -> Iterator[ImportedSetting]:
    """Yield a setting for each value by field, with place, text and level of the option they are read from."""
    for name, value in values.items():
        first, *besides = value if isinstance(value, list) else [value]
        yield replace(source, field=name, value=first, besides=tuple(besides))


FRAMEWORK = Key.TRAINING_FRAMEWORK

_RANKED = {
    FRAMEWORK,
    "cut_length",
    "loaded_in",
    "loop_batch",
    "loop_rate",
    "loop_precision",
    "processes",  # those of a command go before those of the file that it names
}  # Several values are no contradiction: rules of derived.py choose


@dataclass(frozen=True, slots=True)
class Clash:
    """Settings that contradict each other."""

    rule: str  # stable name of what is contradicted
    title: str  # what is wrong, in words
    detail: str  # the settings, each with its place
    places: tuple[Place, ...] = ()  # where they stand


@dataclass(slots=True)
class Settings:
    """The settings of all files and the command line, by field and by quantity."""

    all: Mapping[str, Sequence[ImportedSetting]]  # every setting, the strongest first
    keeps: bool = False  # whether a comment keeps the plan that the files were written for
    chosen: dict[str, ImportedSetting] = field(default_factory=dict)  # the setting that counts
    clashes: list[Clash] = field(default_factory=list)  # settings that contradict each other
    remarks: list[Remark] = field(default_factory=list)  # what is counted in place of what several of them say

    def value(self, name: str, otherwise: object = None) -> object:
        """Return the value of a field or quantity."""
        setting = self.chosen.get(name)
        return otherwise if setting is None else setting.value

    def count(self, name: str, otherwise: int | None = None) -> int | None:
        """Return a whole number; raises PlanError where it is none."""
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

    def is_begun_with(self, name: str) -> bool:
        """Whether a program or a function that a file calls gives it."""
        setting = self.chosen.get(name)
        return setting is not None and setting.level == "default" and setting.place.field is None and bool(setting.text)

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


_ZERO, _PP, _OFFLOAD = Key.PARALLELISM_ZERO, Key.PARALLELISM_PP, Key.PARALLELISM_OFFLOAD

_CHECKPOINTING, _TOKENS = Key.TRAINING_CHECKPOINTING, Key.INFERENCE_MAX_NUM_BATCHED_TOKENS


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Options that cannot go together."""

    rule: str  # stable name
    words: str  # what is wrong
    names: tuple[str, ...]  # fields and quantities that show it
    holds: Callable[[Settings], bool]  # whether settings are so


def _above(settings: Settings, name: str, than: str) -> bool:
    """Whether one number that is given lies above another."""
    if not (settings.is_given(name) and settings.is_given(than)):
        return False
    return (settings.count(name) or 0) > (settings.count(than) or 0)


def _deepspeed(settings: Settings) -> bool:
    return settings.value(FRAMEWORK) == "deepspeed"


def _stage(settings: Settings) -> int:
    return settings.count(_ZERO, 0) or 0


CONTRADICTIONS = (
    Contradiction(
        "sharding_with_stages",
        "DeepSpeed runs pipeline stages only with ZeRO 0 and 1",
        (_ZERO, _PP),
        lambda settings: _deepspeed(settings) and _stage(settings) >= 2 and (settings.count(_PP, 1) or 1) > 1,
    ),
    Contradiction(
        "offload_without_sharding",
        "DeepSpeed offloads the optimizer with ZeRO 1 and up, parameters only with ZeRO 3",
        (_OFFLOAD, _ZERO),
        lambda settings: (
            _deepspeed(settings)
            and _stage(settings) < {"optimizer": 1, "parameters": 3}.get(str(settings.value(_OFFLOAD)), 0)
        ),
    ),
    Contradiction(
        "recomputation_off",
        "how layers are recomputed is set, but recomputation is off",
        ("how_recomputed", _CHECKPOINTING),
        lambda settings: bool(settings.value("how_recomputed")) and settings.value(_CHECKPOINTING, "none") == "none",
    ),
    Contradiction(
        "tokens_below_requests",
        "a pass takes fewer tokens than requests run at once",
        (_TOKENS, "running"),
        lambda settings: _above(settings, "running", _TOKENS),
    ),
    Contradiction(
        "beyond_positions",
        "sequences are longer than the positions of the model",
        (Key.TRAINING_SEQ_LEN, "shape.max_context"),
        lambda settings: _above(settings, Key.TRAINING_SEQ_LEN, "shape.max_context"),
    ),
    Contradiction(
        "heads_of_width",
        "the attention heads do not divide the width of the model",
        ("shape.heads", "shape.hidden"),
        lambda settings: (
            settings.is_given("shape.heads")
            and "shape.head_dim" not in settings.chosen
            and bool((settings.count("shape.hidden", 0) or 0) % (settings.count("shape.heads", 1) or 1))
        ),
    ),
    Contradiction(
        "chunks_without_stages",
        "pieces of stages take turns, but there is one stage",
        ("chunk_layers", _PP),
        lambda settings: bool(settings.value("chunk_layers")) and (settings.count(_PP, 1) or 1) == 1,
    ),
    Contradiction(
        "adapter_without_method",
        "options of adapters are set, but all weights are trained",
        (Key.TRAINING_METHOD, Key.TRAINING_ADAPTER_RANK),
        lambda settings: (
            settings.value(Key.TRAINING_METHOD) in (None, "full")
            and any(entry.level == LEVELS[1] for entry in settings.all.get(Key.TRAINING_ADAPTER_RANK, ())[:1])
        ),
    ),
)


def find_contradictions(settings: Settings) -> None:
    """Add the contradictions that hold to the settings."""
    for contradiction in CONTRADICTIONS:
        if contradiction.holds(settings):
            settings.clash(contradiction.rule, contradiction.words, contradiction.names)
