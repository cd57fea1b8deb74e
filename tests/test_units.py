"""Quantities read what they write, in one style."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine import units
from capacity_tui.engine.errors import Place, UnitError

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80GB", 80_000_000_000),
        ("80 GiB", 80 * GIB),
        ("80Gi", 80 * GIB),
        ("80G", 80_000_000_000),
        ("1.5 TiB", 1536 * GIB),
        ("512", 512),
        ("512 b", 512),
        ("4 096 KiB", 4096 * 1024),
        (1024, 1024),
    ],
)
def test_bytes(text: str | int, size: int) -> None:
    assert units.parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("8k", 8000),
        ("8Ki", 8192),
        ("2.0e9", 2_000_000_000),
        ("1.5B", 1_500_000_000),
        ("15 T", 15 * 10**12),
        ("4 096", 4096),
        ("4,096", 4096),
        ("4_096", 4096),
        (4096.0, 4096),
        ("0.5k", 500),
    ],
)
def test_counts(text: str | float, count: int) -> None:
    assert units.parse_count(text) == count


PARSERS = [units.parse_bytes, units.parse_count]
NO_QUANTITIES = ["", "abc", "-3", "1.2.3", "3 parsecs", "nan", "1e999", True, 10**50, "1 " * 99_999]


@pytest.mark.parametrize(
    ("text", "length"), [("4k", 4096), ("128K", 131_072), ("1M", 2**20), ("1.5k", 1536), ("8000", 8000), ("8Ki", 8192)]
)
def test_lengths_are_named_by_powers_of_two(text: str, length: int) -> None:
    assert units.parse_length(text) == length


@pytest.mark.parametrize("text", ["4b", "1.0001k", "-4k", "k"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="128k"):
        units.parse_length(text)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", NO_QUANTITIES, ids=range(len(NO_QUANTITIES)))
def test_what_is_no_quantity_is_refused_with_what_is_allowed(parse, text) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, place=Place("plan.yaml", 3, "training.tokens"))
    assert caught.value.place.line == 3
    assert "such as" in caught.value.hint
    assert len(caught.value.one_line()) < 300


def test_a_number_too_long_to_print_is_refused() -> None:
    with pytest.raises(UnitError):
        units.parse_bytes(10**5000)


def test_a_count_must_be_whole() -> None:
    with pytest.raises(UnitError):
        units.parse_count("1.5")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.format_bytes(79.6 * GIB), "79.6 GiB"),
        (units.format_bytes(2 * 1024 * GIB), "2.00 TiB"),
        (units.format_bytes(1024 * GIB - 1), "1.00 TiB"),
        (units.format_bytes(80e9, "GB"), "80.0 GB"),
        (units.format_bytes(0), "0 B"),
        (units.format_bandwidth(3.35e12), "3.35 TB/s"),
        (units.format_count(28_400), "28.4 k"),
        (units.format_count(999_960), "1.0 M"),
        (units.format_count(8.03e9, decimals=2), "8.03 B"),
        (units.format_count(512), "512"),
        (units.format_rate(28_400), "28.4 k tok/s"),
        (units.format_rate(0.0383, "images/s"), "0.038 images/s"),
        (units.format_rate(0.2, "images/s"), "0.20 images/s"),
        (units.format_rate(0.164, "images/s"), "0.16 images/s"),
        (units.format_rate(1.04, "images/s"), "1.0 images/s"),
        (units.format_rate(0.0, "images/s"), "0 images/s"),
        (units.format_flops(989.4e12, per_second=True), "989.4 TFLOP/s"),
        (units.format_flops(6.3e23), "630.0 ZFLOP"),
        (units.format_power(700), "700 W"),
        (units.format_power(22_400), "22.4 kW"),
        (units.format_energy(0.85), "850 Wh"),
        (units.format_energy(1200), "1.2 MWh"),
        (units.format_percent(0.62), "62 %"),
        (units.format_percent(-0.0312, 1), "-3.1 %"),
        (units.format_temperature(71.6), "72 C"),
        (units.format_money(1234.5), "$1 234.50"),
        (units.format_money(-3), "-$3.00"),
        (units.format_number(4096), "4 096"),
        (units.format_number(4096, group=units.THIN_SPACE), "4\u202f096"),
        (units.format_seconds(273_600), "3 d 4 h"),
        (units.format_seconds(259_200), "3 d"),
        (units.format_seconds(86_399.9), "1 d"),
        (units.format_seconds(125), "2 min 5 s"),
        (units.format_seconds(59.97), "1 min"),
        (units.format_seconds(9.48), "9.48 s"),
        (units.format_seconds(0.412), "412 ms"),
        (units.format_seconds(0), "0 s"),
        (units.format_seconds(3e-6), "3.00 us"),
        (units.not_available("no sensor"), "n/a (no sensor)"),
    ],
)
def test_formats(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize("name", [name for name in dir(units) if name.startswith("format_")])
def test_what_is_missing_is_never_zero(name: str) -> None:
    write = getattr(units, name)
    assert write(None) == write(math.nan) == "n/a"
    assert write(1234.5).isascii()


@given(st.integers(0, 10**19))
def test_bytes_are_read_as_written(size: int) -> None:
    for unit in ("GiB", "GB"):
        assert units.parse_bytes(units.format_bytes(size, unit)) == pytest.approx(size, rel=0.06)
    assert units.parse_bytes(size) == size


@given(st.integers(0, 10**15))
def test_counts_are_read_as_written(count: int) -> None:
    assert units.parse_count(units.format_count(count)) == pytest.approx(count, rel=0.06)
    assert units.parse_count(units.format_number(count)) == count


@pytest.mark.parametrize(("usd", "text"), [(0.0, "$0.00"), (0.004, "< $0.01"), (0.006, "$0.01")])
def test_a_small_price_is_more_than_nothing(usd: float, text: str) -> None:
    assert units.format_money(usd) == text


@given(st.floats(allow_nan=False))
def test_every_number_can_be_written(value: float) -> None:
    for name in dir(units):
        if name.startswith("format_"):
            assert getattr(units, name)(value)


def test_devices_are_counted_in_words() -> None:
    assert [units.count_in_words(count) for count in (1, 2, 1024)] == ["1 device", "2 devices", "1 024 devices"]
    assert units.count_in_words(1, "core") == "1 core"
