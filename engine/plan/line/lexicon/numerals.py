"""The words of a line as its numbers are read: digits for numbers in words, names before figures inside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import spelled_numbers as spelled
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL, families_of_models, named_model, resembling_model
from capacity_tui.engine.plan.line.lexicon.processor_words import nearest_processor
from capacity_tui.engine.plan.line.lexicon.quantities import image_of, with_software
from capacity_tui.engine.plan.line.lexicon.tokens import PLAIN_COUNT, Token, is_latency, split, with_latencies
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.units import parse_quantity

_TIMES, _THOUSANDS_OF = re.compile(r"[x×](\d{1,3})", re.IGNORECASE), re.compile(r"(\d+(?:\.\d+)?)[kK]")  # x2 3090
_ONE_NUMBER = r"\d+(?:\.\d+)?[kM]?"
_RANGE = re.compile(
    r"(?P<least>\d+(?:\.\d+)?b?)[-–~〜](?P<most>\d+(?:\.\d+)?b)"  # 7-8b
    rf"|(?:(?P<between>between) )?(?P<low>{_ONE_NUMBER})(?: ?[-–] ?|[~〜]| to |(?(between) and |(?!)))"
    rf"(?P<high>{_ONE_NUMBER})(?P<unit>m?s|%)?",
    re.IGNORECASE,
)
_TERA, _LETTERS = re.compile(r"\d+(?:\.\d+)?T", re.IGNORECASE), {"gbs": "gb", "t": "tb"}
_GIGABYTES, _GIGABYTES_WRITTEN = "gbs", ("Gbs", "GBs")
_MEMORIES = ("memory", "mem", "vram", "ram", "of", "each")  # What may stand behind gigabytes, and behind no batch
_MEMORY_SIZE = re.compile(r"(?:\d+[x×])?\d{1,3}(?:[gt]b?)?", re.IGNORECASE)
_NAME_AND_MEMORY = re.compile(r"(.*\d.*)[-_](\d{1,3})gb?", re.IGNORECASE)
_VERSION = re.compile(r"\b([a-z]+)([- _]?v?)(\d[-_. ]\d)(?=[-_ ](\d+(?:\.\d+)?b)\b)", re.IGNORECASE)  # llama 3 3 70b
_NODES_OF = re.compile(r"(?<!\S)(\d{1,4} ?[x×*]) ?\((\d{1,2} ?[x×*] ?[a-z][\w -]*)\)", re.IGNORECASE)  # 2x (8xH100)
_FEWEST_OF_A_UNIT = 3
_MORE = ["more", "than"]
_TIMED = frozenset({"of", "is"})  # Words before a time that is said by an article, as those of a limit are
_LONGEST_NAME = 4  # Words of a device's name, as ``rtx pro 6000 blackwell``
_LONGEST_PART = 5  # Words before the number of a part, as in two thirds of all our 300
_OF = frozenset({"of", "x", "×"})  # Words between a number in words and what it counts, as in ``a pair of 3090s``


def counted_tokens(text: str, catalog: Catalog) -> list[Token]:
    """Return the words of a line, its numbers as digits before hardware and before what they count."""
    plain = _NODES_OF.sub(lambda nodes: f"{nodes[1]}{nodes[2]}".ljust(len(nodes[0])), text)
    plain = _nodes_counted().sub(_nodes, plain)
    named = _VERSION.sub(lambda match: _version(match, catalog), with_software(plain))
    words = spelled.with_sides(spelled.with_memory_speeds(split(named), catalog), text, catalog)
    words = spelled.with_lakhs(words)
    words = spelled.with_hours_of_day(spelled.with_products([*spelled.without_dashes(words)]))
    tokens = _with_times(spelled.with_products(_with_ranges(words)), catalog)
    tokens = _with_host_memory(with_latencies(spelled.with_composite_times(tokens)), catalog)
    tokens = _with_kinds_first([*_with_memory_apart(tokens, catalog)], catalog)
    return _with_parts(_with_digits(_with_names_first(tokens, catalog), catalog))


@cache
def _nodes_counted() -> re.Pattern[str]:
    """Return how lines without spaces count nodes and the devices of each: ``2台8卡H100``, ``两台 H100*8``."""
    words = vocabulary()
    node, device = ("|".join(sorted(words.every[kind])) for kind in ("standing", "standing in"))
    number = "|".join(sorted(word for word in words.counts if not word.isascii()))
    devices = rf"(?P<devices>\d{{1,2}}) ?(?:{device})(?= ?\w)"
    counted = r"(?=[a-z]*\d\S*[x×*]\d|\d{1,3}[x×*] ?[a-z])"
    return re.compile(rf"(?i)(?P<nodes>\d{{1,4}}|{number}) ?(?:{node}) ?(?:{devices}|{counted})")


def _nodes(counted: re.Match[str]) -> str:
    """Return nodes and their devices as products, as long as before: ``2x8xH100``."""
    nodes = vocabulary().counts.get(counted["nodes"], counted["nodes"])
    return f"{nodes}x{counted['devices'] or ''}{'x' * bool(counted['devices'])}".ljust(len(counted[0]))


def _with_memory_apart(tokens: list[Token], catalog: Catalog) -> Iterator[Token]:
    """Yield the words with a device and a memory that no row of its name has as two, as ``A6000-45G``."""
    for token in tokens:
        match = _NAME_AND_MEMORY.fullmatch(token.text)
        if (
            match is None
            or hardware.named_hardware(token.text, catalog)
            or not hardware.named_hardware(match[1], catalog)
        ):
            yield token
            continue
        yield replace(token, text=match[1], ends=False)
        yield replace(token, text=f"{match[2]}gb")


def _version(match: re.Match[str], catalog: Catalog) -> str:
    """Return the version of a model as its name has it, as long as before: ``llama 3.3`` of ``llama 3 3 70b``."""
    family, mark, version, size = match.groups()
    version = re.sub("[-_ ]", ".", version)
    is_known = catalog.architectures.find_id(f"{family}-{version}-{size}") is not None
    return f"{family}{re.sub('v$', ' ' if ' ' in mark else '-', mark)}{version}" if is_known else match[0]


def range_in(source: str, read: str) -> str | None:
    """Return the range of which a word has the larger number in its place, as it is written; None where it has none."""
    match = _RANGE.search(source)
    return match[0] if match is not None and match[0] not in read and _larger_of(match[0]) else None


def _larger_of(text: str) -> str | None:
    """Return the larger number of a range, as 8k of ``6-8k`` and 12 of ``between 8 and 12``; None for others."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    low, high, unit = match["low"] or match["least"], match["high"] or match["most"], match["unit"] or ""
    low += high[-1] if low[-1].isdecimal() and not high[-1].isdecimal() else ""
    return f"{high}{unit}" if parse_quantity(low, "") < parse_quantity(high, "") else None


def _with_ranges(tokens: list[Token]) -> list[Token]:
    """Return the words with the larger number of a range in its place, with what it counts: ``6-8k tokens``."""
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        sizes = (words for words in (4, 3, 1) if index + words <= len(tokens))
        spans = ((words, " ".join(token.text for token in tokens[index : index + words])) for words in sizes)
        words, larger = next(((words, larger) for words, span in spans if (larger := _larger_of(span))), (1, None))
        last = tokens[index + words - 1]
        made.append(tokens[index] if larger is None else Token(larger, tokens[index].start, last.end, last.ends))
        index += words
    return made


def _with_parts(tokens: list[Token]) -> list[Token]:
    """Return the words with a part of a number as what that comes to, as 32 for ``half of our 64``."""
    made: list[Token] = []
    for token in tokens:
        part, words = _part_of([key_of(before.text) for before in made[-_LONGEST_PART:]], token.text)
        if words:
            made[-words:] = [replace(token, text=str(part), start=made[-words].start)]
        else:
            made.append(token)
    return made


def _part_of(keys: list[str], whole: str) -> tuple[int, int]:
    """Return what the words before a number take of it, and how many words say so; 0 where none do."""
    owned = len(keys) - 1 - keys[::-1].index("of") if "of" in keys else 0
    if not owned or not whole.isdecimal() or not vocabulary().owned.issuperset(keys[owned + 1 :]):
        return 0, 0
    share, words = vocabulary().parts.get(keys[owned - 1], 0.0), len(keys) - owned + 1
    if share:
        many = float(spelled.is_one(keys[owned - 2])) or spelled.number_of(keys[owned - 2]) if owned > 1 else 0.0
        return round(int(whole) * share * (many or 1.0)), words + int(many > 0)
    some = spelled.number_of(keys[owned - 1])  # two of the 8, but not 16 of 512 tokens
    return (some, words) if 0 < some < int(whole) and keys[owned + 1 :] else (0, 0)


def _with_times(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with times in words as one, as ``two weeks``, ``half an hour`` and ``within a second``."""
    words, keys = vocabulary(), [key_of(token.text) for token in tokens]
    units = {**words.time_units, **words.durations}
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        number, at = _amount_of_time(keys, index)
        unit = units.get(keys[at]) if number and at < len(keys) and len(keys[at]) >= _FEWEST_OF_A_UNIT else None
        if unit is not None and keys[at + 1 : at + 4] == spelled.AND_A_HALF:  # an hour and a half
            number, at = number + 0.5, at + 3
        before = made[-1].text if made else ""
        is_time = number != 1 or keys[index] in words.counts or is_latency(key_of(before))
        is_time |= not (words.within | words.limiting | _TIMED).isdisjoint((key_of(before), keys[index]))
        is_time &= not any(token.ends for token in tokens[index:at])
        is_ordinal = unit == "s" and _is_named(tokens[at + 1 : at + 1 + _LONGEST_NAME], catalog)
        if unit is None or not is_time or is_ordinal:  # in a second 3090
            made.append(tokens[index])
            index += 1
            continue
        made.append(Token(f"{number:g}{unit}", tokens[index].start, tokens[at].end, tokens[at].ends))
        index = at + 1
    return made


def _amount_of_time(keys: list[str], index: int) -> tuple[float, int]:
    """Return a number in words before a unit of time, and where that stands: ``a tenth of a``, ``one and a half``."""
    whole = max(spelled.number_of(keys[index]), float(spelled.is_one(keys[index])))
    if whole and keys[index + 1 : index + 4] == spelled.AND_A_HALF:
        return whole + 0.5, index + 4
    at = index + int(whole > 0)
    part = vocabulary().parts.get(keys[at], 0.0) if at < len(keys) else 0.0
    if not part:
        return whole, index + 1 + int(whole > 1 and keys[index + 1 : index + 2] == ["of"])
    after = keys[at + 1 : at + 3]
    joints = 2 if after[:1] == ["of"] and any(map(spelled.is_one, after[1:])) else int(after[:1] in (["a"], ["an"]))
    return (whole or 1.0) * part, at + 1 + joints


def _is_named(tokens: list[Token], catalog: Catalog) -> bool:
    """Whether some words begin with the name of a device."""
    names = (" ".join(token.text for token in tokens[:count]) for count in range(1, len(tokens) + 1))
    named = (hardware.named_hardware(name, catalog) for name in names)
    return any(meaning is not None and hardware.DEVICES not in meaning.values for meaning in named)


def _with_kinds_first(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with kinds of samples before their number, and data behind it.

    As in ``60k DPO pairs``, ``2000 512x512 images``, ``20k llama 8b chats a day`` and ``alpaca 52k``.
    """
    words, made = vocabulary(), list(tokens)
    kinds = words.objectives.keys() | words.suggests.keys() | words.supervised
    families = [at for at, token in enumerate(tokens) if token.text.casefold() in families_of_models(catalog)]
    for index in range(len(tokens) - 1):
        first, second = (token.text for token in made[index : index + 2])
        names = (few for few in (3, 2, 1) if index + 1 + few < len(made))
        few = next((few for few in names if _names_samples(made[index + 1 : index + 2 + few], catalog)), 0)
        few = few if all(index < at <= index + few for at in families) else 0  # llama 8b on 5k qwen samples
        noun = made[index + 1 + (few or 1)].text if index + 1 + (few or 1) < len(made) else ""
        amount = words.amounts.get(key_of(noun))
        is_image = image_of(second) is not None and (not index or key_of(made[index - 1].text) not in words.amounts)
        is_kind = PLAIN_COUNT.fullmatch(first) is not None and (is_image or few > 0 or key_of(second) in kinds)
        is_data = (
            key_of(first) in words.datasets
            and second[0].isdigit()
            and second[-1] in ("kKmMbBtT" if words.datasets[key_of(first)][0] == Key.TRAINING_TOKENS else "kKmM")
            and key_of(first + second) not in words.datasets
        )
        if (amount is not None and amount.described == "any" and is_kind) or (is_data and amount is None):
            last = index + 1 + (few or 1)
            made[index:last] = *made[index + 1 : last], made[index]
    return made


def _names_samples(tokens: list[Token], catalog: Catalog) -> bool:
    """Whether some words are a model and what it makes or reads, as ``sdxl images`` and ``llama 8b conversations``."""
    name = " ".join(token.text for token in tokens[:-1])
    amount = vocabulary().amounts.get(key_of(tokens[-1].text)) if len(tokens) > 1 else None
    if amount is None or amount.described != "any" or not name[:1].isalpha():
        return False
    is_family = name.split()[0].casefold() in families_of_models(catalog)
    usual = resembling_model(name.replace(" ", "-"), catalog) if is_family else None
    return named_model(name, catalog) is not None or (usual is not None and usual.values[MODEL] in vocabulary().models)


def _with_host_memory(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with sizes of main memory in units of these, as ``1.2T ram`` and ``ram is 64 G``."""
    made: list[Token] = []
    for index, token in enumerate(tokens):
        nouns = {key_of(after.text) for after in tokens[index + 1 : index + 3]}
        start = vocabulary().start_of([key_of(before.text) for before in tokens[:index]])
        nouns |= {key_of(before.text) for before in tokens[max(start - 1, 0) : start] if not before.ends}
        is_memory = not nouns.isdisjoint(vocabulary().ram) or _is_gigabytes(tokens, index, catalog)
        if is_memory and _TERA.fullmatch(token.text):
            made.append(replace(token, text=f"{token.text[:-1]}tb"))
        elif is_memory and (unit := _LETTERS.get(key_of(token.text))) and made and PLAIN_COUNT.fullmatch(made[-1].text):
            made[-1:] = [replace(token, text=f"{made[-1].text}{unit}", start=made[-1].start)]
        else:
            made.append(replace(token, text=f"{token.text}gb") if _is_of_memory(tokens, index, catalog) else token)
    return made


def _is_gigabytes(tokens: list[Token], index: int, catalog: Catalog) -> bool:
    """Whether ``gbs`` is of a memory rather than a batch: ``46 Gbs``, ``24 gbs memory``, ``a6000 48 gbs``."""
    token, number = tokens[index], tokens[max(index - 1, 0)].text
    after = tokens[index + 1].text if index + 1 < len(tokens) and not token.ends else ""
    if key_of(token.text) != _GIGABYTES or after[:1].isdigit() or not number.isdecimal():
        return False
    named = (hardware.named_hardware(one.text, catalog) for one in tokens[max(index - 3, 0) : index - 1])
    rows = (catalog.accelerators.get(str(one.values.get(hardware.NAME))) for one in named if one is not None)
    is_sold = any(row is not None and hardware.is_memory_of(row, hardware.MIB_OF_GIB * int(number)) for row in rows)
    return is_sold or token.text in _GIGABYTES_WRITTEN or key_of(after) in _MEMORIES


def _is_of_memory(tokens: list[Token], index: int, catalog: Catalog) -> bool:
    """Whether a plain number is GB of a memory beside it, as in ``vram 24, ram 64``, but not ``64gb ram 4 l4``."""
    words, last = vocabulary(), index + 1 + _LONGEST_NAME
    keys = [key_of(tokens[at].text) if 0 <= at < len(tokens) else "" for at in (index - 3, index - 1, index + 1)]
    first, before, after = (key in words.ram or key.endswith("vram") for key in keys)
    is_taken = index > 1 and not first and _MEMORY_SIZE.fullmatch(tokens[index - 2].text) is not None
    counts = amount.is_behind if (amount := words.amounts.get(keys[-1])) else keys[-1] in words.fields
    is_size = (after and not tokens[index].ends) or (before and not (is_taken or counts or tokens[index - 1].ends))
    is_size &= tokens[index].text.isdecimal()
    named = (" ".join(token.text for token in tokens[max(at, 0) : index + 1]) for at in (index - 2, index - 1))
    is_size = is_size and not any(nearest_processor(name, catalog) for name in named)  # xeon gold 6430 ddr5
    return is_size and not any(_is_named(tokens[at:last], catalog) for at in (index, index + 1))


def _with_names_first(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with names before a memory inside them, as in ``2 24gb 3090s`` and ``4060 8gb laptop``."""
    for index in range(1, len(tokens) - 1):
        before, figure = tokens[index - 1].text, tokens[index]
        is_own = before.isdigit() and not _is_named_before(tokens, index - 1)  # but batch 2 24gb gpu
        is_own &= hardware.named_hardware(before, catalog) is None  # 3060 12gb, i5-9400f
        is_counted = is_own or key_of(before) in {*vocabulary().counts, "x"}
        noun = vocabulary().amounts.get(key_of(tokens[index + 1].text)) if is_own else None
        if hardware.MEMORY not in (hardware.figures_of(figure.text) or {}):
            continue
        for end in range(min(index + 4, len(tokens)), index + 1, -1):
            name = tokens[index + 1 : end]
            is_portable = end == index + 2 and key_of(name[0].text) == hardware.LAPTOP
            called = " ".join(token.text for token in name)
            is_name = is_counted and hardware.named_hardware(called, catalog) is not None
            is_name |= end == index + 2 and noun is not None and noun.name == "devices"  # 8 80gb cards
            if is_portable or is_name:
                return [*tokens[:index], *name, figure, *_with_names_first(tokens[end:], catalog)]
    return tokens


def _is_named_before(tokens: list[Token], index: int) -> bool:
    """Whether a number is of the words before it, and no number before has them: ``rank 32``, ``flash attention 2``."""
    if index < 1:
        return False
    words, amount = vocabulary(), vocabulary().amounts.get(key_of(tokens[index - 1].text))
    is_number = index > 1 and PLAIN_COUNT.fullmatch(tokens[index - 2].text) is not None
    is_taken = is_number and not _is_named_before(tokens, index - 2)
    phrase = key_of("".join(token.text for token in tokens[max(index - 2, 0) : index + 1]))
    is_phrase = any(phrase in phrases for phrases in words.phrases.values())
    return is_phrase or (amount is not None and not amount.is_behind and not is_taken)


def _with_digits(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with numbers in words as digits, before hardware and before what they count."""
    counts = vocabulary().counts
    made: list[Token] = []
    skipped = -1
    for index, token in enumerate(tokens):
        if index == skipped:
            continue
        times = _TIMES.fullmatch(token.text)
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        thousands = _THOUSANDS_OF.fullmatch(token.text) if after[:1].isalpha() and after.endswith("s") else None
        is_over = token.ends and _is_named(tokens[index + 1 : index + 1 + _LONGEST_NAME], catalog)  # it is due. 4090
        count = int(times[1]) if times else None if is_over else counts.get(key_of(token.text))
        count = round(float(thousands[1]) * 1000) if thousands else count  # 24k H100s
        count = _ordinal(tokens, index, catalog) or count
        before = [key_of(earlier.text) for earlier in tokens[max(index - 2, 0) : index]]
        count = 2 if count == 1 and before == _MORE else count
        at = index + 1 + int(index + 1 < len(tokens) and key_of(tokens[index + 1].text) in _OF)
        is_described = at < len(tokens) and key_of(tokens[at].text) in vocabulary().adjectives
        if count and is_described and _is_named(tokens[at + 1 : at + 1 + _LONGEST_NAME], catalog):
            made.append(Token(f"{count}x", token.start, token.end))  # two intel arc b60s, a pair of used 3090s
            skipped = at - 1 if at > index + 1 else -1
            continue
        behind = [later.text for later in tokens[at : at + 2]]
        is_behind = times is not None and made and hardware.named_hardware(made[-1].text, catalog)  # T4 x4
        is_night = key_of(token.text + after) in vocabulary().deadlines  # in one night
        if key_of(token.text) in counts and _is_setting(made) and not is_night:  # a tensor parallel size of eight
            made.append(replace(token, text=str(count)))
            continue
        if times is not None and len(made) > 1 and _is_named(made[-2:-1], catalog) and made[-1].text.isdecimal():
            made[-2:-1] = [replace(made[-2], text=f"{count}x{made[-2].text}", end=token.end)]  # a100 80 x2
            continue
        if count is None or not behind or is_behind:
            made.append(token)
            continue
        amount = vocabulary().amounts.get(key_of(behind[0]))
        is_hardware = any(hardware.named_hardware(" ".join(behind[:words]), catalog) for words in (1, 2))
        is_hardware |= _is_named(tokens[at : at + _LONGEST_NAME], catalog)
        is_hardware |= key_of(behind[0]) in vocabulary().nodes
        if hardware.MEMORY in (hardware.figures_of(after) or {}):  # two 24gb cards
            made.append(Token(f"{count}x{after}", token.start, tokens[index + 1].end, tokens[index + 1].ends))
            skipped = index + 1
            continue
        if not is_hardware and (amount is None or not amount.is_behind or thousands):
            made.append(token)
            continue
        skipped = at - 1 if at > index + 1 else -1
        if is_hardware and amount is None:
            made.append(Token(f"{count}x", token.start, token.end))
        else:
            made.append(Token(str(count), token.start, token.end))
    return made


def _is_setting(tokens: list[Token]) -> bool:
    """Whether some words end in the name of a setting that has a number behind it, as ``batch of``."""
    words = vocabulary()
    last = words.start_of([key_of(token.text) for token in tokens])
    names = (key_of("".join(token.text for token in tokens[start:last])) for start in range(max(last - 3, 0), last))
    amounts = ((name, words.amounts.get(name)) for name in names)
    return any(name in words.fields if amount is None else not amount.is_behind for name, amount in amounts)


def _ordinal(tokens: list[Token], index: int, catalog: Catalog) -> int | None:
    """Return how many devices there are with the one behind an ordinal, as 2 of ``a second 3090``; None for others."""
    key, words = key_of(tokens[index].text), vocabulary()
    before, counted = ("", "", *(key_of(token.text) for token in tokens[:index]))[:-3:-1]
    is_span = key in words.spans and (
        before in ("per", "/") or before[:1].isdigit() or counted in words.amounts or counted in words.within
    )
    which = None if is_span else words.ordinals.get(key, words.ordinals.get(before + key))
    if which is None or not _is_named(tokens[index + 1 : index + 1 + _LONGEST_NAME], catalog):
        return None
    counted_ones = (
        spelled.number_of(one) or (hardware.counted(one) or (0, ""))[0]
        for at, (amount, one) in enumerate(pairwise(("", *(token.text for token in tokens))))
        if key_of(amount) not in words.amounts  # batch 64 h100
        and (hardware.counted(one) or _is_named(tokens[at + 1 : at + 1 + _LONGEST_NAME], catalog))
    )
    return max(which, 1 + max(counted_ones, default=0))  # another beside two is the third
