"""Quantities: read what people type, and write every number in one style.

Inside the program bytes are whole numbers, durations are seconds, rates are per second and shares are
fractions of one. These functions are the only edge where they become text. Texts are plain ASCII with a
space before the unit and between groups of three digits; ``THIN_SPACE`` may be passed as ``group`` where
the output is known to show it. ``None``, NaN and what is infinite read ``n/a``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial

from capacity_tui.engine.errors import Place, UnitError

# What the figures of data sheets and tables are given in, in the units that formulas reckon with.
NANO, MICRO, KILO, MEGA, GIGA, TERA = 1e-9, 1e-6, 1e3, 1e6, 1e9, 1e12
HOUR_SECONDS, PERCENT, BITS_PER_BYTE = 3600.0, 100.0, 8.0
# Bytes of a number in the types that formulas name themselves: sums and scores in fp32, tables of classical algorithms.
FP64_BYTES, FP32_BYTES, FP16_BYTES, FP16_BITS = 8.0, 4.0, 2.0, 16.0

NOT_AVAILABLE = "n/a"
THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BYTE_DECIMALS = (0, 1, 1, 1, 2, 2, 2)
_COUNT_SUFFIXES = ("", "k", "M", "B", "T", "Q")
_SI_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R")

_BYTE_UNITS: dict[str, int] = {
    **{name.casefold(): 1024**power for power, name in enumerate(_BINARY)},
    **{name.casefold(): 1000**power for power, name in enumerate(_DECIMAL)},
    **{name[0].casefold() + "i": 1024**power for power, name in enumerate(_BINARY) if power},
    **{name[0].casefold(): 1000**power for power, name in enumerate(_DECIMAL) if power},
}
_COUNT_UNITS: dict[str, int] = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "b": 10**9,
    "g": 10**9,
    "t": 10**12,
    "q": 10**15,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_LENGTH_UNITS: dict[str, int] = {"": 1, "k": 2**10, "ki": 2**10, "m": 2**20, "mi": 2**20}
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 31_536_000
_LONG_TIMES = ((_YEAR, "y", _DAY, "d"), (_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"))

_SECOND_UNITS: dict[str, float] = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    "us": MICRO,
    "ms": 1e-3,
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), HOUR_SECONDS),
    **dict.fromkeys(("d", "day", "days"), 24 * HOUR_SECONDS),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 24 * HOUR_SECONDS),
    **dict.fromkeys(("y", "year", "years"), 365 * 24 * HOUR_SECONDS),
}
_MONEY_UNITS: dict[str, float] = {
    f"{prefix}{name}": float(factor)
    for prefix, factor in (("", 1), ("k", 10**3), ("m", 10**6), ("b", 10**9), ("t", 10**12))
    for name in ("", "usd", "$")
}
_MILLION, _NO_CENTS_FROM, _CENTS_FROM, _NO_TIME = 1e6, 1e3, 0.1, 5e-9
_SI_FACTORS = {"": 1.0, "m": 1e-3, "k": KILO, "M": MEGA, "G": GIGA, "T": TERA, "P": 1e15, "E": 1e18}
_NUMBER = r"[+-]?(?:\d[\d_,\s]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([^\d\s.,+-]*)\s*")
_LARGEST = Decimal(10) ** 30
_LONGEST_TEXT = 100


def parse_bytes(value: str | int, *, place: Place | None = None) -> int:
    """Return a size in bytes: ``"80GB"`` is decimal, ``"80GiB"`` binary, a bare number is bytes.

    Raises:
        UnitError: the text is not a size, or is negative.
    """
    allowed = "a size such as 80GB (decimal), 80 GiB (binary) or a number of bytes"
    number, unit = _split(value, allowed, place)
    factor = _BYTE_UNITS.get(unit.casefold() or "b")
    if factor is None or number < 0:
        raise _refusal(value, allowed, place)
    return round(number * factor)


def parse_count(value: str | int | float, *, place: Place | None = None) -> int:
    """Return a whole number: ``"8k"`` is 8000, ``"8Ki"`` 8192, ``"2.0e9"``, ``"1.5 B"``, ``"4 096"``.

    Raises:
        UnitError: the text is not a count, is negative or is not whole.
    """
    return _whole(value, _COUNT_UNITS, "a whole number such as 4096, 8k (8000), 8Ki (8192), 70B or 2.0e9", place)


def parse_length(value: str | int | float, *, place: Place | None = None) -> int:
    """Return a length in tokens, named as contexts are: ``"4k"`` is 4096, ``"128k"`` 131 072, ``"1M"`` 1 048 576.

    Raises:
        UnitError: the text is not a length, is negative or is not whole.
    """
    return _whole(value, _LENGTH_UNITS, "a length such as 4096, 4k (4096) or 128k (131072)", place)


def parse_quantity(value: str, unit: str, *, place: Place | None = None) -> float:
    """Return a value in the unit of a figure: ``"24h"`` and ``"1 h 30 min"`` for s, ``"95%"``, ``"$1.5k"``.

    A share is a number up to one or a percentage, and so is a percentage without its sign up to one.

    Args:
        unit: unit as ``format_quantity`` knows them.
        place: where it was typed, for messages.

    Raises:
        UnitError: the text is no quantity of that unit.
    """
    if unit == "B":
        return float(parse_bytes(value, place=place))
    if unit == "s":
        return _seconds(value, place)
    if unit in ("%", "share"):
        allowed = "a share such as 95% or 0.95"
        number, sign = _split(value, allowed, place)
        if sign not in ("", "%"):
            raise _refusal(value, allowed, place)
        share = float(number) if not sign and abs(number) <= 1 else float(number) / PERCENT
        return share * PERCENT if unit == "%" else share
    if unit.startswith("USD"):
        return _in_units(value.strip().removeprefix("$"), _MONEY_UNITS, "an amount such as 200, $1.5k or 20 USD", place)
    if unit in ("W", "kWh", "FLOP", "FLOP/s", "TFLOP/s"):
        return _in_si(value, unit, place)
    written = value.strip().removesuffix(unit)
    return _in_units(
        written, {name: float(by) for name, by in _COUNT_UNITS.items()}, "a number such as 500 or 20k", place
    )


def not_available(reason: str = "") -> str:
    """Return ``n/a``, with the reason in brackets when there is one."""
    return f"{NOT_AVAILABLE} ({reason})" if reason else NOT_AVAILABLE


def format_number(value: float | None, decimals: int = 0, group: str = " ") -> str:
    """Return a number with its digits in groups of three: ``4 096``."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    return f"{value:,.{decimals}f}".replace(",", group)


def format_bytes(value: float | None, unit: str = "GiB") -> str:
    """Return a size with the prefix that suits it: ``79.6 GiB``, ``2.00 TiB``.

    Args:
        unit: any binary unit for powers of 1024 or any decimal one (``"GB"``) for powers of 1000.
    """
    names, base = (_BINARY, 1024) if "i" in unit else (_DECIMAL, 1000)
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    power = _power(value, base, _BYTE_DECIMALS)
    return f"{value / base**power:.{_BYTE_DECIMALS[power]}f} {names[power]}"


def format_bandwidth(value: float | None) -> str:
    """Return bytes per second in decimal units, as vendors quote them: ``3.1 GB/s``."""
    text = format_bytes(value, "GB")
    return text if text == NOT_AVAILABLE else f"{text}/s"


def format_count(value: float | None, unit: str = "", decimals: int = 1) -> str:
    """Return a count with k, M, B or T: ``28.4 k``, ``8.0 B``; below a thousand as it is."""
    return _scaled(value, _COUNT_SUFFIXES, unit, decimals)


def count_in_words(count: float, unit: str = "device") -> str:
    """Return a number of devices or other things in words: ``1 device``, ``1 024 cores``."""
    return f"{format_number(count)} {unit}{'' if count == 1 else 's'}"


def format_rate(value: float | None, unit: str = "tok/s") -> str:
    """Return a rate per second: ``28.4 k tok/s``; below one with two significant digits: ``0.20 images/s``."""
    if value is not None and 1e-4 <= value < 1:
        return f"{value:#.2g} {unit}"
    return _scaled(value, _COUNT_SUFFIXES, unit, 1)


def format_flops(value: float | None, per_second: bool = False, decimals: int = 1) -> str:
    """Return floating-point operations: ``6.3 EFLOP``, or ``989.4 TFLOP/s`` per second."""
    return _scaled(value, _SI_PREFIXES, "FLOP/s" if per_second else "FLOP", decimals, glued=True)


def format_power(watts: float | None) -> str:
    """Return power: ``700 W``, ``22.4 kW``."""
    return _scaled(watts, _SI_PREFIXES, "W", 1, glued=True)


def format_energy(kwh: float | None) -> str:
    """Return energy given in kilowatt-hours: ``0.4 mWh``, ``850 Wh``, ``12.3 kWh``, ``1.2 MWh``."""
    if kwh is not None and 0 < kwh < 1e-4:
        return f"{kwh * 1e6:.1f} mWh" if kwh >= 1e-7 else "< 0.1 mWh"
    return _scaled(None if kwh is None else kwh * 1000, _SI_PREFIXES, "Wh", 1, glued=True)


def format_temperature(celsius: float | None) -> str:
    """Return a temperature: ``72 C``."""
    return _with_unit(format_number(celsius), "C")


def format_percent(share: float | None, decimals: int = 0) -> str:
    """Return a share of one as a percentage: 0.62 reads ``62 %``."""
    return _with_unit(format_number(None if share is None else share * 100, decimals), "%")


def format_money(usd: float | None, decimals: int = 2, group: str = " ") -> str:
    """Return US dollars: ``$1 234.50``, ``$197 M``; a price that would read as nothing is ``< $0.01``."""
    if usd is not None and 0 < usd < 0.5 * 10**-decimals:
        return f"< ${10**-decimals:.{decimals}f}"
    text = format_number(usd, decimals, group) if abs(usd or 0.0) < _MILLION else _three_figures(usd)
    return text if text == NOT_AVAILABLE else f"-${text[1:]}" if text.startswith("-") else f"${text}"


def format_seconds(value: float | None) -> str:
    """Return a duration in its two largest units: ``3 d 4 h``, ``2 min 5 s``, ``9.48 s``, ``412 ms``."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    if value < 0:
        return f"-{format_seconds(-value)}"
    for large, large_name, small, small_name in _LONG_TIMES:
        if round(value / small) * small >= large:
            return _two_units(round(value / small), large // small, large_name, small_name)
    if round(value, 1) >= _MINUTE:
        return _two_units(round(value), _MINUTE, "min", "s")
    for scale, name in ((1, "s"), (1e3, "ms")):
        if value < _NO_TIME or round(value * scale, 3) >= 1:
            return f"{_three_digits(value * scale)} {name}"
    return f"{_three_digits(value * 1e6)} us"


def format_significant(value: float | None) -> str:
    """Return a number of any size to four digits: ``4 096``, ``0.62``, ``8.03 B``, ``1.300e-05``."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    if abs(value) >= 1e6:
        return format_count(value, decimals=2)
    if value == round(value) or abs(value) >= 1e3:
        return format_number(value)
    return f"{value:.3e}" if abs(value) < 1e-3 else f"{value:.4g}"


def format_quantity(value: float | None, unit: str = "") -> str:
    """Return a value as its unit is written everywhere: ``B``, ``B/s``, ``s``, ``FLOP``, ``%``, ``USD`` and so on."""
    write = _WRITERS.get(unit)
    return _with_unit(format_significant(value), unit) if write is None else write(value)


def _two_units(count: int, ratio: int, large_name: str, small_name: str) -> str:
    large, small = divmod(count, ratio)
    return f"{large} {large_name} {small} {small_name}" if small else f"{large} {large_name}"


def _three_digits(value: float) -> str:
    if value < _NO_TIME:
        return "0"
    decimals = 2 if round(value, 2) < 10 else 1 if round(value, 1) < 100 else 0
    return f"{value:.{decimals}f}"


def _price(usd: float | None) -> str:
    """Return what a piece of something costs: ``$12.50``, below ten cents two digits of it: ``$0.00039``."""
    return f"${usd:.{1 - math.floor(math.log10(usd))}f}" if usd and 0.0 < usd < _CENTS_FROM else format_money(usd)


def _three_figures(value: float | None, unit: str = "") -> str:
    """Return a number of any size to three digits: ``197 M``, ``28.7 M``, ``10.9``, ``0.04``."""
    if not value or not math.isfinite(value):
        return _with_unit(format_number(value), unit)
    if 0 < value < 0.01:
        return _with_unit("< 0.01", unit)
    power = _power(value, 1000, (0,) * len(_COUNT_SUFFIXES))
    scaled = value / 1000**power
    decimals = max(2 - math.floor(math.log10(abs(scaled))), 0) if abs(scaled) >= 1 else 2
    return _with_unit(format_number(scaled, decimals), f"{_COUNT_SUFFIXES[power]} {unit}".strip())


def _scaled(value: float | None, prefixes: tuple[str, ...], unit: str, decimals: int, glued: bool = False) -> str:
    """Return the value over the power of a thousand that leaves one to three digits before the point."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    power = _power(value, 1000, (decimals,) * len(prefixes))
    number = f"{value / 1000**power:.{decimals}f}" if power or value != round(value) else f"{value:.0f}"
    suffix = prefixes[power] + unit if glued else f"{prefixes[power]} {unit}".strip()
    return _with_unit(number, suffix)


def _power(value: float, base: int, decimals: tuple[int, ...]) -> int:
    """Return the power of ``base`` to divide by, so that rounding shows no four digits before the point."""
    power = 0
    while power < len(decimals) - 1 and round(abs(value) / base**power, decimals[power]) >= min(base, 1000):
        power += 1
    return power


def _with_unit(number: str, unit: str) -> str:
    return number if number == NOT_AVAILABLE or not unit else f"{number} {unit}"


def _whole(value: str | int | float, units: Mapping[str, int], allowed: str, place: Place | None) -> int:
    number, unit = _split(value, allowed, place)
    factor = units.get(unit.casefold())
    if factor is None or number < 0 or number * factor != (number * factor).to_integral_value():
        raise _refusal(value, allowed, place)
    return int(number * factor)


def _seconds(value: str, place: Place | None) -> float:
    allowed = "a time such as 24h, 90s, 50ms or 1 h 30 min"
    parts = re.findall(r"\s*([\d.,_]+\s*[^\d\s.,]*)", _text(value, allowed, place))
    if not parts or "".join(parts).replace(" ", "") != value.replace(" ", ""):
        raise _refusal(value, allowed, place)
    return sum(_in_units(part, _SECOND_UNITS, allowed, place) for part in parts)


def _in_si(value: str, unit: str, place: Place | None) -> float:
    """Return a value of a unit with a prefix, such as kWh, in any other prefix of it; a bare number is in the unit."""
    allowed = f"a value such as 500 {unit}"
    number, written = _split(value, allowed, place)
    scale = next(prefix for prefix in ("T", "k", "") if unit.startswith(prefix) and unit.removeprefix(prefix))
    scale = scale if unit.removeprefix(scale) in ("Wh", "FLOP/s", "W", "FLOP") else ""
    bare = unit.removeprefix(scale)
    prefix = written.removesuffix(bare) if written.endswith(bare) else written
    if written and prefix not in _SI_FACTORS:
        raise _refusal(value, allowed, place)
    return float(number) * (_SI_FACTORS[prefix] / _SI_FACTORS[scale] if written else 1.0)


def _in_units(value: str, units: Mapping[str, float], allowed: str, place: Place | None) -> float:
    number, unit = _split(value, allowed, place)
    factor = units.get(unit.casefold())
    if factor is None:
        raise _refusal(value, allowed, place)
    return float(number) * factor


def _split(value: str | int | float, allowed: str, place: Place | None) -> tuple[Decimal, str]:
    """Return number and unit of one quantity."""
    match = _QUANTITY.fullmatch(_text(value, allowed, place))
    if match is None:
        raise _refusal(value, allowed, place)
    return _number(match[1], value, allowed, place), match[2]


def _text(value: str | int | float, allowed: str, place: Place | None) -> str:
    """Return what was typed, if it may be a quantity at all: not true or false, and not endless."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise _refusal("true or false" if isinstance(value, bool) else "a huge number", allowed, place)
    text = str(value).strip()
    if len(text) > _LONGEST_TEXT:
        raise _refusal(text, allowed, place)
    return text


def _number(text: str, value: object, allowed: str, place: Place | None) -> Decimal:
    try:
        number = Decimal(re.sub(r"[\s_,]", "", text))
    except InvalidOperation:
        raise _refusal(value, allowed, place) from None
    if not abs(number) < _LARGEST:
        raise _refusal(value, allowed, place)
    return number


def _refusal(value: object, allowed: str, place: Place | None) -> UnitError:
    shown = str(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    return UnitError("cannot read this quantity", repr(shown), f"write {allowed}", place)


_WRITERS: Mapping[str, Callable[[float | None], str]] = {
    "B": format_bytes,
    "B/s": format_bandwidth,
    "s": format_seconds,
    "FLOP": format_flops,
    "FLOP/s": lambda value: format_flops(value, per_second=True),
    **{unit: partial(format_rate, unit=unit) for unit in ("tok/s", "samples/s", "images/s", "rows/s", "requests/s")},
    "USD": lambda usd: format_money(usd, 0 if usd is not None and abs(usd) >= _NO_CENTS_FROM else 2),
    "USD/M": lambda usd: format_money(usd, 3 if abs(usd or 0.0) < 10 else 2 if abs(usd or 0.0) < _NO_CENTS_FROM else 0),
    "h": lambda hours: format_seconds(None if hours is None else hours * HOUR_SECONDS),
    "failures": _three_figures,
    "USD/request": _price,
    **{unit: partial(_three_figures, unit=unit) for unit in ("GPU-h", "device-h")},
    "W": format_power,
    "kWh": format_energy,
    "%": lambda value: format_percent(None if value is None else value / 100),
    "share": lambda value: format_percent(value, 1),
}
