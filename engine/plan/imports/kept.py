"""Plans as comments of the files that they are written to, so that these are read back as the same plans."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from pydantic import BaseModel

from capacity_tui.engine.catalog import read_yaml
from capacity_tui.engine.errors import DocumentError, Place
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.files.saved import setting_text
from capacity_tui.engine.plan.imports.setting import ImportedSetting
from capacity_tui.engine.plan.plan import Plan

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
    """Return a settled plan as a comment.

    Args:
        plan: the plan.
        steps: the length of its job as files write it.
    """
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
    for section in ("model", "hardware", *(_SERVED if plan.task == "infer" else _TRAINED)):
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
