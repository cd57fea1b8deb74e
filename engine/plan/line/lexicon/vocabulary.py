"""What words of a line mean: the shipped table of them, looked up by word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import key_of, parse_shipped
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS, all_fields
from capacity_tui.engine.plan.fields import SECTIONS
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN
from capacity_tui.engine.record import dataclass

UNSAID = frozenset({"running", "output"})
"""Roles of fields that a line does not say: how a run is looked after and reported stands in files."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What a number may count.

    Attributes:
        name: for people, as ``sequence``.
        fields: the field it goes to, by what is done with the model.
        behind: whether its words may stand behind the number: ``only`` there, ``always`` where they do wherever a
            number is before them, ``either`` where they may begin what follows as well, empty where they only stand
            before it.
        reciprocal: whether the field is one over the number, as a time is of a rate.
        per: what the number is divided by, as requests a day are for those a second.
        most: the most that it may count; more are of something else.
        beyond: what to write instead of more.
        many: the field that more of them go to where they are served, a part at once.
        tells: whether its words tell what is done with the model.
        hint: what to write instead, of what is told apart by another word.
        unit: the amount whose words may stand between the number and these, or behind the number.
        billions: whether so many may be counted; elsewhere a number of billions is the size of a model.
        thousands: the amount that a number with k counts beside these words, as in ``4k sequences``.
        described: which words may stand between the number and these: ``plain`` ones, or ``any`` that means nothing.
        fewer: the amount that a number counts in a training which is too small to be this one.
        leading: the amount that a number behind these words counts, where that is another.
        assumes: what makes a number of something else of it, for people.
    """

    name: str
    fields: Mapping[str, str]
    behind: str = ""
    reciprocal: bool = False
    per: float = 1.0
    most: float = math.inf
    beyond: str = ""
    many: str = ""
    tells: bool = True
    hint: str = ""
    unit: str = ""
    billions: bool = False
    fewer: str = ""
    described: str = ""
    thousands: str = ""
    leading: str = ""
    assumes: str = ""

    @property
    def is_behind(self) -> bool:
        """Whether its words stand behind the number wherever a number is before them."""
        return self.behind in ("always", "only")

    def field(self, task: str) -> str | None:
        """Return the field of a task; fine-tuning has those of training."""
        return self.fields.get(TRAIN if task == FINETUNE else task)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What words mean; every word is a key, without case and hyphens.

    Attributes:
        fillers: words that say nothing.
        prose, circumstances: those of plain language; those that could bear on a plan and that none follows.
        tasks: what is done, by word.
        suggests: what is done where no other word says it, by word.
        suggests_little: words that suggest serving where nothing speaks against it.
        of_serving: words that are of serving wherever nothing is trained.
        remarks: words that the plan cannot follow, and what to do about them.
        comparing, both: words between names that a line compares, the latter where it says that it compares.
        refused: words that no plan can follow, and what to say instead.
        counts, phrases: numbers in words; values that words set, by what is done.
        joints: words of plain language that say nothing of what stands behind them.
        of_something: words between a number and what it counts.
        stored: words behind a size in bytes that is the size of data.
        sound, hearing: words behind a time that is how long something sounds, and before it beside a model of sound.
        datasets: field and size of data sets, by name.
        image_edges: pixels of an edge of small images, by data set.
        slices, core_slices: rows of hardware rented in slices of so many chips, or cores, by the name of a slice.
        per_device: words behind a batch that is one of each device.
        plurals: names that stand for several of another device where they end in a small s.
        product_lines: what a bare model number of a device may belong to.
        machines: makers of devices, by their machines.
        portable: words that say that a card is the one of a laptop.
        prefixes, ram: beginnings of machines' names by what clouds write; words behind a size of host memory.
        scales, time_units, durations: suffixes of numbers and units of times and of longer times, by word.
        negations, ruled_out: words that rule out what stands behind them; what that sets, by what is done.
        queries: words that ask for what no plan says, by what they ask for.
        asked: fields, by the words that ask and by what they ask for.
        priced: words before dollars an hour that a device costs; before others they are a limit.
        within, deadlines: words before a time that is not to be passed, and words that are one.
        nodes: machines of so many devices, by the word before the name of these.
        racks: nodes of so many devices, by the word behind the name of these.
        methods: which weights are trained, by word.
        objectives: of fine-tuning, by word.
        here: names of this machine.
        amounts, units: what numbers count, by word; those that are units of others.
        sent: what is a request, where so many of it come in a span of time.
        spans: the span of time that a rate is of, by word.
        adverbs: seconds of the span that a word such as ``daily`` says.
        writing: words before tokens that are written rather than read.
        twice: what to do where a field is given twice, by field.
        fields, values: fields of a plan by label and key; fields that take a name, by what is done.
        formats: number formats by their bits.
        bits, served: formats of weights by engine and bits; what is served in place of those that are trained on.
        fewest_tokens: of a job; shorter is a sequence.
        weights_of: formats of weights that are served where no other is named, by what serves them.
        needs: field that a word is about, and what to write where no number says it.
        adjectives: words between a number and hardware.
        like: models by other names that nothing of the catalogue has.
        model_words: words behind a number that is the parameters of a model.
        models, hardware: ids that are meant by a part of a name, the first ones before the others.
        makers, usual: of hardware, in the order of lists; values where a line says nothing, by what is done.
        engines: what serves language models where a line names none, by family of weights and by maker of devices.
        examples: lines to begin with, and what they show.
    """

    fillers: frozenset[str]
    prose: frozenset[str]
    circumstances: frozenset[str]
    tasks: Mapping[str, str]
    suggests: Mapping[str, str]
    suggests_little: frozenset[str]
    of_serving: frozenset[str]
    remarks: Mapping[str, str]
    comparing: frozenset[str]
    both: frozenset[str]
    refused: Mapping[str, str]
    counts: Mapping[str, int]
    phrases: Mapping[str, Mapping[str, Mapping[str, object]]]
    joints: frozenset[str]
    of_something: frozenset[str]
    stored: frozenset[str]
    sound: frozenset[str]
    hearing: frozenset[str]
    datasets: Mapping[str, tuple[str, int]]
    image_edges: Mapping[str, int]
    slices: Mapping[str, str]
    core_slices: Mapping[str, str]
    per_device: frozenset[str]
    plurals: frozenset[str]
    product_lines: tuple[str, ...]
    machines: Mapping[str, str]
    portable: frozenset[str]
    prefixes: Mapping[str, str]
    ram: frozenset[str]
    scales: Mapping[str, str]
    time_units: Mapping[str, str]
    durations: Mapping[str, str]
    negations: frozenset[str]
    ruled_out: Mapping[str, Mapping[str, Mapping[str, object]]]
    queries: Mapping[str, str]
    asked: Mapping[str, Mapping[str, str]]
    priced: frozenset[str]
    within: frozenset[str]
    deadlines: Mapping[str, str]
    nodes: Mapping[str, int]
    racks: Mapping[str, int]
    methods: Mapping[str, str]
    objectives: Mapping[str, str]
    here: frozenset[str]
    amounts: Mapping[str, Amount]
    units: frozenset[str]
    sent: frozenset[str]
    spans: Mapping[str, str]
    adverbs: Mapping[str, int]
    writing: frozenset[str]
    twice: Mapping[str, str]
    fields: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]
    formats: Mapping[str, str]
    bits: Mapping[str, Mapping[str, str]]
    served: Mapping[str, str]
    weights_of: Mapping[str, str]
    fewest_tokens: float
    needs: Mapping[str, tuple[str, str]]
    adjectives: frozenset[str]
    like: Mapping[str, str]
    model_words: frozenset[str]
    models: tuple[str, ...]
    hardware: tuple[str, ...]
    makers: tuple[str, ...]
    usual: Mapping[str, Mapping[str, float]]
    engines: Mapping[str, str]
    examples: Mapping[str, str]

    def field_of(self, word: str, task: str) -> str | None:
        """Return the field that a word names in a task."""
        sections = SECTIONS[task]
        return next((path for path in self.fields.get(key_of(word), ()) if _section(path) in sections), None)

    def phrase(self, word: str, task: str) -> Mapping[str, object] | None:
        """Return what a word or two set in a task; None where they set nothing."""
        return self.phrases.get(TRAIN if task == FINETUNE else task, {}).get(key_of(word))

    def format_of(self, bits: str, engine: str) -> str:
        """Return the format of weights that has so many bits in an engine."""
        name = self.formats[bits]
        return self.bits.get(engine, {}).get(bits, self.served.get(name, name))

    def values_of(self, task: str) -> tuple[str, ...]:
        """Return the fields whose values may stand alone."""
        return self.values.get(TRAIN if task == FINETUNE else task, ())


@cache
def vocabulary() -> Vocabulary:
    """Return the shipped words."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "one_line.yaml")
    return Vocabulary(
        fillers=frozenset(map(key_of, (*rows["fillers"], *rows["prose"], *rows["circumstances"]))) | {""},
        prose=frozenset(map(key_of, rows["prose"])),
        circumstances=frozenset(map(key_of, rows["circumstances"])),
        tasks=_by_word(rows["tasks"]),
        suggests=_by_word(rows["suggests"]),
        suggests_little=frozenset(rows["suggests_little"]),
        of_serving=frozenset(map(key_of, rows["of_serving"])),
        remarks=_by_word(rows["remarks"]),
        comparing=frozenset(rows["comparing"]),
        both=frozenset(rows["both"]),
        refused=_by_word(rows["refused"]),
        counts={key_of(word): int(count) for count, words in rows["counts"].items() for word in words},
        phrases=rows["phrases"],
        joints=frozenset(map(key_of, rows["joints"])),
        of_something=frozenset(rows["of_something"]),
        stored=frozenset(rows["stored"]),
        sound=frozenset(rows["sound"]),
        hearing=frozenset(rows["hearing"]),
        datasets={name: (path, size) for path, sizes in rows["datasets"].items() for name, size in sizes.items()},
        image_edges=rows["image_edges"],
        slices=rows["slices"],
        core_slices=rows["core_slices"],
        per_device=frozenset(rows["per_device"]),
        plurals=frozenset(rows["plurals"]),
        product_lines=tuple(rows["product_lines"]),
        machines=_by_word(rows["machines"]),
        portable=frozenset(rows["portable"]),
        prefixes=rows["prefixes"],
        ram=frozenset(map(key_of, rows["ram"])),
        scales=_by_word(rows["scales"]),
        time_units=_by_word(rows["time_units"]),
        durations=_by_word(rows["durations"]),
        negations=frozenset(map(key_of, rows["negations"])),
        ruled_out=rows["ruled_out"],
        queries=_by_word(rows["asking"]),
        asked={kind: _by_word(fields) for kind, fields in rows["asked"].items()},
        priced=frozenset(rows["priced"]),
        within=frozenset(rows["within"]),
        deadlines=rows["deadlines"],
        nodes=rows["nodes"],
        racks=rows["racks"],
        methods=_by_word(rows["methods"]),
        objectives=_by_word(rows["objectives"]),
        here=frozenset(rows["here"]),
        amounts=dict(_amounts(rows)),
        units=frozenset(row.get("unit", "") for row in rows["numbers"].values()) - {""},
        sent=frozenset(map(key_of, rows["sent"])),
        spans={key_of(word): span for span, row in rows["rates"].items() for word in row["spans"]},
        adverbs={row["adverb"]: row["seconds"] for row in rows["rates"].values() if "adverb" in row},
        writing=frozenset(rows["writing"]),
        twice=rows["twice"],
        fields=_fields(rows["fields"]),
        values={task: tuple(paths) for task, paths in rows["values"].items()},
        formats=rows["formats"],
        bits=rows["bits"],
        served=rows["served"],
        weights_of=rows["weights_of"],
        fewest_tokens=float(rows["fewest_tokens"]),
        needs={key_of(word): (path, row["hint"]) for path, row in rows["needs"].items() for word in row["words"]},
        adjectives=frozenset(map(key_of, rows["adjectives"])),
        like=_by_word(rows["like"]),
        model_words=frozenset(rows["model_words"]),
        models=tuple(rows["models"]),
        hardware=tuple(map(str, rows["hardware"])),
        makers=tuple(rows["makers"]),
        usual=rows["usual"],
        engines=rows["engines"],
        examples=rows["examples"],
    )


def line_examples() -> Mapping[str, str]:
    """Return lines to begin with, and what they show."""
    return vocabulary().examples


def _by_word(rows: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the name of each word; where two have one, the later."""
    return {key_of(word): name for name, words in rows.items() for word in words}


def _amounts(rows: Mapping[str, Any]) -> Iterator[tuple[str, Amount]]:
    """Yield what numbers count, by word: also what is sent at once, and in a span of time, as ``requests/min``."""
    amounts = {
        name: Amount(name, **{key: value for key, value in row.items() if key != "words"})
        for name, row in rows["numbers"].items()
    }
    for noun in (*rows["sent"], *rows["sessions"]):
        is_sample = noun in rows["numbers"]["samples"]["words"] or noun == "sequences"
        together = amounts["sequences at once" if is_sample else "requests at once"]
        for word in rows["at_once"]["before"]:
            yield key_of(f"{word}{noun}"), amounts["requests at once"] if noun != "sequences" else together
        for word in rows["at_once"]["behind"]:
            yield key_of(f"{noun}{word}"), together
    for row in rows["rates"].values():
        span = row["spans"][-1]
        amount = Amount(
            f"requests a {span}", {INFER: Key.INFERENCE_REQUEST_RATE}, "always", per=row["seconds"], described="any"
        )
        spans = (f"{noun}{per}{span}" for noun in rows["sent"] for per in ("/", "per") for span in row["spans"])
        for word in (*spans, *row.get("words", ())):
            yield key_of(word), amount
    for name, row in rows["numbers"].items():
        for word in row["words"]:
            yield key_of(word), amounts[name]


def _fields(other_names: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Return the fields that a word may name, by label and by key; those that catalogues are for go by their rows."""
    paths: dict[str, tuple[str, ...]] = {}
    for path, entry in all_fields().items():
        if entry.knob.catalogue not in ("", "interconnect") or entry.knob.role in UNSAID or path == Key.TASK:
            continue
        for name in dict.fromkeys(map(key_of, (entry.knob.label, path.rpartition(".")[2], path))):
            paths[name] = (*paths.get(name, ()), path)
    for path, names in other_names.items():
        for name in map(key_of, names):
            others = tuple(other for other in paths.get(name, ()) if other.startswith(OWN_PARAMETERS))
            paths[name] = (path, *others) if path.startswith(OWN_PARAMETERS) else (path,)
    return paths


def _section(path: str) -> str:
    return path.rpartition(".")[0]
