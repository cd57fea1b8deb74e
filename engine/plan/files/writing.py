"""Plans as YAML that a person can read and edit, and that loads as the same plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import yaml

from capacity_tui.engine.catalog import EXPONENT
from capacity_tui.engine.plan.plan import AUTO, Plan
from capacity_tui.engine.printable import printable, printable_lines

_LARGEST_EXACT = 2.0**53
_WIDEST_LINE = 100
# Sections that a task reads, beside the model and the hardware.
_READ: Mapping[str, tuple[str, ...]] = {
    "train": ("training", "parallelism", "pricing"),
    "finetune": ("training", "parallelism", "pricing"),
    "infer": ("inference", "parallelism", "pricing"),
    "fit": ("pricing",),
}
_TASK_UNLESS_SAID = "train"


def dump_plan(plan: Plan, comment: str = "") -> str:
    """Return the plan as YAML: all that its task reads, defaults written out, and what else differs from them.

    So the file says what will run, and goes on saying it should a default ever change. A plan with open fields does
    not say that yet: of it only what somebody wrote is written, and modes stay free to go beyond the defaults.

    Args:
        plan: the plan.
        comment: further lines for the comment at the top.
    """
    heading = [f"Plan for capacity-tui, written by version {_version()}.", *comment.splitlines()]
    data = {"version": plan.version, **_written(plan)}
    if plan.scenarios:
        data["scenarios"] = {name: _written(scenario) for name, scenario in plan.scenarios.items()}
    return "".join(f"# {printable(line)}\n" for line in heading) + yaml_text(data)


def _written(plan: Plan) -> dict[str, Any]:
    """Return what is written of a plan, without the plans beside it."""
    excluded = {"scenarios"}
    data = plan.model_dump(mode="json", exclude_defaults=True, exclude=excluded)
    whole = plan.model_dump(mode="json", exclude_none=True, exclude_unset=_is_open(plan), exclude=excluded)
    for section in ("hardware", *_READ[plan.task or _TASK_UNLESS_SAID]):
        data[section] = {**whole.get(section, {}), **data.get(section, {})}
    if not data["hardware"].get("spec"):
        data["hardware"].pop("spec", None)
    data = {section: value for section, value in data.items() if value != {}}
    return {key: _readable(value) for key, value in _in_order(data).items()}


def _is_open(plan: Plan) -> bool:
    """Whether the plan leaves a choice to the modes."""
    sections = (plan.training, plan.inference, plan.parallelism)
    return plan.model.name == AUTO or any(value == AUTO for section in sections for _, value in section)


def yaml_text(data: object) -> str:
    """Return data as YAML in their own order; where a character has no glyph, all but ASCII is escaped."""
    text = _dumped(data, allow_unicode=True)
    return text if printable_lines(text) == text else _dumped(data, allow_unicode=False)


def setting_text(value: object) -> str:
    """Return a value as a setting on the command line gives it: one line, which reads back as the same value."""
    text: str = yaml.dump(_readable(value), Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.removesuffix("\n").removesuffix("\n...")


def _dumped(data: object, allow_unicode: bool) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=_WIDEST_LINE)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes values that occur twice out twice: people do not read anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


# Names of fields and figures are texts to whoever reads a file.
_Dumper.add_multi_representer(StrEnum, lambda dumper, member: dumper.represent_str(member.value))
# What the reader takes for a number must be quoted where it is text.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))


def _in_order(data: dict[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in Plan.model_fields if key in data}


def _readable(value: Any) -> Any:
    """Return ``2000000000`` for 2000000000.0: they load as the same amount."""
    if isinstance(value, dict):
        return {key: _readable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_readable(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_EXACT:
        return int(value)
    return value


def _version() -> str:
    try:
        return version("capacity-tui")
    except (PackageNotFoundError, OSError):
        return "unknown"
