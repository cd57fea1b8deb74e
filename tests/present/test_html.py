"""The HTML report: one page, nothing loaded, every chart with words and tables beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from report_pages import to_html, to_markdown

from capacity_tui.engine.estimate import Answer, Estimate
from capacity_tui.engine.explain import Roofline, roofline
from capacity_tui.engine.plan import ModelSection, Plan
from capacity_tui.engine.plan.files import example_text, plan_from_text
from capacity_tui.engine.plan.plan import ReportSection
from capacity_tui.engine.present.pictures import limit_text
from capacity_tui.engine.present.pictures.charts import Slice, bar_chart, roofline_chart, scaling_chart
from capacity_tui.engine.present.pictures.text_charts import ASCII, roofline_lines
from capacity_tui.engine.solve import answer, curves
from capacity_tui.engine.units import format_bytes

VOID = {"meta", "br", "line", "rect", "circle", "polygon", "polyline", "link", "img", "hr"}

RATE = "computation.tokens_per_second"


class Page(HTMLParser):
    """Checks that tags nest, and collects names and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or tag in {"rect", "circle", "polygon"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def count(self, tag: str) -> int:
        return sum(1 for name, _ in self.tags if name == tag)


@pytest.fixture(scope="module")
def found() -> Answer:
    """An answered plan with scalability, advice and price."""
    return answer(plan_from_text(example_text("transformer"), "transformer"))


@pytest.fixture(scope="module")
def drawn(found: Answer) -> Roofline:
    chart = roofline(found)
    assert chart is not None
    return chart


@pytest.fixture(scope="module")
def text(found: Answer, drawn: Roofline) -> str:
    return to_html(found.plan, found.estimate, drawn)


def test_the_page_is_well_formed_and_has_all_charts(text: str) -> None:
    page = Page(text)
    assert page.count("svg") == 4
    assert page.count("h1") == 1
    assert page.count("table") >= 8


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    page = Page(text)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not [tag for tag, attributes in page.tags if {"src", "href"} & set(attributes)]


def test_charts_say_in_words_what_they_show(text: str) -> None:
    for chart in re.findall(r"<svg.*?</svg>", text, re.S):
        root = ET.fromstring(chart)
        assert root.get("role") == "img"
        assert root.findtext("title")
        assert len(root.findtext("desc") or "") > 20


def test_light_dark_and_paper(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert 'lang="en"' in text


def test_figures_advice_sources_and_plan(text: str, found: Answer) -> None:
    estimate = found.estimate
    assert format_bytes(float(estimate.memory.reserved_bytes.low)) in text
    for note in estimate.recommendations:
        assert note.title in text
    assert estimate.basis.catalogue_date in text
    assert "transformer_decoder" in text
    assert "seq_len: 1024" in text


def test_the_report_section_is_respected(found: Answer, drawn: Roofline) -> None:
    brief = ReportSection(include_plots=False, include_recommendations=False, detailed_breakdown=False)
    plan = found.plan.model_copy(update={"report": brief})
    text = to_html(plan, found.estimate, drawn)
    assert "<svg" not in text
    assert "Recommendations" not in text
    assert "Where the memory goes" not in text


def test_texts_cannot_break_the_page(found: Answer) -> None:
    named = found.plan.model_copy(update={"model": ModelSection(name="<script>alert(1)</script>")})
    text = to_html(named, found.estimate)
    assert "<script" not in text
    Page(text)


def test_what_does_not_fit_says_so(plan: Plan, training: Estimate) -> None:
    small = replace(training, memory=replace(training.memory, capacity_bytes=2.0**30))
    text = to_html(plan, small)
    assert 'class="verdict bad">Does not fit' in text
    Page(text)


def test_an_answer_made_by_hand_needs_no_roofline(plan: Plan, inference: Estimate) -> None:
    Page(to_html(plan.model_copy(update={"task": "infer"}), inference))


def test_bars_are_as_wide_as_their_parts() -> None:
    chart = ET.fromstring(bar_chart("Memory", (Slice("a", 1.0, "1 B"), Slice("b", 3.0, "3 B"))))
    widths = [float(part.get("width") or 0) for part in chart.iter("rect")]
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.01)
    assert bar_chart("Nothing", ()) == ""


def test_scaling_needs_two_counts(found: Answer) -> None:
    assert scaling_chart(()) == ""
    assert scaling_chart(curves(found.estimate.scalability)).count("<polyline") == 1 + 3


def test_kernels_lie_below_the_roof(drawn: Roofline) -> None:
    assert drawn.points
    for point in drawn.points:
        assert point.flops_per_second <= drawn.roof(point.intensity) * 1.001
    assert sum(point.share for point in drawn.points) <= 1.0
    assert roofline_chart(drawn).count("<circle") == len(drawn.points)


@pytest.mark.parametrize("width", [40, 64, 100])
def test_the_roofline_of_a_terminal_keeps_its_width(drawn: Roofline, width: int) -> None:
    lines = roofline_lines(drawn, width, 12, ASCII)
    plane = [line for line in lines if line.startswith("|")]
    assert len(plane) == 12
    assert all(len(line) <= width + 1 for line in plane)
    assert "".join(lines).isascii()
    assert "*" in "".join(plane)


def test_what_limits_is_said_in_words(drawn: Roofline, found: Answer) -> None:
    said = limit_text(drawn, found.estimate)
    assert "above the ridge point of 153 FLOP/B" in said
    faster = [note for note in found.estimate.recommendations if (note.saves or {}).get(RATE, 0.0) > 0.0]
    assert found.estimate.recommendations[0] not in faster, "money alone makes no step shorter"
    assert any(note.title in said for note in faster)
    assert not any(note.title in said for note in found.estimate.recommendations if note not in faster)


def test_markdown_has_roofline_and_plan(found: Answer, drawn: Roofline) -> None:
    text = to_markdown(found.plan, found.estimate, drawn)
    assert "```text\n312.0 TFLOP/s peak of A100" in text
    assert "```yaml\n" in text
    assert "communication takes" in text
    plain = found.plan.model_copy(update={"report": ReportSection(include_plots=False)})
    assert "```text" not in to_markdown(plain, found.estimate, drawn)
