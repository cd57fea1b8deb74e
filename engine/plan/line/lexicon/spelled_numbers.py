"""Numbers of several words: in letters, of a scale, or two sides of an image; and those that are vague."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import find_known_model
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL, named_model
from capacity_tui.engine.plan.line.lexicon.processor_words import nearest_processor, numbered_processor
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, sides_in, times_scale
from capacity_tui.engine.plan.line.lexicon.setting_words import IMAGE_SIZE
from capacity_tui.engine.plan.line.lexicon.tokens import PLAIN_COUNT, Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FIT, TRAIN
from capacity_tui.engine.units import parse_quantity

_MINUTE_SECONDS = 60
_LONGEST_NUMBER = 15  # Digits of a number that parts are reckoned of
_FEWEST_OF_A_SCALE = 3  # Letters of a suffix that stands by itself
_LETTERS_OF_A_CODE = 2  # Of a language, as ``en`` and ``de``
_TEN, _HUNDRED, _THOUSAND, _DOZENS = 10, 100, 1000, ("dozen", "dozens")
_LONGEST_NAME = 3  # Words of the name of a model that reads images, as ``stable diffusion xl``
_HALF = "half"
_MODEL_NUMBER = re.compile(r"\d{3,}|[a-z]\d{2,}")  # Of a device, as ``3090`` and ``a40``
AND_A_HALF = ["and", "a", _HALF]
_PART_OF_A_TIME = re.compile(r"(\d+)m", re.IGNORECASE)  # 2h 30m
_GLUED_TIME = re.compile(r"(?:(\d+)d)?(\d+)(?::(\d\d))?h(?:(\d{1,2})(m(?:ins?)?)?)?", re.IGNORECASE)
"""A time of several units as one word: ``3d12h``, ``2h45m``, ``1h30``, ``1:30h``."""
_DASHES = ("-", "–", "—")  # Between numbers, and between clauses
_MEMORY = re.compile(r"((?:lp)?ddr[1-5]x?)[-@_ ]?(?:([1-9]\d{3,4})(?:mhz|mt/?s)?)?", re.IGNORECASE)
_SPEED, _UNITS_OF_SPEED = re.compile(r"([1-9]\d{3,4})(mhz|mt/?s)?", re.IGNORECASE), ("mhz", "mt/s", "mts")
_CLOCK, _DAY = re.compile(r"(\d{1,2})(?::00)?(am|pm)", re.IGNORECASE), 24
_TIMES = ("x", "×", "*")
_LAKHS = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_MINUTES = {"w": 7 * 24 * 60, "d": 24 * 60, "h": 60}  # Of what parts of a time may be part of


def number_of(word: str) -> int:
    """Return the number that a word is, in letters or digits, as ``two`` or ``2x``; 0 for other words."""
    digits = word.rstrip("xX×")
    if digits.isdecimal():
        return int(digits) if len(digits) <= _LONGEST_NUMBER else 0
    return vocabulary().counts.get(key_of(word), 0)


def is_one(key: str) -> bool:
    """Return whether a word is an article, which before a time is one of it: ``within a second``, ``in einem Tag``."""
    return key in vocabulary().every["one"]


def _digits_of(word: str) -> list[str]:
    """Return a number in letters and what it is of where a word is both: ``twenty-five``, ``dual-3090``."""
    words, parts = vocabulary(), word.casefold().split("-")
    units = words.counts.keys() | words.durations.keys() | words.time_units.keys()
    is_counted = parts[0] in words.counts or parts[0] == _HALF
    if is_counted and _MODEL_NUMBER.search("-".join(parts[1:])):
        return word.split("-", 1)
    return parts if is_counted and len(parts) > 1 and all(part in units for part in parts[1:]) else [word]


def with_products(tokens: list[Token]) -> list[Token]:
    """Return the words with numbers of some words as one, as ``two dozen`` and ``a hundred and twenty eight``."""
    tokens = [replace(token, text=part) for token in tokens for part in _digits_of(token.text)]
    keys = [token.text if token.text[:1].isdigit() else key_of(token.text) for token in tokens]  # 5-6 is no 56
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        text, end = _scaled_in_words(keys, index)
        if end <= index + 1:
            made.append(tokens[index])
            index += 1
            continue
        has_article = bool(made) and made[-1].text == "a" and keys[index] in vocabulary().counts
        start = made.pop().start if has_article else tokens[index].start
        made.append(Token(text, start, tokens[end - 1].end, tokens[end - 1].ends))
        index = end
    return made


def with_composite_times(tokens: list[Token]) -> list[Token]:
    """Return the words with times of several units as one: ``3 days 12 hours``, ``2h 30m``, ``1h30 of audio``."""
    made: list[Token] = []
    for at, token in enumerate(tokens):
        around = {key_of(near.text) for near in (*tokens[max(at - 1, 0) : at], *tokens[at + 1 : at + 3])}
        minutes = _glued_minutes(token.text, is_time=not around.isdisjoint(vocabulary().within | vocabulary().sound))
        joint = 1 + int(len(made) > 1 and key_of(made[-1].text) == "and")
        first = made[-joint] if len(made) >= joint else None
        if first is not None and not first.ends and (whole := _sum_of_times(first.text, token.text)):
            made[-joint:] = [Token(_written(whole), first.start, token.end, token.ends)]
        else:
            made.append(token if minutes is None else replace(token, text=_written(minutes)))
    return made


def _glued_minutes(word: str, *, is_time: bool) -> float | None:
    """Return the minutes of a time whose units are one word; None for others, as 3h20 where no time is meant."""
    match = _GLUED_TIME.fullmatch(word)
    if match is None or not any(match.group(1, 3, 4)):
        return None
    days, hours, of_a_clock, minutes, unit = match.groups()
    if minutes and not (unit or days or is_time):
        return None
    return int(days or 0) * _MINUTES["d"] + int(hours) * _MINUTES["h"] + int(of_a_clock or minutes or 0)


def _written(minutes: float) -> str:
    """Return a time as a word: in hours where it has no others, as ``84h``."""
    hours, rest = divmod(minutes, _MINUTES["h"])
    return f"{minutes:.15g}min" if rest else f"{hours:.15g}h"


def _sum_of_times(first: str, second: str) -> float:
    """Return the minutes of a time and of a part of its unit behind it, as of 3d and 12h; 0 where it is none."""
    part = _PART_OF_A_TIME.fullmatch(second)
    spans = duration_of(first), f"{part[1]}min" if part else duration_of(second)
    if None in spans:
        return 0.0
    whole, rest = (parse_quantity(str(span), "s") / _MINUTE_SECONDS for span in spans)
    unit = _MINUTES.get(first.lstrip("0123456789.")[:1].casefold(), 0)
    return whole + rest if rest < unit else 0.0


def without_dashes(tokens: list[Token]) -> Iterator[Token]:
    """Yield the words without dashes between clauses, which end what stands before them; between numbers they stay."""
    for index, token in enumerate(tokens):
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.text not in _DASHES or after[:1].isdigit():
            yield replace(token, ends=token.ends or after in _DASHES)


def with_memory_speeds(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with speed and channels of main memory as one each, ``4800mts`` and ``12ch``.

    As in ``ddr5-4800``, ``DDR4 @ 3200 MHz`` and ``dual channel``; those of a picture stay.
    """
    keys, memories = [key_of(token.text) for token in tokens], vocabulary().ram
    is_named = any(_MEMORY.fullmatch(token.text) for token in tokens) or not memories.isdisjoint(keys)
    names = (*(token.text for token in tokens), *(f"{one.text} {another.text}" for one, another in pairwise(tokens)))
    is_named |= any(numbered_processor(name, catalog) or nearest_processor(name, catalog) for name in names)
    if not is_named:  # but epyc 9654 8 channels
        return tokens
    made: list[Token] = []
    for token, after in zip(tokens, (*keys[1:], ""), strict=True):
        before, text = made[-1] if made else Token("", 0, 0), token.text.casefold()
        is_of_memory, memory = _MEMORY.fullmatch(before.text), _MEMORY.fullmatch(text)
        speed, joined = _SPEED.fullmatch(text), not before.ends and _channels().fullmatch(f"{before.text} {text}")
        channels = joined or _channels().fullmatch(text)
        count = number_of(channels[1]) if channels and after not in vocabulary().amounts else 0  # 3 channel images
        is_speed = speed is not None and bool(speed[2]) and (after in memories or bool(is_of_memory))
        if memory is not None and memory[2]:
            at = token.start + memory.start(2)
            made += (Token(memory[1], token.start, at), Token(f"{memory[2]}mts", at, token.end, token.ends))
        elif speed is not None and (is_speed or (is_of_memory and catalog.accelerators.find_id(text) is None)):
            made.append(replace(token, text=f"{speed[1]}mts"))
        elif count:
            first = made.pop() if joined else token
            made.append(replace(token, text=f"{count}ch", start=first.start))
        elif not (is_of_memory and text == "@") and not (before.text.endswith("mts") and text in _UNITS_OF_SPEED):
            made.append(token)
    return made


@cache
def _channels() -> re.Pattern[str]:
    words = "|".join(sorted(vocabulary().every["channels"], reverse=True))
    return re.compile(rf"(\d{{1,2}}|[a-z]+)[- ]?(?:{words})", re.IGNORECASE)


def with_hours_of_day(tokens: list[Token]) -> list[Token]:
    """Return the words with two times of a day as the time between them, as ``between 1am and 5am``."""
    made: list[Token] = []
    for token in tokens:
        last = _hour_of(token.text)
        if last is not None and len(made) > 1 and key_of(made[-1].text) in vocabulary().every["hours"]:
            first = _hour_of(made[-2].text)
            if first is not None:
                hours = (last - first) % _DAY or _DAY
                made[-2:] = [replace(token, text=f"{hours}h", start=made[-2].start)]
                continue
        made.append(token)
    return made


def _hour_of(word: str) -> int | None:
    """Return the hour of a day that a word says, as ``5pm``; None for other words."""
    match = _CLOCK.fullmatch(word)
    return None if match is None else int(match[1]) % 12 + 12 * (match[2].casefold() == "pm")


def with_lakhs(tokens: list[Token]) -> list[Token]:
    """Return the words with numbers of data whose digits stand in groups of two: ``12,81,167 images``."""
    made: list[Token] = []
    for token in tokens:
        counted = vocabulary().amounts.get(key_of(token.text)) if made and _LAKHS.fullmatch(made[-1].text) else None
        if counted is not None and (counted.field(TRAIN) == Key.TRAINING_SAMPLES or counted.field(FIT)):
            made[-1] = replace(made[-1], text=made[-1].text.replace(",", ""))
        made.append(token)
    return made


def with_sides(tokens: list[Token], text: str, catalog: Catalog) -> list[Token]:
    """Return the words with sides of images as one, ``512, 512`` and ``512 x 512``, in a line whose model reads images.

    Not where a word before the first or behind the last says that they count something else: ``batch 512, 512 images``.
    """
    made: list[Token] = []
    for at, token in enumerate(tokens):
        few = 2 if made and made[-1].text in _TIMES else int(bool(made) and made[-1].ends)
        first = made[-few] if few and [one.text for one in made[-few:][:1]] == [token.text] else token
        few = 0 if first is token else few
        earlier = made[: len(made) - few][-2:]
        before = [] if earlier and PLAIN_COUNT.fullmatch(earlier[0].text) else earlier[-1:]  # 1500 steps 512 x 512
        sides = sides_in(re.sub(r",\s+|\s[x×*]\s", ",", text[first.start : token.end]))
        is_named = bool(before) and not before[0].ends and _counts_no_pixels(before[0])
        behind = [] if token.ends else tokens[at + 1 : at + 3]
        is_counted = bool(behind) and _counts_no_pixels(behind[0]) and not _is_name_of(behind)
        if sides is None or is_named or is_counted or not _reads_images(tokens, catalog):
            made.append(token)
            continue
        made[len(made) - few :] = [Token(sides, first.start, token.end, token.ends)]
    return made


def _counts_no_pixels(token: Token) -> bool:
    amount = vocabulary().amounts.get(key_of(token.text))
    return amount is not None and not str(amount.field(TRAIN)).endswith(IMAGE_SIZE)


def _is_name_of(words: list[Token]) -> bool:
    """Whether the first of two words is the name of the number behind it, as in ``512,512 batch 8``."""
    is_number = len(words) > 1 and not words[0].ends and words[1].text.isdecimal()
    return is_number and words[1].text not in vocabulary().hardware


def _reads_images(tokens: list[Token], catalog: Catalog) -> bool:
    """Whether some words name a model that reads or draws images."""
    spans = (tokens[at : at + few] for at in range(len(tokens)) for few in range(1, _LONGEST_NAME + 1))
    named = (named_model(" ".join(token.text for token in span), catalog) for span in spans)
    for name in (str(meaning.values[MODEL]) for meaning in named if meaning is not None):
        row, model = catalog.architectures.get(name), find_known_model(name, catalog)
        own = () if model is None else (key for key, _, _ in model.parameters())
        if IMAGE_SIZE in own or (row is not None and row.kind == "vit") or name.startswith(tuple(vocabulary().sights)):
            return True
    return False


def _scaled_in_words(keys: list[str], index: int) -> tuple[str, int]:
    """Return a number in some words, and where it ends: 2.5M of ``two and a half million``."""
    words, (number, end) = vocabulary(), _number_in_words(keys, index)
    if keys[index] in ("a", "an") and keys[index - 1 : index] != ["per"]:  # a million
        number, end = 1, index + 1
    half = index + 2 if keys[index : index + 2] == [_HALF, "a"] else 0
    half = end + 3 if number and keys[end : end + 3] == AND_A_HALF else half
    if half and keys[half : half + 1] == [_DOZENS[0]]:
        return str(round((number + 0.5) * vocabulary().counts[_DOZENS[0]])), half + 1  # half a dozen
    scale = words.scales.get("".join(keys[end + 1 : end + 2]))
    if number and scale == "M" and not words.thousands.keys().isdisjoint(keys[end : end + 1]):
        return times_scale(str(number), "1000M"), end + 2  # 100 mil millones
    for value, at in ((number + 0.5, half), (number, end)):
        scale = _scale_of(keys, at) if index < at < len(keys) else ""
        if scale:
            return times_scale(f"{value:.12g}", scale), at + 1
    return str(number), end


def _scale_of(keys: list[str], at: int) -> str:
    """Return the suffix that a word is, as M of ``million``; ``mil`` is one or a thousand by what stands beside it.

    None where that cannot be told: words of two letters are codes of languages too.
    """
    words, key = vocabulary(), keys[at]
    if (others := words.thousands.get(key)) is not None:
        near = (word for word in keys[max(at - 2, 0) : at + 2] if len(word) > _LETTERS_OF_A_CODE)
        return "M" if {*others}.isdisjoint(keys) else "" if {*others}.isdisjoint(near) else "k"
    return words.scales.get(key, "") if len(key) >= _FEWEST_OF_A_SCALE else ""


def vague_number(source: str, read: str) -> str:
    """Return a number in words that nobody means exactly, as ``several hundred`` or ``2 mil``; empty for others."""
    keys, words = [key_of(word) for word in source.split()], vocabulary()
    is_vague = not words.vague.keys().isdisjoint(keys[:-1]) or not words.thousands.keys().isdisjoint(keys[-1:])
    return source if is_vague and read[:1].isdigit() else ""


def _number_in_words(keys: list[str], index: int) -> tuple[int, int]:
    """Return a whole number whose first word may be digits, and where it ends; 0 where none begins."""
    words, counts = vocabulary(), vocabulary().counts
    number, at = number_of(keys[index]), index + 1
    if at < len(keys) and (counts.get(keys[at], 0) >= _TEN or _scale_of(keys, at)):
        number = words.vague.get(keys[index], number)  # several hundred, but several users
    while number and at < len(keys):
        few = number % _HUNDRED if number >= _THOUSAND else number  # two thousand five hundred
        many = counts.get(keys[at], 0)
        if few and ((many >= _HUNDRED and many > few) or keys[at] in _DOZENS):
            number, at = number + few * (many - 1), at + 1
            continue
        joint = int(keys[at] == "and" and number % _HUNDRED == 0)
        more = counts.get(keys[at + joint], 0) if at + joint < len(keys) else 0
        room = _HUNDRED if number % _HUNDRED == 0 else _TEN if number % _HUNDRED > _TEN and number % _TEN == 0 else 0
        if not 0 < more < room or keys[index][:1].isdigit():  # 7950x dual channel
            break
        number, at = number + more, at + joint + 1
    return number, at if number else index
