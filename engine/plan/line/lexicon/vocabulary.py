"""What words of a line mean: the shipped table of them, looked up by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, get_type_hints

from capacity_tui.engine.catalog import Catalog, key_of, parse_shipped
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS, all_fields
from capacity_tui.engine.plan.fields import SECTIONS
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, Amount, Currency, Sight
from capacity_tui.engine.record import dataclass

_WHOLE = ("counts", "vague", "ordinals")  # Numbers by the words for them
_OF_A_SPAN, _WRITTEN, _LIMITS = "tokens a span", "tokens of output a span", "limits."
UNSAID = frozenset({"running", "output"})  # Roles of fields of files alone: how a run is looked after and reported


def _keys(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(key_of, words))


def _by_word(rows: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the name of each word; where two have one, the later."""
    return {key_of(word): name for name, words in rows.items() for word in words}


Words = Annotated[frozenset[str], _keys]
Groups = Annotated[Mapping[str, frozenset[str]], lambda rows: {name: _keys(words) for name, words in rows.items()}]
Names = Annotated[tuple[str, ...], lambda names: tuple(map(str, names))]
ByWord = Annotated[Mapping[str, str], _by_word]
"""What rows of the table are, and how they are read: words that are looked up, names in order, what words stand for."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What words mean; every word is a key, without case and hyphens."""

    fillers: Words  # words that say nothing
    prose: Words  # those of plain language
    common: Words  # those of plain language that might be names, and most likely are none
    circumstances: Words  # those that could bear on a plan and that none follows
    tasks: ByWord  # what is done, by word
    participles: Words  # those of a training that a model has behind it, where it is served
    suggests: ByWord  # what is done where no other word says it, by word
    suggests_little: Words  # words that suggest serving where nothing speaks against it
    of_memory: Words  # words that suggest serving of all models but networks of pictures
    of_serving: Words  # words that are of serving wherever nothing is trained
    embedders: Words  # words in names of models that embed
    works: ByWord  # models that are meant where a line names none, by words of what they do
    answering: Words  # words of a line that means one that answers
    sharing: Words  # words between a memory and how many devices have it together
    weighed: Words  # words beside a size in bytes that is the one of a model's weights
    remarks: ByWord  # words that the plan cannot follow, and what to do about them
    clouds: ByWord  # providers of hardware
    leaving: Words  # words before one that is not meant
    permitting: Words  # words behind one that is meant, where the one before it is not
    narrating: Words  # words of a clause that tells something, rather than says settings
    comparing: Words  # words between names that a line compares
    both: Words  # words between them where the line says that it compares
    compares: Words  # words that say so
    than: Names  # words between names that say by themselves that they are compared
    staged: Names  # what words begin with beside which a stage is one of ZeRO
    solving: Groups  # words of a clause that asks whether something else does, as ``would 8x a10g do``
    turning: Words  # words between one of them and a name, as in ``or switch to a 5090``
    telling_files: Mapping[str, str]  # what names of a tool's files begin with that say what they set, by the tool
    short_options: Mapping[str, str]  # what short options of programs say in words
    given_up: Words  # words before what something else takes the place of
    vendors: Words  # makers of servers, before the name of a chassis
    chassis: Words  # lines of these, behind one of their makers
    peaks: Words  # words beside how many times as much as usual there is at most
    averages: Words  # words behind that
    other_peaks: Words  # words beside a peak of something else than a load
    every: Groups  # words of each of some: before a span of time, behind what each has, between nodes and devices
    software: Words  # what a release may stand behind
    disks: Words  # words behind a size that is what a disk holds
    left_over: Words  # words beside a memory that is what is left of a device's
    tenants: Words  # those that share devices, as in ``4gb per worker``
    other_costs: Words  # words beside a sum that is paid for something else than hardware
    searching: Words  # words beside documents that a request reads only what is found of
    filming: Groups  # words of the rate of a camera, of what is one beside it, and of a rate that is of all
    live: Words  # words of sound that is heard as it is spoken
    surroundings: Words  # what stands around devices, a number of which is left out
    networks: ByWord  # what names of links begin with, by words beside the speed of one between nodes
    any_network: Words  # those of them that other things have as well
    unsupported: Words  # words behind one that is not to be had
    supplies: Words  # words behind watts that are not those of a device
    optimal: Words  # words of a training as long as suits the size of its model best
    within_run: Words  # words before a part of a run where something is
    flops: Mapping[str, float]  # FLOPs of one of what compute is counted in, by word
    sufficing: Words  # words that ask whether a number of devices does
    aside: Words  # names of models that say of another how long it is trained
    other_currencies: Words  # words and signs of money whose rate is not known
    refused: ByWord  # words that no plan can follow, and what to say instead
    alongside: Words  # those of them that say nothing beside a model that is named
    closed: Words  # models of those refused that a service alone has
    services: Words  # words of such a service and of what it costs
    passages: Words  # pieces of texts that are found for a prompt
    finding: Words  # words before a number of these
    parts: Mapping[str, float]  # parts of one, in words
    ordinals: Mapping[str, int]  # how many devices there are with one that such a word stands before
    counts: Mapping[str, int]  # numbers in words
    vague: Mapping[str, int]  # those that nobody means exactly, before a hundred and the like
    thousands: Mapping[str, Sequence[str]]  # words of a million, by words beside which they are a thousand
    phrases: Mapping[str, Mapping[str, Mapping[str, object]]]  # values that words set, by what is done
    joints: Words  # words of plain language that say nothing of what stands behind them
    owned: Words  # words between a part and the number that it is of
    single: Words  # words before a device of which there is one
    as_long_as: Words  # words before how long something is served
    owning: Words  # words that say that hardware is owned, wherever they stand
    owned_hardware: Words  # the same, before its name alone
    numbered: Words  # words before a number that is a name
    transactions: Words  # what are tokens a second where a model writes some, and requests elsewhere
    of_something: Words  # words between a number and what it counts
    between: Words  # words between what is counted and its number
    stored: ByWord  # rows of data formats, by words beside a size in bytes that is the size of such data
    sound: Words  # words behind a time that is how long something sounds
    hearing: Words  # words before such a time, beside a model of sound
    pieces: Words  # words for a piece of sound, behind or before its length
    matched: Words  # words for pictures with their texts, which a tower of pictures alone does not read
    sounds: Mapping[str, Mapping[str, float]]  # hours of speech, and seconds of its mean piece, by data set
    datasets: Mapping[str, tuple[str, int]]  # field and size of data sets, by name
    image_edges: Mapping[str, int]  # pixels of an edge of small images, by data set
    image_sides: Names  # parameters of networks that say the sides of an image one by one
    tiers: Words  # parts of a name that make another device of it
    editions: Words  # words behind a name that make another product of it
    cases: Words  # kinds of machines behind a name
    leading_editions: Words  # those before it
    slices: Mapping[str, str]  # rows of hardware rented in slices of so many chips, by the name of a slice
    core_slices: Mapping[str, str]  # those rented in slices of so many cores
    bare_batches: Words  # words of a batch that do not say of what it is
    per_device: Words  # words behind a batch that is one of each device
    plurals: Words  # names that stand for several of another device where they end in a small s
    product_lines: Names  # what a bare model number of a device may belong to
    card_lines: Words  # lines of cards, behind which a number is one of them
    machines: ByWord  # makers of devices, by their machines
    unified_memories: Names  # GB that computers with one memory for all are sold with
    portable: Words  # words that say that a card is the one of a laptop
    prefixes: Mapping[str, str]  # beginnings of machines' names by what clouds write
    ram: Words  # words behind a size of host memory
    scales: ByWord  # suffixes of numbers, by word
    figure_units: ByWord  # units of figures of hardware, of shares and of sums, by word
    time_units: ByWord  # units of times, by word
    durations: ByWord  # units of longer times, by word
    negations: Words  # words that rule out what stands behind them
    hardware_kinds: Words  # makers and kinds of hardware, which are not excluded
    without_card: Words  # words of a machine of its processor alone
    stocked: Words  # words behind devices of which it says that there are none to be had
    processor: Words  # words of a processor without its name
    ruled_out: Mapping[str, Mapping[str, Mapping[str, object]]]  # what that sets, by what is done
    queries: Mapping[str, str]  # words that ask for what no plan says, by what they ask for
    answered: Words  # what every plan tells
    whether: Groups  # words before and behind a setting that ask whether it is needed
    nothing: Words  # what a setting is compared with that is left away
    instead: Mapping[str, str]  # what a method of training is compared with where a line asks whether it is needed
    ending: Words  # words behind which nothing is asked for any more
    closing: Words  # those right behind one that asks for what stands before it
    during: Words  # words behind how long that do not say what is so long
    choosing: Words  # words before a family of which a model is asked for
    sizes_asked: Groups  # words beside the size that a model which is asked for has at most, or at least
    model_kinds: ByWord  # kinds of models, by word
    named_kinds: Mapping[str, Sequence[str]]  # what parts of the names of models of a kind begin with
    needing: Words  # words behind one that asks how many, of what stands before it
    asked: Mapping[str, Mapping[str, str]]  # fields, by the words that ask and by what they ask for
    totals: Words  # words behind a price that is of all devices together
    sights: Mapping[str, Sight]  # tokens of a picture, by the beginnings of models' ids
    currencies: Mapping[str, Currency]  # money that is exchanged into dollars, by its sign
    guessing: Words  # words of a small model, or of heads, that guess for a larger one that answers
    drafts: Words  # words beside the model that guesses for another one
    teaching: Words  # words of a large model that a smaller one learns from
    becoming: Words  # words between a model that is distilled and what it becomes
    coming_from: Words  # words between what a model becomes and the one that is distilled
    rankers: Words  # parts of words of models that rank
    card_memory: Words  # words of a memory that is the one of a card
    companions: Words  # parts of names of models that embed or listen
    other_kinds: Words  # parts of names of models that are made for another thing than text
    quantized: Words  # what weights are called of which nobody says the format
    active: Words  # words behind a size that is what one token uses of a mixture
    whole_context: Words  # engines to which a context of 0 is all that the model reads
    context_in_all: Words  # engines of which a context is prompt and answer together
    following: Words  # words between two jobs of a line
    contrasting: Words  # words between two runs of a line, of which it tells
    money: Words  # words before or behind a sum that has no sign
    credits: Words  # words behind a sum of what may be spent with a provider
    buying: Words  # words near a sum that something is bought for
    limiting: Words  # words beside dollars an hour that are a limit
    boxes: Words  # words beside dollars an hour that a machine costs
    priced: Words  # words before dollars an hour that a device costs; before others they are a limit
    timed: ByWord  # the latency that a time limits, by a word before it and one of ``within``
    within: Words  # words before a time that is not to be passed
    deadlines: Mapping[str, str]  # words that are such a time
    measured: Groups  # words beside times and sizes that were measured, and those beside what is wanted
    since: Words  # words behind a time since which something is so, and which limits nothing
    dates: Words  # days that are no length of time
    until: Words  # words before one of them until which something has to be done
    nodes: Mapping[str, int]  # machines of so many devices, by the word before the name of these
    racks: Mapping[str, tuple[int, str]]  # nodes of so many devices and the usual ones, by the word behind their name
    methods: ByWord  # which weights are trained, by word
    methods_of: Mapping[str, str]  # usual methods of frameworks that train adapters, by framework
    objectives: ByWord  # of fine-tuning, by word
    supervised: Words  # fine-tuning from examples, beside which one from preferences is another run
    here: Words  # names of this machine
    measures: Words  # measure words of devices and of pictures
    amounts: Mapping[str, Amount]  # what numbers count, by word
    units: Words  # those that are units of others
    sent: Words  # what is a request, where so many of it come in a span of time
    spans: Mapping[str, str]  # the span of time that a rate is of, by word
    per: Words  # words between a number and the span of time, or the one, that it is of
    adverbs: Mapping[str, int]  # seconds of the span that a word or two say, as ``daily`` and ``per day``
    hours_of_weeks: Mapping[str, float]  # hours of each week that words say hardware is used
    bills: Words  # words of what is paid for a span
    asked_at_once: Words  # what may have several of something
    run_by: Mapping[str, Sequence[str]]  # software that is called after the model it runs, that, and its sizes
    on_host: Words  # words of experts that lie in host memory
    together: Words  # what says of users that each of so many has a request at work
    present: Words  # what says of users that so many of all are there at once
    drawn: Words  # words that count answers to a prompt where a training draws some
    written: Words  # what is written, of which so many may be so long
    writing: Words  # words before tokens that are written rather than read
    twice: Mapping[str, str]  # what to do where a field is given twice, by field
    fields: Mapping[str, tuple[str, ...]]  # fields of a plan by label and key
    values: Mapping[str, tuple[str, ...]]  # fields that take a name, by what is done
    formats: Mapping[str, str]  # number formats by their bits
    grouped: Groups  # formats whose weights share a scale by groups, their bits, and words of a group
    bits: Mapping[str, Mapping[str, str]]  # formats of weights by engine and bits
    served: Mapping[str, str]  # what is served in place of those that are trained on
    weights_of: Mapping[str, str]  # formats of weights that are served where no other is named, by what serves them
    of_cache: Groups  # words of keys and values that are kept, and those beside these and their format
    bounds: Mapping[str, float]  # those between what numbers are, by what they are of
    fewest_tokens: float  # of a job; shorter is a sequence
    longest_sequence: float  # longer ones are a job too, where they are no power of two
    needs: Mapping[str, tuple[str, str]]  # field that a word is about, and what to write where no number says it
    adjectives: Words  # words between a number and hardware
    like: ByWord  # models by other names that nothing of the catalogue has
    known_by_value: Words  # names of settings that say nothing beside the name of their value
    option_quantities: Mapping[str, str]  # words of what quantities of other tools' options count
    roles: ByWord  # models beside the one that is trained, by word; the field of that one
    frozen_parts: ByWord  # parts of a model that are trained or frozen, by word
    frozen_states: ByWord  # what becomes of them, by word
    frozen_joints: Words  # words between both
    layer_words: Words  # words of the hidden layers of a perceptron
    width_words: Words  # words of how wide these are
    layer_joints: Words  # words between both
    offload: ByWord  # what words say of offloading: that it is done, what of, to where
    whether_it_fits: Words  # words that ask whether a batch fits
    sharded_in_nodes: Words  # words of shards that each node has whole
    inside_tensor: Words  # words of replicas of the attention that stand inside tensor parallelism
    paged: Words  # what names of optimizers begin with whose states may move to the host
    packing: Words  # words of samples that share a sequence
    offload_on: Words  # those between what is kept and where
    switched_on: Words  # values of a switch that is on
    switched_off: Words  # values of one that is off
    switches: Words  # names of values that scripts switch on
    nicknames: ByWord  # models by short names, where a line has no other name of one
    size_joints: Words  # words between the size of a model and its family
    model_words: Words  # words behind a number that is the parameters of a model
    sized_models: Names  # ids that are meant by a size alone, the first before the others
    models: Names  # ids that are meant by a part of a name, the first ones before the others
    hardware: Names  # the same of hardware
    makers: Names  # of hardware, in the order of lists
    usual: Mapping[str, Mapping[str, float]]  # values where a line says nothing, by what is done
    engines: Mapping[str, str]  # what serves models where a line names none, by family of weights, maker of devices
    examples: Mapping[str, str]  # lines to begin with, and what they show

    def field_of(self, word: str, task: str) -> str | None:
        """Return the field that a word names in a task."""
        return next((of for of in self.fields.get(key_of(word), ()) if of.rpartition(".")[0] in SECTIONS[task]), None)

    def start_of(self, words: Sequence[str]) -> int:
        """Return where words between what is counted and its number begin, which stand at the end of some keys."""
        end = len(words)
        while count := next((few for few in (3, 2, 1) if "".join(words[max(end - few, 0) : end]) in self.between), 0):
            end -= min(count, end)
        return end

    def refusal(self, word: str) -> str | None:
        """Return what to say in place of a word that no plan can follow, one of its sizes too, as ``yolov8m``."""
        key = key_of(word)
        return self.refused.get(key) or self.refused.get(re.sub(r"(?<=\d)[ac-z]$", "", key))

    def refused_release(self, word: str) -> str | None:
        """Return what to say in place of a release of what no plan can follow, as ``Wan-AI/Wan2.1-T2V-14B``."""
        owner, _, name = word.rpartition("/")
        parts = re.split("[-_]", name)
        fewer = range(len(parts) - int(not owner), 0, -1)
        return next(filter(None, (self.refusal("-".join(parts[:few])) for few in fewer)), None)

    def refuses_model(self, name: str, catalog: Catalog) -> bool:
        """Whether no plan can follow a model, as a hub's name of a release that no row is of, too: ``suno/bark``."""
        (owner, _, own), rows = name.rpartition("/"), catalog.architectures
        is_row = rows.find_id(own) is not None or (rows.find_id(name) is not None and not rows.is_variant(name))
        return key_of(name) in self.refused or bool(owner and not is_row and self.refused_release(name))

    def phrase(self, word: str, task: str) -> Mapping[str, object] | None:
        """Return what a word or two set in a task; None where they set nothing."""
        return self.phrases.get(TRAIN if task == FINETUNE else task, {}).get(key_of(word))

    def format_of(self, bits: str, engine: str) -> str:
        """Return the format of weights that has so many bits in an engine."""
        return self.bits.get(engine, {}).get(bits) or self.served.get(name := self.formats[bits], name)

    def values_of(self, task: str) -> tuple[str, ...]:
        """Return the fields whose values may stand alone."""
        return self.values.get(TRAIN if task == FINETUNE else task, ())


@cache
def vocabulary() -> Vocabulary:
    """Return the shipped words."""
    rows = parse_shipped(files("capacity_tui.profiles") / "one_line.yaml")
    every = {*rows["per"], *rows["every"]["again"]} - {"/"}
    often = [word for row in rows["rates"].values() for word in (*row["spans"], *row["adverbs"])]
    made: dict[str, Any] = {
        "fillers": frozenset(
            form
            for of in ("fillers", "prose", "narrating", "circumstances", "bills")
            for word in (*rows[of], *often, "")
            for form in (key_of(word), key_of(word.replace("'", "")))  # doesnt
        ),
        "datasets": {name: (path, size) for path, sizes in rows["datasets"].items() for name, size in sizes.items()},
        "queries": _by_word(rows["asking"]),
        "asked": {kind: _by_word(words) for kind, words in rows["asked"].items()},
        "amounts": dict(_amounts(rows)),
        "units": frozenset(row.get("unit", "") for row in rows["numbers"].values()) - {""},
        "spans": {key_of(word): span for span, row in rows["rates"].items() for word in row["spans"]},
        "adverbs": {
            key_of(word): row["seconds"]
            for row in rows["rates"].values()
            if row["seconds"] > 1
            for word in (*row["adverbs"], *(f"{per}{span}" for per in every for span in row["spans"]))
        },
        **{name: {word: int(count) for word, count in _by_word(rows[name]).items()} for name in _WHOLE},
        "parts": {word: float(part) for word, part in _by_word(rows["parts"]).items()},
        "hours_of_weeks": {word: float(hours) for hours, words in rows["hours_of_weeks"].items() for word in words},
        "sights": {begins: Sight(**row) for begins, row in rows["sights"].items()},
        "currencies": {
            sign: Currency(**row | {"words": (sign, *row["words"])}) for sign, row in rows["currencies"].items()
        },
        "fields": _fields(rows["fields"]),
        "values": {task: tuple(paths) for task, paths in rows["values"].items()},
        "needs": {key_of(word): (path, row["hint"]) for path, row in rows["needs"].items() for word in row["words"]},
        "sized_models": (*rows["models"], *rows["models_of_sizes"]),
    }
    for name, kind in get_type_hints(Vocabulary, include_extras=True).items():
        if name not in made:
            read = getattr(kind, "__metadata__", (None,))[0]
            made[name] = read(rows[name]) if read else rows[name]
    return Vocabulary(**made)


def _amounts(rows: Mapping[str, Any]) -> Iterator[tuple[str, Amount]]:
    """Yield what numbers count, by word: also what is sent at once, and in a span of time, as ``requests/min``."""
    amounts = {
        name: Amount(name, **{key: value for key, value in row.items() if key not in ("words", "after")})
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
        name, field = f"requests a {row['spans'][-1]}", {INFER: Key.INFERENCE_REQUEST_RATE}
        amount = Amount(name, field, "always", per=row["seconds"], described="any", billions=True)
        spans = (f"{noun}{per}{span}" for noun in rows["sent"] for per in ("/", "per") for span in row["spans"])
        for word in (*spans, *row.get("words", ())):
            yield key_of(word), amount
        rate = replace(amounts["tokens a second"], name=_OF_A_SPAN, per=row["seconds"], most=0, billions=True)
        for word in rows["numbers"]["tokens"]["words"] if row["seconds"] > 1 else ():
            nouns = {word: rate} | dict.fromkeys((f"output{word}", f"{word}generated"), replace(rate, name=_WRITTEN))
            for noun, counted in nouns.items():
                yield from ((key_of(f"{noun}{per}{span}"), counted) for per in ("/", "per") for span in row["spans"])
                yield from ((key_of(f"{noun}{adverb}"), counted) for adverb in row["adverbs"])
    for name, row in rows["numbers"].items():
        before = rows["numbers"][row["after"]]["words"] if "after" in row else ("",)
        yield from ((key_of(f"{first}{word}"), amounts[name]) for first in before for word in row["words"])


def _fields(other_names: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Return the fields that a word may name, by label and by key; those that catalogues are for go by their rows."""
    paths: dict[str, tuple[str, ...]] = {}
    for path, entry in all_fields().items():
        is_limit = path.startswith(_LIMITS)  # which stands behind a word of money or of time
        names_rows = entry.knob.catalogue not in ("", "interconnect")
        if names_rows or entry.knob.role in UNSAID or is_limit or path == Key.TASK:
            continue
        for name in dict.fromkeys(map(key_of, (entry.knob.label, path.rpartition(".")[2], path))):
            paths[name] = (*paths.get(name, ()), path)
    for path, names in other_names.items():
        for name in map(key_of, names):
            others = tuple(other for other in paths.get(name, ()) if other.startswith(OWN_PARAMETERS))
            paths[name] = (path, *others) if path.startswith(OWN_PARAMETERS) else (path,)
    return paths
