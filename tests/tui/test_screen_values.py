"""Stepping, graphs, and text that fits its place."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.schema import share_of_range, stepped
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import compare
from capacity_tui.tui.shown.comparison import Chosen, MemoryPart, Usage
from capacity_tui.tui.shown.results import AUTO, Field, Kind
from capacity_tui.tui.text import Glyphs, clip, fit, left, line, right, to_ascii, wrap
from capacity_tui.tui.views.plan.field_list import FieldList
from capacity_tui.tui.views.plan.present import column
from capacity_tui.tui.widgets.answer_card import answer_line, memory_bar
from capacity_tui.tui.widgets.plots import plot


def power(value: float | None, **more: object) -> Field:
    text = AUTO if value is None else f"{value:g}"
    return Field("a.b", "A", "a", text, value, kind=Kind.POWER_OF_TWO, minimum=1, maximum=64, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "direction", "big", "after"),
    [(8, 1, False, "16"), (8, -1, False, "4"), (6, 1, False, "8"), (6, -1, False, "4"), (64, 1, False, "64"),
     (1, -1, False, "1"), (2, 1, True, "16"), (32, -1, True, "4")],
)  # fmt: skip
def test_powers_of_two_double_and_halve_inside_their_range(value: float, direction: int, big: bool, after: str) -> None:
    assert stepped(power(value), direction, big) == after


@pytest.mark.parametrize(
    ("value", "direction", "big", "after"),
    [(1, 1, False, "2"), (2, 1, False, "7"), (7, 1, False, "7"), (3, 1, False, "7"), (3, -1, False, "2"),
     (1, -1, False, "1"), (1, 1, True, "7"), (14, -1, True, "1")],
)  # fmt: skip
def test_steps_land_on_given_sizes_alone(value: float, direction: int, big: bool, after: str) -> None:
    assert stepped(power(value), direction, big, sizes=(1, 2, 7)) == after


@pytest.mark.parametrize(
    ("value", "direction", "big", "after"),
    [(1e8, 1, False, "200000000"), (1e8, -1, False, "50000000"), (30, 1, False, "50"), (30, -1, False, "20"),
     (1e8, 1, True, "1000000000"), (100, -1, True, "10"), (1, -1, False, "1"), (1e10, 1, False, "10000000000")],
)  # fmt: skip
def test_counts_of_any_size_step_through_round_numbers(value: float, direction: int, big: bool, after: str) -> None:
    field = Field("a.b", "A", "a", f"{value:g}", value, kind=Kind.ROUND, minimum=1, maximum=1e10)
    assert stepped(field, direction, big) == after
    assert share_of_range(field) == pytest.approx(math.log10(value) / 10, abs=0.01)


def test_automatic_value_steps_from_what_the_mode_chose() -> None:
    assert stepped(power(None, is_auto=True), 1, chosen=Chosen("8", value=8)) == "16"


def test_numbers_step_and_stop_at_the_ends() -> None:
    field = Field("a.b", "A", "a", "0.95", 0.95, kind=Kind.NUMBER, minimum=0, maximum=1, step=0.1)
    assert stepped(field, 1) == "1"
    assert stepped(field, -1) == "0.85"
    assert stepped(field, -1, big=True) == "0"


def test_choices_go_round_and_pass_auto() -> None:
    field = Field("a.b", "A", "a", "full", kind=Kind.CHOICE, choices=("none", "full"), can_be_auto=True)
    assert stepped(field, 1) == AUTO
    assert stepped(field, -1) == "none"


def test_text_has_no_step() -> None:
    assert stepped(Field("a.b", "A", "a", "x"), 1) is None


def test_slider_is_even_in_doublings() -> None:
    assert share_of_range(power(8)) == pytest.approx(0.5)
    assert share_of_range(Field("a.b", "A", "a", "x")) is None


@given(st.text(max_size=40), st.integers(0, 30))
def test_aligned_text_fills_its_width_exactly(text: str, width: int) -> None:
    text = "".join(character for character in text if character.isprintable())
    assert cell_len(clip(text, width)) <= width
    assert cell_len(left(text, width)) == width
    assert cell_len(right(text, width)) == width
    assert cell_len(fit(line(text, text), width).plain) <= width


@given(st.text(alphabet="ab c", max_size=80), st.integers(5, 20))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(
    st.lists(st.none() | st.floats(0, 100), max_size=60), st.integers(1, 30), st.integers(1, 4), st.sampled_from(Glyphs)
)
def test_graph_fills_its_place_whatever_it_is_drawn_with(
    values: list[float | None], width: int, height: int, glyphs: Glyphs
) -> None:
    rows = plot(values, width, height, 100, glyphs)
    assert len(rows) == height
    assert {cell_len(row) for row in rows} == {width}
    if glyphs is Glyphs.ASCII:
        assert all(row.isascii() for row in rows)


def test_graph_puts_the_newest_at_the_right_and_leaves_gaps() -> None:
    assert plot([None, 0, 50, 100], 4, 1, 100, Glyphs.BLOCK) == [" ▁▄█"]
    assert plot([100, 100], 1, 2, 100, Glyphs.BRAILLE) == ["⣿", "⣿"]
    assert plot([100] * 9, 3, 1, 100, Glyphs.ASCII) == ["@@@"]
    assert plot([100] * 9, 0, 2, 100, Glyphs.BRAILLE) == ["", ""]


@given(st.text(alphabet="✓✗→━●◂▸▾▌…·×±–−Δ\u202fabc", max_size=20))
def test_ascii_stand_ins_keep_the_width(text: str) -> None:
    assert to_ascii(text).isascii()
    assert len(to_ascii(text)) == len(text)


def test_an_upper_end_that_nobody_reaches_is_not_shown() -> None:
    panel = FieldList()
    tokens = Field("training.tokens", "Tokens", "training", "", None, kind=Kind.POWER_OF_TWO, minimum=1, maximum=1e18)
    panel.show_fields((tokens,), {}, {"training.tokens": ""}, {})
    assert panel._limits(tokens) == "was not given · step ×2 · from 1"
    assert panel._limits(replace(tokens, maximum=1024)).endswith("range 1–1 024")


@pytest.mark.parametrize(("width", "names"), [(80, ["activations", "weights", "other"]), (58, ["used"])])
def test_the_bar_of_memory_names_its_largest_parts_and_keeps_its_width(width: int, names: list[str]) -> None:
    sizes = {"activations": 16.5, "optimizer": 11.0, "weights": 10.0, "logits": 8.0, "reserve": 6.0}
    parts = tuple(MemoryPart(label=name, size=size) for name, size in sizes.items())
    usage = Usage("", parts=parts, capacity=79.6, high=79.0, capacity_text="79.6 GiB", interval="41.6 GiB – 79.0 GiB")
    text = "".join(span.text for span in memory_bar(usage, width).spans)
    assert [name for name in (*sizes, "other", "used") if name in text] == names
    assert cell_len(text) <= width
    assert "79.6 GiB" in text


@pytest.mark.parametrize(
    ("plan", "width", "shown", "left_out"),
    [
        ("serve llama-3.1-8b llamacpp apple-m3-10", 76, ("/token",), ("no price known",)),
        ("llama-3.1-405b train 4096xh100 8k 15T", 120, ("GiB", "calendar"), ("–",)),
    ],
)
def test_the_head_leaves_out_what_says_least(
    plan: str, width: int, shown: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    group = next(group for group in compare(plan_of_line(read_line(plan)).plan).groups if "balanced" in group.modes)
    text = answer_line(column(group, load_catalog()), width, has_bar=True).plain
    assert all(words in text for words in shown)
    assert not any(words in text for words in left_out)
