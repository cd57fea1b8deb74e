"""Texts of other tools: as data with lines, the plans in their comments, and where the files that they name lie."""

from __future__ import annotations

import ast
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel

from capacity_tui.engine.catalog import Document, KeyPath, Plain, read_text, read_yaml
from capacity_tui.engine.errors import CapacityError, DocumentError, Place
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.files.saved import setting_text
from capacity_tui.engine.plan.imports.setting import ImportedSetting
from capacity_tui.engine.plan.plan import Plan

_DEEPEST = 4  # References inside values that are referred to

_REFERENCE = re.compile(r"\$\{(\.*)([\w.]+)\}")  # Dots before it lead up from the section that it stands in

_SHELL = "os.system"
_CELLS = '"cells"'  # The key of a notebook that holds what it runs
_CELL_OF_SHELL = re.compile(r"(?P<indent>)\A%%(?:bash|sh)\b.*\n(?P<command>(?s:.*))")
_LINE_OF_SHELL = re.compile(  # model? asks the notebook for help
    r"^(?P<indent>[ \t]*)(?:!(?P<command>(?:.*\\\n)*.*)|%(?!%writefile).*|\?+[\w.]+|[\w.]+\?+)$", re.MULTILINE
)
_INSERTED = re.compile(r"(?<!\$)\{(\w+)\}|([{}])")  # A value of the notebook in a command, or a brace of its own

_TABLE = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]")

_ENTRY = re.compile(r"\s*([\w.\"'-]+)\s*=")


def read_text_of_tool(text: str, name: str) -> Document:
    """Return data and lines of a text, whatever form it has; raises DocumentError where it is none of the forms."""
    is_json = text.lstrip()[:1] == "{"
    with suppress(tomllib.TOMLDecodeError):
        if not is_json:
            return Document(tomllib.loads(text), name, dict(_toml_lines(text)))
    # Tabs are spaces in JSON; YAML, which it is part of otherwise, has none.
    document = read_yaml(text.replace("\t", " ") if is_json else text, name, of_other_tool=True)
    data = document.data
    for _ in range(_DEEPEST):
        data = _interpolated(data, data, ())
    return Document(data, name, document.lines)


def code_of_notebook(text: str) -> str:
    """Return the Python of a notebook, exported or as a document of cells, with lines for a shell as calls of it."""
    parts = [text]
    with suppress(ValueError, LookupError, TypeError):
        cells = json.loads(text)["cells"] if _CELLS in text else []
        parts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"] or parts
    plain = (_LINE_OF_SHELL.sub(_shell_call, _CELL_OF_SHELL.sub(_shell_call, part)) for part in parts)
    code = "\n".join(part for part in plain if len(parts) == 1 or _is_code(part))
    return code if _SHELL not in code else f"{code}\nimport os"


def _is_code(text: str) -> bool:
    """Whether a cell is Python, which one that writes a file or holds a mistake is not."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(ast.parse(text))
    return False


def _shell_call(match: re.Match[str]) -> str:
    """Return what a notebook runs in a shell as Python does; what is of the notebook itself does nothing."""
    if not match["command"]:
        return f"{match['indent']}pass"
    command = _INSERTED.sub(lambda part: part[0] if part[1] else 2 * part[0], match["command"])
    return f"{match['indent']}{_SHELL}(f{command!r})"


def _interpolated(data: Plain, whole: Plain, path: KeyPath) -> Plain:
    """Return data at a path of a file with references to its other keys replaced by values, as OmegaConf has them."""
    if isinstance(data, dict):
        return {key: _interpolated(value, whole, (*path, key)) for key, value in data.items()}
    if isinstance(data, list):
        return [_interpolated(value, whole, (*path, index)) for index, value in enumerate(data)]
    if not isinstance(data, str) or "${" not in data:
        return data
    alone = _REFERENCE.fullmatch(data)
    return _at(whole, alone, path) if alone else _REFERENCE.sub(lambda match: str(_at(whole, match, path)), data)


def _at(data: Plain, reference: re.Match[str], path: KeyPath) -> Plain:
    """Return the value that a reference at a path names; its own text where it names none."""
    above = path[: -len(reference[1])] if reference[1] else ()
    for key in (*above, *reference[2].split(".")):
        if not isinstance(data, dict) or key not in data:
            return reference[0]
        data = data[key]
    return reference[0] if isinstance(data, dict | list) else data


def _toml_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the lines of the tables and entries of a TOML text."""
    above: KeyPath = ()
    for line, content in enumerate(text.splitlines(), 1):
        if table := _TABLE.match(content):
            above = tuple(part.strip("\"'") for part in table[1].split("."))
            yield above, line
        elif entry := _ENTRY.match(content):
            yield (*above, *(part.strip("\"'") for part in entry[1].split("."))), line


_MARK = "# plan: "

_MORE = "#   "

_KEPT = re.compile(r"^# plan: (\{[^\n]*(?:\n#   [^\n]*)*)", re.MULTILINE)

_WIDTH = 110

_TRAINED, _SERVED = ("training", "parallelism"), ("inference", "parallelism")

_FOLLOWS = frozenset({Key.PARALLELISM_DP, Key.PARALLELISM_ETP, Key.PARALLELISM_SEQUENCE_PARALLEL, Key.TRAINING_METHOD})
"""Fields that follow from others, and would stand in the way where somebody changes those."""

_WRITTEN = frozenset(
    {
        Key.TRAINING_MICRO_BATCH,
        Key.TRAINING_ATTENTION,
        Key.TRAINING_PRECISION,
        Key.PARALLELISM_ZERO,
        Key.INFERENCE_KV_CACHE,
        Key.INFERENCE_BATCH,
        Key.INFERENCE_PROMPT_TOKENS,
        Key.INFERENCE_OUTPUT_TOKENS,
    }
)
"""Fields of which an option's word may stand for several values: written also where they have their default."""


def kept_plan(plan: Plan, steps: int | None = None) -> str:
    """Return a settled plan as a comment; ``steps`` are the length of its job as files write it."""
    values = dict(_values(plan)) | ({} if steps is None else {"written_steps": steps})
    lines = textwrap.wrap(setting_text(values), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return _MARK + f"\n{_MORE}".join(lines) + "\n"


def read_kept(text: str, name: str) -> Iterator[ImportedSetting]:
    """Yield what a comment of a file keeps of the plan that it was written for; nothing where there is none."""
    comment = _KEPT.search(text)
    if comment is None:
        return
    line = text.count("\n", 0, comment.start()) + 1
    try:
        data = read_yaml(comment[1].replace(f"\n{_MORE}", " ")).data
    except DocumentError:
        return
    for path, value in data.items() if isinstance(data, dict) else ():
        yield ImportedSetting(path, value, Place(name, line, "plan"), str(value), level="kept")


def _values(plan: Plan) -> Iterator[tuple[str, object]]:
    """Yield what a plan says beyond defaults, by path."""
    if plan.task is not None:
        yield Key.TASK, plan.task
    for section in ("model", "hardware", *(_SERVED if plan.is_inference else _TRAINED)):
        yield from _changed_values(getattr(plan, section), section)


def _changed_values(section: BaseModel, above: str) -> Iterator[tuple[str, object]]:
    given = section.model_dump(mode="json", exclude_none=True)
    default = type(section).model_construct()
    for name, value in given.items():
        path = f"{above}.{name}"
        current = getattr(section, name)
        if isinstance(current, BaseModel):
            yield Key.TRAINING_METHOD, value.get("kind")
            yield from ((f"{path}.{key}", inner) for key, inner in value.items() if key != "kind")
        elif path not in _FOLLOWS and (path in _WRITTEN or current != getattr(default, name, None)):
            yield path, value


_LARGEST_OPTIONS = 65536  # Bytes of a file of options; larger ones are data

_FARTHEST_FOLDER = 3  # Folders above a file in which what it names is looked for


def located(named: Path, folder: Path, given: set[Path]) -> Path | None:
    """Return where a file that another names lies: beside it, or where a run that starts above it finds it."""
    try:
        below = named.parts[1:] if named.is_absolute() else named.parts
        ends = [Path(*below[first:]) for first in range(len(below))]  # without folders of another machine
        for base in (folder, *list(folder.resolve().parents)[:_FARTHEST_FOLDER]):
            for tried in (base / named, base / "src" / named, *(base / end for end in ends)):
                if tried.is_file():
                    return tried
    except (OSError, ValueError):
        return None
    return next((path for path in given if path.name == named.name), None)


def other_script(script: Path, started: set[Path], name: str) -> str | None:
    """Return the text of a script that another one names, beside it or where a run that starts above it finds it.

    Its path is put among those that are started.
    """
    path = located(Path(name), script.parent, set())
    if path is None or path.resolve() == script.resolve():
        return None
    started.add(path)
    with suppress(CapacityError):
        return read_text(path)
    return None


def module_file(script: Path, module: str) -> Path | None:
    """Return where a module lies that a Python script imports, beside it or above; None elsewhere."""
    named = Path(f"{module.replace('.', '/')}.py")
    above = list(script.resolve().parents)[1 : _FARTHEST_FOLDER + module.count(".")]  # which the name may begin at
    bases = (script.parent, *above) if module else ()
    for tried in (path for base in bases for path in (base / named, base / "src" / named)):
        with suppress(OSError, ValueError):
            if tried.is_file() and tried.resolve() != script.resolve():
                return tried
    return None


def module_text(script: Path, module: str) -> str | None:
    """Return the text of a module that a Python script imports; None where it lies elsewhere, or cannot be read."""
    path = module_file(script, module)
    with suppress(CapacityError, OSError):
        return None if path is None else read_text(path)
    return None


def options_alongside(script: Path, path: str) -> Plain:
    """Return what stands in a file of options that a Python script names, where it lies beside it; None elsewhere."""
    where = located(Path(path), script.parent, set())
    with suppress(CapacityError, OSError):
        if where is not None and where.stat().st_size <= _LARGEST_OPTIONS:
            return read_text_of_tool(read_text(where), str(where)).data
    return None
