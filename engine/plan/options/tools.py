"""What options of other tools mean in a plan, for reading and writing their files: ``profiles/tools/*.yaml``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any, Final

from capacity_tui.engine.catalog import KeyPath, Plain, load_catalog, parse_shipped
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.sections import Targets
from capacity_tui.engine.record import dataclass

RECIPE = "recipe"  # The option of tools whose configurations functions make, that is named as these are

_RELEASE = re.compile(r"\s+\d[\d.]*$")  # What a name for people ends with

_SHARED = ("options", "unmodelled", "defaults", "models")  # What a tool has of another one that it is like

NOTHING: Final = object()  # The default of an option that has none


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a tool that a plan has a word for."""

    name: str  # as the tool calls it; dots lead into its sections
    # plan field that it sets, or a quantity that fields follow from (``derived.py``); empty where its values name
    # fields themselves
    path: str = ""
    # what its words stand for: a value of the field, of several the first (the others are written as this word too),
    # several values by field, or None for nothing
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    # words that change a run and that no plan has a word for, and why
    unmodelled: Mapping[str, str] = field(default_factory=dict, hash=False)
    # the function of ``meanings.py`` that reads its value; empty for a number, or a word of ``values``
    meaning: str = ""
    default: object = NOTHING  # the tool's own value where the option is left out
    tool: str = ""  # whose options stand below this one, or in the file that it names
    sets: Mapping[str, Any] = field(default_factory=dict, hash=False)  # what it says by being there


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool whose configurations are read."""

    id: str  # the name of its file
    name: str  # for people, with the version its names are of
    source: str  # where its names and defaults were read
    signs: tuple[str, ...]  # options that tell its files from others
    programs: tuple[str, ...]  # words by which a command starts it
    options: Mapping[str, Option] = field(hash=False)  # what a plan has words for, by name
    other_names: Mapping[str, str] = field(hash=False)  # further names of options
    sets: Mapping[str, Any] = field(hash=False)  # what every file of the tool says
    defaults: Mapping[str, Any] = field(hash=False)  # what the tool does where no option says otherwise
    # options that change a run and that no plan has a word for, and why
    unmodelled: Mapping[str, str] = field(hash=False)
    ignored: frozenset[str]  # options without a part in an estimate, and sections of them
    # what the tool calls models, by their names on the model hub
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    calls: tuple[str, ...] = ()  # functions and classes of Python whose arguments its options are
    libraries: frozenset[str] = frozenset()  # what those are imported from; empty where that may be any
    # what programs, classes and functions of the tool say by being called, by their names
    starters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    serves: tuple[str, ...] = ()  # words in the name of a program that generates or evaluates rather than trains
    # options of which a file that trains has one; empty where its files are of one task
    trained_by: tuple[str, ...] = ()
    argument: str = ""  # the option whose value stands alone behind a program
    runs: tuple[str, ...] = ()  # options that hold commands of a shell
    environment: tuple[str, ...] = ()  # options that hold variables of such a shell
    is_flat: bool = False  # whether sections of its files say nothing: their options count as if they stood outside
    # fields and quantities that variables of such a shell hold, by their names
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def short_name(self) -> str:
        """Its name without the version."""
        return _RELEASE.sub("", self.name)

    def started(self, called: str) -> str | None:
        """Return the program of the tool that words before options call; None where they call another."""
        return next((program for program in self.programs if _starts(program, called)), None)

    def started_values(self, called: str) -> Iterator[Mapping[str, Any]]:
        """Yield what a program, a class or a function says by being called."""
        return (values for name, values in self.starters.items() if _starts(name, called))

    def names_recipe(self, called: str) -> bool:
        """Whether a function is called as recipes of the tool are, after one of its models."""
        known = {word for words in self.models.values() for word in words}
        return RECIPE in self.options and any(called.startswith(f"{word}_") for word in known)

    def named(self, written: str) -> str:
        """Return the name of an option as the table has it: without dashes and short forms."""
        name = option_name(written)
        if name not in self.known and "-" in name:
            name = name.replace("-", "_")
        return self.other_names.get(name, name)

    def knows_option(self, path: KeyPath) -> bool:
        """Whether the tool has an option at a path, or takes what is above it as a whole."""
        return any(self.named(name) in self.known for name in _and_above(path))

    def names_model(self, written: str) -> bool:
        """Whether an option is the one that names the model."""
        option = self.options.get(self.named(written)) if written.startswith("-") else None
        return option is not None and (option.path == "model" or option.meaning == "served")

    @property
    def starts_with_model(self) -> bool:
        """Whether it is an engine that takes a model without an option."""
        return self.sets.get(Key.TASK) == "infer" and "model" in self.options

    def folders_of_model(self, data: Plain) -> Iterator[PurePath]:
        """Yield the path of the model that options name, and the folders it lies in unless its own name is known."""
        known = load_catalog().architectures
        for key, value in data.items() if isinstance(data, dict) else ():
            option = self.options.get(self.named(key))
            if option is not None and option.path == "model":
                path = PurePath(str(value))
                yield from (path, *(() if known.find_id(path.name) else path.parents))

    def is_signed(self, path: KeyPath) -> bool:
        """Whether an option at a path, or a section above it, tells the tool's files from others."""
        return any(self.named(name) in self.signs for name in _and_above(path))

    def ignores(self, name: str, value: object) -> bool:
        """Whether an option has no part in an estimate: it, or its section unless its name tells of memory or time."""
        if name in self.ignored:
            return True
        above = [section for section in _and_above(tuple(name.split("."))) if section in self.ignored]
        counted = (*self.options, *self.unmodelled)
        is_mixed = any(one.startswith(f"{section}.") for section in above for one in counted)
        is_off = value in (None, False, "", "null", "none", [], {})
        return bool(above) and (not is_mixed or is_off or not bears_on_a_run(name, value))

    @property
    def known(self) -> Collection[str]:
        """The names of its options."""
        return _known(self)

    def words(self, option: str) -> Mapping[object, str]:
        """Return the words of an option by what they mean in a plan; of several that mean the same, the first."""
        words: dict[object, str] = {}
        for word, value in self.options[option].values.items():
            for meaning in value if isinstance(value, list) else [value]:
                if not isinstance(meaning, dict | None):
                    words.setdefault(meaning, word)
        return words


def _starts(program: str, called: str) -> bool:
    return re.search(rf"(^|[\s/.]){re.escape(program)}($|\s|\.)", called) is not None


def _and_above(path: KeyPath) -> Iterator[str]:
    """Yield the dotted names of the sections above an option, then its own; a command writes them as one word."""
    parts = ".".join(map(str, path)).split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def option_name(written: str) -> str:
    """Return the name of an option, which a command writes with dashes: ``--max-model-len`` is ``max_model_len``."""
    return written.lstrip("-").replace("-", "_") if written.startswith("-") else written


def word_of(value: object) -> str:
    """Return a value as the tables write it: small letters, true and false."""
    return "null" if value is None else str(value).strip().casefold()


@cache
def _known(owner: Tool) -> frozenset[str]:
    return frozenset({*owner.options, *owner.other_names, *owner.unmodelled, *owner.ignored})


@cache
def tools() -> Mapping[str, Tool]:
    """Return the tools by id."""
    folder = files("capacity_tui.profiles") / "tools"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".yaml"))
    return {name.removesuffix(".yaml"): _tool(name.removesuffix(".yaml")) for name in names}


@cache
def _tool(name: str) -> Tool:
    rows = _rows(name)
    options = {option: _option(option, row) for option, row in rows.get("options", {}).items()}
    written = {option: row.get("also", ()) for option, row in rows.get("options", {}).items() if isinstance(row, dict)}
    return Tool(
        id=name,
        name=rows["name"],
        source=rows["source"],
        signs=tuple(rows.get("signs", ())),
        argument=rows.get("argument", ""),
        programs=tuple(rows.get("programs", ())),
        options=options,
        other_names={
            other: option
            for option, others in written.items()
            for other in others
            if other not in rows.get("ignored", ())  # of the tool that another one is like
        },
        sets=rows.get("sets", {}),
        defaults=rows.get("defaults", {}),
        unmodelled=rows.get("unmodelled", {}),
        ignored=frozenset(rows.get("ignored", ())),
        models={model: tuple(map(str, words)) for model, words in rows.get("models", {}).items()},
        calls=tuple(rows.get("calls", ())),
        libraries=frozenset(rows.get("libraries", ())),
        starters=rows.get("starters", {}),
        serves=tuple(rows.get("serves", ())),
        trained_by=tuple(rows.get("trained_by", ())),
        runs=tuple(rows.get("runs", ())),
        environment=tuple(rows.get("environment", ())),
        is_flat=rows.get("is_flat", False),
        variables=rows.get("variables", {}),
    )


def _rows(name: str) -> dict[str, Any]:
    """Return the table of a tool, with what another one has that it is like."""
    rows = parse_shipped(f"tools/{name}.yaml")
    if "like" not in rows:
        return rows
    below = _rows(rows["like"])
    merged = {key: {**below.get(key, {}), **rows.get(key, {})} for key in _SHARED}
    return {**rows, **merged, "ignored": [*below.get("ignored", ()), *rows.get("ignored", ())]}


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


@cache
def _words_of_options() -> Mapping[str, frozenset[str]]:
    """Return words by what they say of an option: ``profiles/option_words.yaml``; and names that bear on no run."""
    rows = parse_shipped("option_words.yaml")
    trained = (one.ignored for one in tools().values() if one.sets.get(Key.TASK) != "infer")
    without = {name.rpartition(".")[2] for ignored in trained for name in ignored}
    return {"tells": frozenset(rows["tells"]), "tells_not": frozenset(rows["tells_not"]), "ignored": frozenset(without)}


def bears_on_a_run(written: str, value: object = None) -> bool:
    """Whether the name of an option that no table has tells of memory or time, or the word that it is given."""
    last = option_name(written.rpartition(".")[2])
    words = _words_of_options()
    named = {*_WORD.findall(last.casefold())}
    if last in words["ignored"] or words["tells_not"] & named:
        return False
    given = {*_WORD.findall(value.casefold())} if isinstance(value, str) else set()
    return bool(words["tells"] & (named | given))


_WORD = re.compile(r"[a-z0-9]+")

_RECIPE = re.compile(r"(.+?)_(?:low_precision_)?(pretrain|sft|peft|finetune|lora|dora)(_.*)?_config(?:_.*)?")
_TUNED = re.compile(r"([a-z0-9_.]+/\d+(?:\.\d+)?B)(?:_instruct)?_(full|q?lora|dora)(_.*)?")
_MAKERS = frozenset({"nvidia", "amd", "intel", "google", "tpu"})
_SIZE_OR_COUNT = re.compile(r"[\d.]+([kKmMgGtT]i?[bB]?)?(\.\.[\w.]*)?")


class UnmodelledError(ValueError):
    """A value that plans have no word for; the text says why, and what is counted in its place is there too."""

    def __init__(self, why: str, counted: object = None) -> None:
        super().__init__(why)
        self.counted = counted


class UnreadError(ValueError):
    """A value that an option cannot have; the text says what it takes."""


def recipe(value: Plain) -> object:
    """Return model, method and number type of a recipe by its name.

    ``llama31_8b_sft_2gpu_h100_bf16_config`` of Megatron-Bridge, ``llama3_1/8B_lora_single_device`` of torchtune.
    """
    match = _RECIPE.fullmatch(str(value)) or _TUNED.fullmatch(str(value))
    if match is None:
        return None
    method = {
        "peft": "lora",
        "lora": "lora",
        "dora": "dora",
        "sft": "full",
        "finetune": "full",
        "full": "full",
        "qlora": "qlora",
    }.get(match[2])
    number = re.search(r"_(fp8|mxfp8|nvfp4)", match[3] or "")
    read: dict[str, object] = {"model": match[1]}
    if method is not None:
        read |= {Key.TRAINING_METHOD: method, Key.TASK: "finetune"}
    if number is not None:
        read[Key.TRAINING_PRECISION] = "fp4" if number[1] == "nvfp4" else "fp8"
    return read


_ATTENTION, _FEED_FORWARD = ("query", "key", "value", "output"), ("gate", "up", "down")
ADAPTED: Mapping[Targets, tuple[str, ...]] = {
    "all": _ATTENTION + _FEED_FORWARD,
    "attention": _ATTENTION,
    "mlp": _FEED_FORWARD,
    "query+value": ("query", "value"),
    "query+key+value": ("query", "key", "value"),
    "query+value+output+mlp": ("query", "value", "output", *_FEED_FORWARD),
}
"""The matrices of a layer that have an adapter."""
_TARGETS = {frozenset(matrices): word for word, matrices in ADAPTED.items()}


@cache
def modules_named() -> Mapping[str, Any]:
    """Return what modules hold by their names: ``profiles/adapted_modules.yaml``."""
    rows: dict[str, Any] = parse_shipped("adapted_modules.yaml")
    return rows


def adapted_matrices(names: Collection[str]) -> tuple[str, bool]:
    """Return the word of plans that is nearest to modules with adapters, and whether it says just these."""
    modules: Mapping[str, list[str]] = modules_named()["modules"]
    parts = (name.split(".") for name in names)  # self_attention.dense is dense
    known = [next((name for at in range(len(of)) if (name := ".".join(of[at:])) in modules), "") for of in parts]
    matrices = {matrix for name in known if name for matrix in modules[name]}
    nearest = max(_TARGETS, key=lambda word: (len(word & matrices) - len(word ^ matrices), len(word)))
    is_exact = "" not in known and nearest == matrices
    return _TARGETS[nearest] if matrices else "all", is_exact


def accelerators(value: Plain) -> dict[str, object]:
    """Return the devices of a node as clouds write them: ``H100:8``, ``80GB:2``, by name, or of several the first."""
    if value is None or isinstance(value, bool):
        return {}
    if isinstance(value, dict) and "name" in value:
        value = ":".join(str(part) for part in (_first(value["name"]), value.get("count", 1)))
    parts = str(_first(value)).replace("!", "").split(":") if value else []  # H100!: of Modal, no better one
    names = [part for part in parts if part.casefold() not in _MAKERS and not _SIZE_OR_COUNT.fullmatch(part)]
    counts = [part for part in parts if part.partition("..")[0].isdigit()]
    if not names and len(parts) > len(counts) > 0:
        why = f"a device of {', '.join(part for part in parts if part not in counts)}: --gpu says which"
        raise UnmodelledError(why, {"per_process": int(counts[0].partition("..")[0])})
    if not names:
        raise UnreadError("a device and its number, such as H100:8")
    return {Key.HARDWARE_NAME: names[0], "per_process": int(counts[0].partition("..")[0]) if counts else 1}


def any_of(value: Plain) -> object:
    """Return what the first of several sets of resources asks for, which are as good."""
    first = _first(value)
    if not isinstance(first, dict):
        raise UnreadError("a list of resources, such as [{accelerators: H100:8}, {accelerators: H200:8}]")
    asked = accelerators(first["accelerators"]) if first.get("accelerators") else {}
    if first.get("use_spot") is True:
        asked[Key.PRICING_SPOT] = True
    return asked


def _first(value: Plain) -> Plain:
    """Return the first of several that are as good; of a mapping with its value."""
    if isinstance(value, dict):
        return next((f"{name}:{count}" for name, count in value.items()), None)
    return value[0] if isinstance(value, list) and value else value
