"""The user's saved plans: one YAML file each, in a folder of their own.

There are no locks. Each file is written whole and moved into place in one step, so two programs at once see
whole plans; of two that replace the same plan the later one stays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from capacity_tui.engine.catalog import EXPONENT, nearest
from capacity_tui.engine.errors import CapacityError, DocumentError, Place, PlanError, StorageError
from capacity_tui.engine.files import (
    data_folder,
    make_folder,
    reading_error,
    rename_file,
    set_aside,
    storage_error,
    write_atomically,
)
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.files.loading import load_plan
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO

_SUFFIX = ".yaml"
_NAME = re.compile(r"[\w(][\w .()+=-]{0,99}")
_SET_ASIDE = re.compile(r"\.corrupt-\d{8}T\d{6}(-\d+)?$")


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """One entry of the list of saved plans."""

    name: str
    path: Path
    changed: datetime  # when it was last written, UTC


def plans_folder() -> Path:
    """Return the folder of saved plans, which need not exist."""
    return data_folder() / "plans"


def list_plans() -> tuple[SavedPlan, ...]:
    """Return the saved plans, the latest first; what is no file any more, or never was one, is left out."""
    folder = plans_folder()
    try:
        entries = [path for path in folder.iterdir() if _is_plan(path)] if folder.is_dir() else []
    except OSError as error:
        raise reading_error(error, folder) from error
    saved_plans = [
        SavedPlan(path.name.removesuffix(_SUFFIX), path, changed) for path in entries if (changed := _changed(path))
    ]
    return tuple(sorted(saved_plans, key=lambda saved: (saved.changed, saved.name), reverse=True))


def load_saved(name: str) -> Plan:
    """Return a saved plan. A file that no longer holds YAML text is moved aside, and the error says where to.

    Raises:
        PlanError: there is no such plan, or its file is not a plan: it stays where it is, to be corrected.
        StorageError: the file cannot be read.
    """
    return read_plan_file(_existing(name))


def read_plan_file(path: Path) -> Plan:
    """Return the plan of a file among the saved ones. One that no longer holds YAML text is moved aside.

    Raises:
        PlanError: the file is not a plan: it stays where it is, to be corrected; or it is damaged, and the error
            says where it was kept.
        StorageError: the file cannot be read.
    """
    try:
        return load_plan(path)
    except DocumentError as error:
        aside = set_aside(path)
        raise PlanError(
            "this saved plan is damaged", error.one_line(), f"it was kept as {aside}", Place(str(path))
        ) from error


def save_plan(name: str, plan: Plan, overwrite: bool = False) -> Path:
    """Save a plan under a name and return its file.

    A file that would be replaced but cannot be read as a plan is moved aside first, never lost.

    Raises:
        PlanError: the name cannot be that of a file.
        StorageError: there is such a plan and ``overwrite`` is false, or the file cannot be written.
    """
    path = _path(name)
    write_plan_file(path, dump_plan(plan), overwrite)
    return path


def write_plan_file(path: Path, text: str, overwrite: bool = False) -> Path | None:
    """Write a plan's text to a file, making its folder where there is none.

    Returns:
        Where a file that was there went if it could not be read as a plan: it is moved aside, never lost.

    Raises:
        StorageError: there is such a file and ``overwrite`` is false, it cannot be read now, or it cannot be written.
    """
    make_folder(path.parent)
    aside = set_aside(path) if overwrite and _is_damaged(path) else None
    write_atomically(path, text, overwrite)
    return aside


def delete_plan(name: str) -> None:
    """Delete a saved plan; raises PlanError where there is none, StorageError where it cannot be deleted."""
    path = _existing(name)
    try:
        path.unlink()
    except OSError as error:
        raise storage_error(error, path, "cannot be deleted") from error


def rename_plan(name: str, new_name: str) -> Path:
    """Rename a saved plan and return its file.

    Raises:
        PlanError: there is no such plan, or the new name cannot be that of a file.
        StorageError: the new name is taken, or the file cannot be renamed.
    """
    path, new_path = _existing(name), _path(new_name)
    if new_path == path:
        return path
    rename_file(path, new_path)
    return new_path


def _path(name: str) -> Path:
    clean = name.strip()
    if not _NAME.fullmatch(clean) or clean.endswith((".", _SUFFIX)) or _SET_ASIDE.search(clean):
        allowed = "use up to 100 letters, digits, spaces and . _ - + = ( ), beginning with a letter or digit"
        raise PlanError("cannot be the name of a plan", repr(name[:100]), allowed)
    return plans_folder() / f"{clean}{_SUFFIX}"


def _existing(name: str) -> Path:
    path = _path(name)
    if path.exists():
        return path
    close = nearest(name, (saved.name for saved in list_plans()), 1)
    hint = f"did you mean {close[0]!r}?" if close else "save one first"
    raise PlanError("no saved plan of this name", repr(name), hint)


def _is_plan(path: Path) -> bool:
    name = path.name.removesuffix(_SUFFIX)
    return path.suffix == _SUFFIX and bool(_NAME.fullmatch(name)) and not _SET_ASIDE.search(name)


def _is_damaged(path: Path) -> bool:
    """Whether a file's content is no plan; one that cannot be read at all is not judged."""
    try:
        if not path.is_file():
            return False
    except OSError:
        return False  # a name no file can have: writing will say so
    try:
        load_plan(path)
    except StorageError:
        raise
    except CapacityError:
        return True
    return False


def _changed(path: Path) -> datetime | None:
    """Return when a file was last written; None for what is not a file, such as a link to nowhere."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.is_file() else None
    except OSError:
        return None


_LARGEST_EXACT = 2.0**53
_WIDEST_LINE = 100

# Sections that a task reads, beside the model and the hardware.
_READ: Mapping[str, tuple[str, ...]] = {
    "train": ("training", "parallelism", "pricing", "limits"),
    "finetune": ("training", "parallelism", "pricing", "limits"),
    "infer": ("inference", "parallelism", "pricing", "limits"),
    "fit": ("pricing", "limits"),
}

_DEFAULT_TASK = "train"


def dump_plan(plan: Plan, comment: str = "") -> str:
    """Return the plan as YAML: all that its task reads, defaults written out, and what else differs from them.

    So the file says what will run, and goes on saying it should a default ever change. A plan with open fields does
    not say that yet: only what was written by the user is saved, and modes stay free to go beyond the defaults.

    Args:
        comment: further lines for the comment at the top.
    """
    heading = [f"Plan for capacity-tui, written by version {_version()}.", *comment.splitlines()]
    data = {Key.VERSION: plan.version, **_written(plan)}
    if plan.scenarios:
        data[Key.SCENARIOS] = {name: _written(scenario) for name, scenario in plan.scenarios.items()}
    return "".join(f"# {printable(line)}\n" for line in heading) + yaml_text(data)


def _written(plan: Plan) -> dict[str, Any]:
    """Return what is written of a plan, without its compared plans."""
    excluded = {Key.SCENARIOS.value}
    data = plan.model_dump(mode="json", exclude_defaults=True, exclude=excluded)
    document = plan.model_dump(mode="json", exclude_none=True, exclude_unset=_is_open(plan), exclude=excluded)
    for section in ("hardware", *_READ[plan.task or _DEFAULT_TASK]):
        data[section] = {**document.get(section, {}), **data.get(section, {})}
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
