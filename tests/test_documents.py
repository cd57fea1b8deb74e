"""Every row of the pages about the documents: what it names does what it says."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_lines import parsed
from document_pages import PAGES, ROOT, Page, Row, Span, read_page

from capacity_tui import engine
from capacity_tui.engine.plan.files import read_source
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import answer
from capacity_tui.tui.actions import ACTIONS, VIEWS, key_codes, key_names
from capacity_tui.tui.cli import main
from capacity_tui.tui.cli.program import PROGRAM

FEW = 6  # Commands of a page that need what is not on every machine: they are parsed, not run
KEYS = {name for action in ACTIONS for name in (*key_names(action, {}), *key_codes(action, {}))}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
INSTALLABLE = {*EXTRAS["project"]["optional-dependencies"], *EXTRAS["dependency-groups"]}
RESULTS = ("deep_learning", "qlora_rtx_4090", "vllm_70b_4_h100", "linear_regression")
WRONG = """
| the document says | today | remark |
| --- | --- | --- |
| right | `capacity-tui models --filter gpt2` (says "gpt2"), key `space f`, `training.seq_len` | |
| no such option | `capacity-tui models --nowhere` | |
| other words | `capacity-tui models --filter gpt2` (says "no such words") | |
| other end | `capacity-tui models --filter gpt2` (ends with 2) | |
| no such option, not run | `capacity-tui sample kernels --nowhere` (not run: needs a GPU) | |
| no such view | key `space 9` | |
| no such field | `training.nothing` | |
| no such extra | `pip install 'capacity-tui[nothing]'` | |
| no such call | `engine.nothing()` | |
| nothing | words | |
"""
Command = Callable[[str], tuple[int, str]]


def dotted(value: object, above: str = "") -> Iterator[str]:
    """Yield the names of all that a result holds."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{above}{name}"
            yield from dotted(inner, f"{above}{name}.")


@pytest.fixture(scope="session")
def names() -> frozenset[str]:
    """Names of fields of plans and of figures of results."""
    answers = [answer(read_source(name).plan()) for name in RESULTS]
    found = {name for each in answers for name in dotted(result_as_dict(each.plan, each.estimate))}
    return frozenset(name.removeprefix("plan.") for name in found)


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], fresh_catalog: None
) -> Command:
    """Runs a command line in a folder of its own, as a user without anything would; each but once."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "CAPACITY_TUI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    done: dict[str, tuple[int, str]] = {}

    def command(line: str) -> tuple[int, str]:
        if line not in done:
            capfd.readouterr()
            code = main(shlex.split(line)[1:])
            told = capfd.readouterr()
            done[line] = code, " ".join(f"{told.out} {told.err}".split())
        return done[line]

    return command


def wrong_key(span: Span) -> str:
    words = span.text.split()
    if span.kind == "view":
        return "" if span.text in VIEWS else "no such view"
    if len(words) == 2 and words[0] == "space":
        return "" if words[1] in VIEWS.values() else "no view has this key"
    return "" if len(words) == 1 and words[0] in KEYS else "no such key"


def wrong_install(text: str) -> str:
    asked = re.findall(r"\[([\w,-]+)\]", text) + re.findall(r"--(?:extra|group) ([\w-]+)", text)
    missing = {name for names in asked for name in names.split(",")} - INSTALLABLE
    return f"no such extra: {', '.join(missing)}" if missing else ""


def wrong_call(span: Span, known: dict[str, object], capfd: pytest.CaptureFixture[str]) -> str:
    try:
        value = eval(span.text, known)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    told = f"{value!r} {capfd.readouterr().out}"
    return "".join(f"does not say {words!r}: {told[:300]}" for words in span.said if words not in told)


def wrong_command(span: Span, run: Command) -> str:
    if span.not_run or span.text == PROGRAM or span.text.startswith(f"{PROGRAM} --plan"):
        return parsed(span.text)
    code, told = run(span.text)
    if code != span.code:
        return f"ends with {code}: {told[-400:]}"
    return "".join(f"does not say {words!r}: {told[:600]}" for words in span.said if words not in told)


def write_files(page: Page, folder: Path) -> None:
    for name, text in page.files.items():
        path = folder / name.removeprefix("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def test_each_document_has_its_page_and_the_index_names_it() -> None:
    index = (ROOT / "docs" / "documents.md").read_text("utf-8")
    assert re.findall(r"\]\(documents/([\w-]+\.md)\)", index) == [
        "capacity-planner.md", "auto-configuration.md", "fleet.md", "train-time.md", "hardware-profiling.md"
    ]  # fmt: skip
    assert {path.name for path in PAGES} == set(re.findall(r"\]\(documents/([\w-]+\.md)\)", index))


def test_the_index_counts_the_rows_of_each_page() -> None:
    index = (ROOT / "docs" / "documents.md").read_text("utf-8")
    counted = re.findall(r"/([\w-]+)\.md\) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", index)
    written = {page: numbers for page, *numbers in counted}
    for path in PAGES:
        rows = read_page(path).rows
        read = sum(bool(row.spans) and all(span.not_run for span in row.spans) for row in rows)
        decided = sum(bool(row.decided) for row in rows)
        assert written[path.stem] == [str(count) for count in (len(rows), len(rows) - read, read, decided)], path.stem


class Trial:
    """Tries what rows of a page name.

    Args:
        page: the page.
        run: runs a command line.
        names: fields of plans and figures of results.
        capfd: takes what is printed.
    """

    def __init__(self, page: Page, run: Command, names: frozenset[str], capfd: pytest.CaptureFixture[str]) -> None:
        self._run = run
        self._names = names
        self._capfd = capfd
        self._known: dict[str, object] = {"engine": engine}
        for script in page.scripts:
            exec(script, self._known)
        self._decisions = " ".join((ROOT / "docs" / "decisions.md").read_text("utf-8").split())

    def faults(self, row: Row) -> Iterator[str]:
        """Yield what of a row is not so."""
        if not row.spans and not row.decided:
            yield "nothing that could be tried"
        yield from (f"not decided: {words}" for words in row.decided if words not in self._decisions)
        yield from (f"`{span.text}`: {fault}" for span in row.spans if (fault := self._fault(span)))

    def _fault(self, span: Span) -> str:
        program = span.text.split()[0]
        if span.kind:
            return wrong_key(span)
        if program == PROGRAM:
            return wrong_command(span, self._run)
        if program in ("pip", "uv", "pipx"):
            return wrong_install(span.text)
        if "(" in span.text:
            return wrong_call(span, self._known, self._capfd)
        if "/" in span.text:
            return "" if (ROOT / span.text).exists() else "no such file"
        return "" if span.text in self._names else "neither a field of plans nor a figure of results"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_row_of_a_page_does_what_it_says(
    path: Path, run: Command, names: frozenset[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = read_page(path)
    write_files(page, tmp_path)
    trial = Trial(page, run, names, capfd)
    faults = [f"{row.feature} | {fault}" for row in page.rows for fault in trial.faults(row)]
    assert not faults, "\n".join(faults)
    assert len([span for row in page.rows for span in row.spans if span.not_run]) <= FEW


def test_a_row_that_is_not_so_would_be_found(
    run: Command, names: frozenset[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text(WRONG)
    page = read_page(tmp_path / "page.md")
    trial = Trial(page, run, names, capfd)
    faults = [list(trial.faults(row)) for row in page.rows]
    assert faults[0] == []
    assert all(faults[1:])
