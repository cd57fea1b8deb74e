"""Results in notebooks: each shows itself as HTML that needs nothing and disturbs nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import detect
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer, explain, sensitivity
from capacity_tui.engine.solve.modes import compare
from capacity_tui.engine.solve.need import need
from capacity_tui.engine.solve.search import Question, parse_axis, parse_limit, search
from capacity_tui.engine.storage import PatternQuestion, pattern_storage

WRITTEN: dict[str, Callable[[Plan], object]] = {
    "answer": answer,
    "estimate": lambda plan: answer(plan).estimate,
    "comparison": compare,
    "mode": lambda plan: compare(plan).balanced,
    "search": lambda plan: search(Question(plan, (parse_axis("training.micro_batch=1,2"),))),
    "found": lambda plan: search(Question(plan, (parse_axis("training.micro_batch=1,2"),))).top[0],
    "needed": lambda plan: need(Question(plan, limits=(parse_limit("memory<=80%", "train"),)), "training.micro_batch"),
    "sensitivity": lambda plan: sensitivity(plan, "computation.step_seconds"),
    "explained": lambda plan: explain(plan, "memory.parts.activations"),
    "machine": lambda _: detect(),
    "storage": lambda _: pattern_storage(PatternQuestion(samples=1000, tokens=500), load_catalog()),
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_from_data(
        {
            "model": {"name": "gpt2-small"},
            "hardware": {"name": "rtx-3060-12gb"},
            "training": {"micro_batch": 2, "tokens": 1e6, "checkpointing": "none"},
        }
    )


class Tags(HTMLParser):
    """Counts what is open, and keeps what could reach beyond the result."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.addresses += [name for name, _ in attrs if name in ("src", "href") or name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_result_shows_itself_as_html(kind: str, plan: Plan) -> None:
    text = WRITTEN[kind](plan)._repr_html_()
    page = Tags(text)
    assert page.open == []
    assert "table" in page.tags
    assert not page.tags & {"html", "body", "script", "link", "img"}
    assert not page.addresses
    style = text[text.index("<style>") + len("<style>") : text.index("</style>")]
    rules = [rule.strip() for rule in style.split("}") if rule.strip()]
    assert all(part.strip().startswith(".capacity-tui") for rule in rules for part in rule.split("{")[0].split(","))


def test_texts_are_escaped_and_control_characters_harmless(plan: Plan) -> None:
    found = answer(plan)
    named = found.plan.model_copy(update={"model": found.plan.model.model_copy(update={"name": "<b>\x1b[31m&"})})
    text = replace(found, resolved=replace(found.resolved, plan=named))._repr_html_()
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "\x1b" not in text


def test_without_a_notebook_nothing_is_loaded_for_it() -> None:
    script = "import sys; from capacity_tui import engine; engine.Answer; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
