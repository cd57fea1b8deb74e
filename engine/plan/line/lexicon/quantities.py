"""How numbers, times, sums and settings are written, and what they are in one way that is read everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache

from capacity_tui.engine.catalog import close_matches, key_of
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import Currency
from capacity_tui.engine.units import parse_quantity

_LONGEST_UNSPACED = 12  # Characters of a word that no space parts from the next
_SCRIPT, _MARKS_BEHIND, _MEASURE_WORD = "\u3040-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3", ",;:?!，、；。", "个"
_UNSPACED = re.compile(f"[{_SCRIPT}]+")
_PIECES = re.compile(
    rf"(?<=\d)[千万亿億]|(?<=\d)[wW](?=[{_SCRIPT}])|[{_SCRIPT}]+[{_MARKS_BEHIND}]*|(?:p\d\d|e2el?)(?=[<≤])"
    rf"|(?<=\d)(?:[-=]>|→)(?=\d)|(?:(?!(?<=\d)(?:[-=]>|→)\d|(?<=\d)[wW][{_SCRIPT}]"
    rf"|(?<=\d),(?!\d{{3}}(?!\d))\d+(?:\.\d+)?[wW]?[{_SCRIPT}])[^{_SCRIPT}])+"
)
"""Words of a text without spaces, and what stands between them; a percentile, an arrow and e2e are words themselves."""
_LONGEST_YEARS, _LONGEST_DAYS = 2, 3  # Digits
_FEWEST_OF_A_SCALE, _LIKE_A_SCALE = 4, 0.74  # Letters, and how much of them a slip shares
_LONGEST_NUMBER = 15  # Characters of a number that is read with its scale behind it
_MONEY = re.compile(
    r"\$\s?(?P<sum>\d[\d,]*(?:\.\d+)?[km]?)|(?P<other>\d[\d,]*(?:\.\d+)?[km]?)(?:\$|usd|dollars?|bucks)", re.IGNORECASE
)
OF_ONE, OF_ENERGY = "/gpuh", "/kwh"
_PER_ONE, _ONE_DEVICE, _ONE_HOUR = (
    r"\s*(?:/|-|·|\bper\b|\ban?\b)\s*",
    r"(?:gpu|device|card|chip|[a-z]{1,3}\d{1,4}[a-z]{0,2})",
    r"(?:h|hr|hour)",
)
_ONE = (
    rf"(?:{_PER_ONE}(?:{_ONE_DEVICE}[\s/·-]*(?:per|an?)?\s*{_ONE_HOUR}|{_ONE_HOUR}{_PER_ONE}{_ONE_DEVICE}"
    r"|(kwh|kw-h|kilowatt[\s-]?hour))s?\b)"
)
_AN_HOUR = rf"\s*(?:/|\bper\b|\ban\b)\s*{_ONE_HOUR}\b"
SUM_OF_ONE = re.compile(
    rf"(?:([$€£])\s?(\d[\d,.]*)|(\d[\d,.]*)\s*(\$|€|£|usd|eur|euros?|gbp|pounds?|dollars?|bucks|cents?|cts?|c\b|¢)?){_ONE}"
    rf"|([$€£])\s?(\d{{1,2}}(?:\.\d+)?)(?:{_AN_HOUR})?\s+(?:each|apiece)\b"
    rf"|(\d{{1,2}}\.\d+)(?:{_AN_HOUR}\s+(?:each|apiece)\b|\s+(?:each|apiece){_AN_HOUR})",
    re.IGNORECASE,
)
"""What each device costs an hour, or energy: ``$2 per gpu hour``, ``$2/h per gpu``, ``$2 each``, ``30 cents a kWh``."""
QUANTIZED = ("quantization", "quantisation", "quantizing", "quantized", "quantised", "quant")
_DOLLARS = "$"
_NUMBER = re.compile(r"\d[\d_]*(?:[.,]\d+)*", re.ASCII)
_MONTHS = 12  # Of a year
_CENTS = ("c", "¢")  # What words for hundredths of a dollar begin with
_SPAN = r"(?:(\d{1,2}|one|two|three)[\s-]*(y|m)[a-z]*|annual|yearly)"
_BOUND = r"(?:reserv(?:ed|ations?)|commit(?:ments?|ted)?|contract)"
COMMITMENT = re.compile(rf"{_SPAN}[\s-]*{_BOUND}\b|{_BOUND}\s+(?:for\s+|of\s+)?\(?{_SPAN}\b\)?", re.IGNORECASE)
"""For how long hardware is rented, as ``1yr reserved`` and ``reserved for 3 years``."""
SPANS = {"hourly": "h", "daily": "day", "weekly": "week", "monthly": "mo", "yearly": "y"}
_SUM_IN_WORDS = re.compile(r"([^\d\s]*)\s?\d[\d.,]*[km]?\s?((?:[€£]|[a-z]*))(?:(?:/|per).*)?", re.IGNORECASE)
_OF_TIME = re.compile(r"(?:/|per)(?:gpu)?(h|hr|hour|d|day|w|wk|week|mo|month|y|yr|year)", re.IGNORECASE)
_APART = re.compile(r"[.,](?=\d{3}(?!\d))")  # Before thousands, as in ``€1.500``
_HOURS_OF = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_GIGABYTES = re.compile(r"(\d+(?:\.\d+)?)(?:g|gig|gigs|giga|gigas|go|гб)", re.IGNORECASE)
_PERCENT = re.compile(r"^(\d+(?:\.\d+)?)-?(?:pct|percent)$", re.IGNORECASE)
_MANY_BITS = re.compile(r"\d{1,2}-?bits", re.IGNORECASE)
_UNDER = re.compile(r"[<≤]=?\d[\d.]*(?:us|ms|s|min|h|days?)", re.IGNORECASE)  # <300ms ttft
_SUB = re.compile(r"^sub-?(?:second|(\d+m?s))$", re.IGNORECASE)  # sub-second, sub-500ms
_SCALED = re.compile(r"(\d[\d.,]*)-?([a-z]{2,}|[а-я]+)", re.IGNORECASE)  # 2bn, 7-billion, 10к
_TIMED = re.compile(r"([<≤]?=?\d[\d.]*)-?([a-z]{3,})", re.IGNORECASE)  # <2sec, 500msec
_AT_LEAST = re.compile(r"^(\d[\d.,]*[kKmMbB]?)\+$")  # 30+ t/s
_POSSESSIVE = re.compile(r"^(.*\d.*|[a-z]{4,}|ti)['’]s$", re.IGNORECASE)
_FILE = re.compile(r"^([^=]*\w)\.(?:pth?|ya?ml)$", re.IGNORECASE)  # yolov8s.pt, coco.yaml
_LIKE = re.compile(r"(?i)^(?!\d{1,2}-class)(.*\d[a-z]*)-(?:equivalent|like|style|type|class|sized|scale|ish)$")
"""What something is like, as ``7b-like`` and ``4090-class``; ``3-class`` counts classes."""
_EXPERTS = re.compile(r"\d{1,3}[*×]\d+(?:\.\d+)?b", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+[kKmMbBtT]?|[1-9]\d{0,2}(?:\.\d{3})*\.000")
"""Thousands apart, as ``10,000`` and ``10.000``; ``5.125`` is no such number."""
_SIDES = re.compile(r"(\d{3,4}),\1|\d{3,4},\d{4}|\d{4},\d{3}")  # 512,512 and 1024,768
_STEP_OF_SIDES = 32  # What networks halve sides of images by, so that these are multiples of it
_DECIMAL_COMMA = re.compile(r"(\d+),(\d{1,2})([kmbgt]?)", re.IGNORECASE)
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.?(?:\d{2}|\d{4})?|\d{1,2}/\d{1,2}(?:/(?:\d{2}|\d{4}))?|\d{4}-\d{2}-\d{2}")
_DURATION = re.compile(
    r"(?!.*kw$)(\d{1,9}(?:\.\d{1,9})?k?)(?:-(?=[hdwm][a-z]{2}))?(min|mins|h|hrs?|hours?|d|days?|w|wks?|weeks?|mo|months?|y|yrs?|years?)",
    re.IGNORECASE,
)
_LINES = re.compile(
    r"(240|360|480|540|576|720|768|1080|1440|2160)p", re.IGNORECASE
)  # Lines of an image that is 16 to 9
_IMAGE = re.compile(r"(\d{2,4})\s*[x×*]\s*(\d{2,4})(?:[x×*][134])?(?:px)?", re.IGNORECASE)  # 512x512x1
OF_TOKEN = re.compile(r"(\d+(?:\.\d+)?m?s)/tok(?:en)?", re.IGNORECASE)

_OF_DEVICE = re.compile(r"([a-z=]*\d+)/(gpu|device|card)", re.IGNORECASE)  # bs=2/gpu
_CORES = re.compile(r"(\d{1,3})c/?\d{1,3}t(?:h|hreads?)?", re.IGNORECASE)  # 8C/16Th
_COUNT = re.compile(r"\d{1,7}[x×*](?=\D|$)", re.IGNORECASE)
_MIXED, _BITS_A_WEIGHT = re.compile("exl2", re.IGNORECASE), re.compile(r"(\d(?:\.\d+)?)\s*(?:bpw|bit)", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<=\d)[-/x×*+_|&,]?(?=[a-z])", re.IGNORECASE)
_DIMENSIONS = re.compile(r"\d+-d", re.IGNORECASE)
_NAME = re.compile(r"[a-z_]+\d*[a-z]*", re.IGNORECASE)
_SETTING = re.compile(r"([a-z_]+)[=:]?(\d+)", re.IGNORECASE)


def sides_in(word: str) -> str | None:
    """Return two numbers with a comma between as sides of images: ``512,512``; None for other words."""
    is_pair = _SIDES.fullmatch(word) is not None and not any(int(side) % _STEP_OF_SIDES for side in word.split(","))
    return word.replace(",", "x") if is_pair else None


def sum_of(word: str) -> tuple[str, float] | None:
    """Return the dollars that a word says, and the hours that they are for, as ``$2/h``; None for other words.

    The hours are 0 for the dollars of the whole job; what is said in another currency is exchanged.
    """
    rate, currency = _OF_TIME.search(word), currency_of(word)
    plain = word[: rate.start()] if rate else word
    for sign in () if currency is None else sorted(currency.words, key=len, reverse=True):
        plain = re.sub(re.escape(sign), "", plain, flags=re.IGNORECASE)
    match = _MONEY.fullmatch(plain if currency is None else f"${_APART.sub('', plain).strip()}")
    hours = 0.0 if rate is None else float(_HOURS_OF[rate[1][0].casefold()])
    if match is None:
        return None
    dollars = match["sum"] or match["other"]
    dollars = dollars.replace(",", "." if _DECIMAL_COMMA.fullmatch(dollars) else "").replace("m", "M")  # $2,50
    return dollars if currency is None else f"{round(parse_quantity(dollars, '') * currency.usd, 2):.12g}", hours


def price_as_one(word: str) -> str | None:
    """Return a price of one device for an hour, or of a kWh, as ``€2/gpuh``; a commitment too; None for other words."""
    match, bound = SUM_OF_ONE.fullmatch(word), COMMITMENT.fullmatch(word)
    if bound is not None:
        number, unit = (bound[1] or bound[3] or "1").casefold(), bound[2] or bound[4] or "y"
        years = int(vocabulary().counts.get(number, number)) / (1 if unit in "yY" else _MONTHS)
        return f"commitment={years:g}y"
    if match is None:
        return None
    number, unit = match[2] or match[3] or match[7] or match[8], (match[1] or match[4] or match[6] or "").casefold()
    if match[5] is not None and unit.startswith(_CENTS):
        number = f"{float(number.replace(',', '.')) / 100:g}"
    currency = next((sign for sign, row in vocabulary().currencies.items() if unit in row.words), "$")
    return f"{currency}{number}{OF_ONE if match[5] is None else OF_ENERGY}"


def sum_and_currency(before: str, after: str) -> str | None:
    """Return a number and its currency as one, as ``$ 500`` and ``500 euros``; None for other words."""
    currencies = vocabulary().currencies
    if before in ("$", *currencies) and after[:1].isdigit():
        return f"{before}{after}"
    if (span := SPANS.get(after)) and sum_of(before) is not None and "/" not in before:
        return f"{before}/{span}"  # $20 hourly
    money, slash, span = after.partition("/")  # 5000 EUR/month
    other = next((name for name, row in currencies.items() if money in row.words), None)
    is_sum = (other is not None or vocabulary().figure_units.get(money) == _DOLLARS) and sum_of(
        f"${before}"
    ) is not None
    return f"{other or '$'}{before}{slash}{span}" if is_sum else None


def currency_of(word: str) -> Currency | None:
    """Return the currency that a sum is in, as ``€500`` and ``500gbp``; None for dollars and other words."""
    signs = _signs_of(word)
    return next((row for row in vocabulary().currencies.values() if not signs.isdisjoint(row.words)), None)


def is_of_no_rate(word: str) -> bool:
    """Return whether a sum is in a currency whose rate is not known here, as ``¥1000`` and ``500 cad/month``."""
    return not _signs_of(word).isdisjoint(vocabulary().other_currencies)


def _signs_of(word: str) -> set[str]:
    """Return what stands before and behind the number of a sum, in small letters."""
    match = _SUM_IN_WORDS.fullmatch(word)
    return set() if match is None else set(map(str.casefold, match.groups()))


def duration_of(word: str) -> str | None:
    """Return the time that a word says in hours, days or weeks, as ``72h``; None for other words."""
    match = _DURATION.fullmatch(word)
    if match is None or match[2] == "W":  # watts
        return None
    number = float(match[1].rstrip("kK")) * (1000 if match[1][-1] in "kK" else 1)
    unit = match[2].casefold()
    if unit.startswith("min"):
        return f"{number:.15g}min"
    hours = number * _HOURS_OF[unit[0]]
    return f"{hours:.15g}h" if unit[0] == "h" else f"{hours / 24:.15g}d"


def is_date(word: str) -> bool:
    """Return whether a word is a day as numbers, as ``31.12.2026``, ``12/31`` and ``2026-12-31``."""
    return _DATE.fullmatch(word) is not None


def plain_number(word: str) -> str:
    """Return a word with its number as it is read everywhere: ``10,5M`` is 10.5M, ``10,000`` 10000, ``24G`` 24gb."""
    word = _FILE.sub(r"\1", word)
    word = _LIKE.sub(r"\1", _AT_LEAST.sub(r"\1", _POSSESSIVE.sub(r"\1", word)))
    word = _SUB.sub(lambda below: below[1] or "1s", word)
    word = word.lstrip("<≤") if _UNDER.fullmatch(word) else word
    scaled = _SCALED.fullmatch(word)
    if scaled is not None and (scale := vocabulary().scales.get(key_of(scaled[2]))) is not None:
        word = times_scale(scaled[1], scale)
    timed = _TIMED.fullmatch(word)
    if timed is not None and (unit := vocabulary().time_units.get(key_of(timed[2]))) is not None:
        word = f"{timed[1]}{unit}"
    size, word = _GIGABYTES.fullmatch(word), _PERCENT.sub(r"\1%", word)
    if size is not None:
        return f"{size[1]}gb"
    if _GROUPED.fullmatch(word):
        return word.replace(",", "").replace(".", "")
    if (latency := OF_TOKEN.fullmatch(word)) is not None:
        return f"tpot<{latency[1]}"
    if _MANY_BITS.fullmatch(word):
        return word[:-1].replace("-", "")
    if _EXPERTS.fullmatch(word):
        return re.sub("[*×]", "x", word)
    return _DECIMAL_COMMA.sub(r"\1.\2\3", word) if _DECIMAL_COMMA.fullmatch(word) else word


def times_scale(number: str, scale: str) -> str:
    """Return a number with its suffix: 2.5M, and 2000k of ``20 lakh``, whose scale is 100k."""
    return f"{float(number) * int(scale[:-1]):.12g}{scale[-1]}" if scale[:-1] else f"{number}{scale}"


def is_near_scale(word: str) -> bool:
    """Return whether a word is a slip of a scale of numbers, as ``millionn``."""
    scales = [scale for scale in vocabulary().scales if len(scale) >= _FEWEST_OF_A_SCALE]
    return bool(close_matches(key_of(word), scales, 1, _LIKE_A_SCALE))


def with_dimensions(word: str) -> str:
    """Return a word with its dimensions in full: ``768-dim`` of ``768-d``, but not of ``4090-d``, which is a card."""
    is_some = _DIMENSIONS.fullmatch(word) is not None and word[:-2] not in vocabulary().hardware
    return f"{word}im" if is_some else word


def with_unit(number: str, word: str) -> str | None:
    """Return a number and the word behind it as one, as ``24 gb``, ``4 bits`` or ``10 s``; None for others."""
    words = vocabulary()
    scale = words.scales.get(word) if len(number) <= _LONGEST_NUMBER else None
    span, seconds = words.durations.get(word), words.time_units.get(word)
    is_ram = key_of(f"{number}{word}") in words.ram  # host memory
    if (written := f"{number}{word}" if is_ram else sum_and_currency(number, word)) is not None:
        return written
    if word in QUANTIZED and number.endswith("bit"):
        return number
    if seconds is not None and number[-1:].isdigit():
        return f"{number.lstrip('<≤')}{seconds}"
    is_long = len(number) > {"y": _LONGEST_YEARS, "d": _LONGEST_DAYS}.get(
        span if span == "y" else word, _LONGEST_NUMBER
    )
    span = None if is_long else span  # 4096 y 8, 4090 d
    number = number.lstrip("<≤") if span is not None else number  # <10 days
    if span == "h" and number[-1:] in "kK" and _NUMBER.fullmatch(number[:-1]):
        return f"{plain_number(number[:-1])}k{span}"  # 40k hours of calls
    if not _NUMBER.fullmatch(number) or (span == word == "y" and len(number) > _LONGEST_YEARS):
        return None  # contexto 4096 y batch 4
    unit = words.figure_units.get(word, span)
    measured = None if unit is None else f"{number}{unit}"
    return measured if scale is None else times_scale(plain_number(number), scale)


def pieces_of(word: str) -> Iterator[tuple[int, str]]:
    """Yield where words begin that no space parts, and them: ``全参微调``, ``4090一枚``, ``2048,5万条``, ``p95<2s``.

    A measure word says nothing by itself, as in ``10个epoch``; w behind a number stands for ten thousand.
    """
    for piece in _PIECES.finditer(word):
        if _UNSPACED.match(piece[0]) is None or piece[0] in vocabulary().scales:
            is_scale = piece[0] in ("w", "W") and piece.start() > 0 and _UNSPACED.match(word, piece.end()) is not None
            yield piece.start(), "万" if is_scale else piece[0]
            continue
        text, start = piece[0], 0
        while start < len(text):
            end = _end_of_known(text, start)
            unknown = next((at for at in range(start, len(text)) if _end_of_known(text, at) > at), len(text))
            end = max(end, unknown)
            end += len(text[end:]) - len(text[end:].lstrip(_MARKS_BEHIND))
            if text[start:end].rstrip(_MARKS_BEHIND) != _MEASURE_WORD:
                yield piece.start() + start, text[start:end]
            start = end


def _end_of_known(text: str, start: int) -> int:
    """Return where the longest word ends that begins at a place and means something; the place where none does."""
    ends = range(min(len(text), start + _LONGEST_UNSPACED), start, -1)
    return next((end for end in ends if text[start:end] in _unspaced_words()), start)


@cache
def _unspaced_words() -> frozenset[str]:
    """Return all words that mean something and are written without spaces between."""
    rows = [getattr(vocabulary(), field.name) for field in fields(vocabulary())]
    return frozenset(word for word in _strings(rows) if _UNSPACED.fullmatch(word))


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in a value, those of its keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for entry in (*value.keys(), *value.values()) for text in _strings(entry))
    elif isinstance(value, Iterable):
        yield from (text for entry in value for text in _strings(entry))


def words_in(word: str) -> list[str]:
    """Return the words that one word is made of: ``tp8/pp16``, ``optim=adamw``, ``bf16=true``; none for others."""
    of_one = _OF_DEVICE.fullmatch(word)
    if of_one is not None:
        return [of_one[1], "per", of_one[2]]
    if (cores := _CORES.fullmatch(word)) is not None:
        return [cores[1], "cores"]
    return _of_option(word) or _of_settings(word) or _of_several(word) or _of_software(word)


def with_software(text: str) -> str:
    """Return a text of the same length in which names of software that end in that of a model are one word."""
    return _software().sub(lambda match: re.sub("[ _]+", "-", match[0]).rjust(len(match[0])), text)


@cache
def _software() -> re.Pattern[str]:
    rows = vocabulary().run_by
    names = "|".join(name.replace(" ", "[ _-]+") for name in sorted(rows["software"], key=len, reverse=True))
    return re.compile(rf"\b(?:{names})(?: +(?=(?:{'|'.join(rows['sizes'])})\b))?", re.IGNORECASE)


def _of_software(word: str) -> list[str]:
    """Return software and the model it runs, of a name that has both: ``Systran/faster-whisper-large-v3``."""
    parts = word.rpartition("/")[2].split("-")
    known = (at for at in range(2, len(parts)) if key_of("".join(parts[:at])) in vocabulary().works)
    at = next(known, 0)
    return ["-".join(parts[:at]), "-".join(parts[at - 1 :])] if at else []


def _of_several(word: str) -> list[str]:
    """Return words that a plus joins, one of which is known here: ``fsdp+qlora``, ``fastapi+vllm``; none for others."""
    parts, words = word.split("+"), vocabulary()
    named = (words.methods, words.objectives, words.tasks, words.software, words.formats, words.datasets)
    known = (*named, words.run_by["wrapping"], *words.phrases.values())
    settings = ((part, _SETTING.fullmatch(part)) for part in parts)
    are_known = [
        any(key_of(part) in rows for rows in known) or (match is not None and key_of(match[1]) in words.fields)
        for part, match in settings
    ]
    is_known = all(are_known) or (any(are_known) and all(map(_NAME.fullmatch, parts)))
    return parts if len(parts) > 1 and is_known else []


def _of_option(word: str) -> list[str]:
    """Return the words of an option whose value says it all, or that switches a value."""
    key, mark, value = word.lstrip("-").partition("=")
    words, name = vocabulary(), key_of(key)
    is_switched = key_of(value) in words.switched_on | words.switched_off
    if is_switched and (name in words.switches or any(name in phrases for phrases in words.phrases.values())):
        return [words.short_options.get(key, key), *([] if key_of(value) in words.switched_on else [value])]
    value = _FILE.sub(r"\1", words.short_options.get(value, value))  # precision=bf16-true, model=yolov8s.pt
    if mark and key_of(value) in words.datasets and words.datasets.keys().isdisjoint({name}):
        return [value]  # data=coco.yaml
    is_named = value[:1].isalpha() or any(name + value in phrases for phrases in words.phrases.values())  # precision=16
    is_option = name in words.known_by_value and (is_named if mark else word.startswith("-"))
    return [key, *([value] if mark else [])] if is_option and not is_switched else []


def _of_settings(word: str) -> list[str]:
    """Return names and numbers of several settings without spaces, as ``tp8xpp16`` and ``r64/alpha128``."""
    matches = [_SETTING.fullmatch(part) for part in _BETWEEN.split(word)]
    pairs, words = [match.groups() for match in matches if match is not None], vocabulary()
    is_known = all(key_of(name) in words.amounts or key_of(name) in words.fields for name, _ in pairs)
    is_several = len(pairs) == len(matches) > 1 and any(len(name) > 1 for name, _ in pairs)
    return [part for pair in pairs for part in pair] if is_several and is_known else []


def sides_of(word: str) -> tuple[int, int] | None:
    """Return the pixels of an image by its sides, as ``640x480`` and ``1080p`` say them; None for other words."""
    match, lines = _IMAGE.fullmatch(word), _LINES.fullmatch(word)
    if lines is not None:
        return round(int(lines[1]) * 16 / 9), int(lines[1])
    return None if match is None else (int(match[1]), int(match[2]))


def image_of(word: str) -> int | None:
    """Return the edge of a square image, as ``512x512`` says it; None for other words."""
    match = _IMAGE.fullmatch(word)
    return int(match[1]) if match and match[1] == match[2] else None


def counted_start(word: str) -> str:
    """Return the number of devices that a word begins with, as ``8x``; empty for other words."""
    return match[0] if (match := _COUNT.match(word)) is not None else ""


def mixture_of(one: str, other: str) -> str | None:
    """Return the format of weights that two words say with its mean of bits, as ``exl2 4.5bpw``; None for others."""
    kinds, bits = zip(*((_MIXED.fullmatch(word), _BITS_A_WEIGHT.fullmatch(word)) for word in (one, other)), strict=True)
    kind, mean = next(filter(None, kinds), None), next(filter(None, bits), None)
    return None if kind is None or mean is None else f"{kind[0].casefold()}-{float(mean[1])}"
