"""The one way to change a plan: what is changed, what follows from that, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from string import ascii_uppercase
from typing import TypeAlias, cast

from pydantic import BaseModel

from capacity_tui.engine.catalog import Catalog, load_catalog, read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.consequences import (
    DEFAULT,
    REPLACING,
    RULES,
    UNCHANGED,
    Change,
    is_model_file,
    names_of_parameter,
    spec_parameter,
)
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS, KnownField, all_fields
from capacity_tui.engine.plan.plan import Plan, counted_name
from capacity_tui.engine.plan.sections import adapter_of, is_scenario_name
from capacity_tui.engine.plan.validation import checked_plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO

_GROUP_NAME, _GROUP_DEVICES = "name", "devices"


def table_text(value: object) -> str:
    """Return a table, or a list of them, as a person would type it; empty for none."""
    if isinstance(value, list | tuple):
        return "; ".join(map(table_text, value))
    entries = _entries(value)
    name, devices = entries.get(_GROUP_NAME), entries.get(_GROUP_DEVICES)
    words = []
    if isinstance(name, str) and " " not in name:
        words.append(f"{devices}x{name}" if isinstance(devices, int) else name)
        entries = {key: entry for key, entry in entries.items() if key not in (_GROUP_NAME, _GROUP_DEVICES)}
    return " ".join([*words, *(f"{key}={_value_text(entry)}" for key, entry in entries.items())])


def table_of(path: str, text: str, is_list: bool) -> object:
    """Return the table, or the list of them, that a typed text stands for; an empty text stands for none.

    Args:
        text: what was typed: words and ``key=value`` with spaces between, ``;`` between tables of a list; or YAML.
        is_list: whether the field holds a list of tables.

    Raises:
        PlanError: a word is neither a name nor ``key=value``.
    """
    typed = text.strip()
    if typed.startswith(("{", "[")):
        return _read(path, typed)
    parts = [part.strip() for part in typed.split(";")] if is_list else [typed]
    tables = [_table(path, part, is_list) for part in parts if part]
    return tables if is_list else next(iter(tables), {})


def _table(path: str, text: str, is_named: bool) -> dict[str, object]:
    from capacity_tui.engine.plan.line.lexicon.hardware_words import figures_of  # noqa: PLC0415 - few plans are typed

    table: dict[str, object] = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        figures = figures_of(word) if path == Key.HARDWARE_SPEC else None
        if equals and key and value:
            table[key] = _read(path, value)
        elif figures is not None:
            table |= figures
        elif is_named and not equals:
            count = counted_name(word)
            table |= {_GROUP_NAME: count[1], _GROUP_DEVICES: count[0]} if count else {_GROUP_NAME: word}
        else:
            raise PlanError("not key=value", repr(word)[:60], "write key=value with spaces between", Place(field=path))
    return table


def _entries(value: object) -> dict[str, object]:
    """Return the keys of a table that were written."""
    if isinstance(value, BaseModel):
        return {name: entry for name, entry in value if name in value.model_fields_set}
    return dict(value) if isinstance(value, Mapping) else {}


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_value_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{_flow(value.items())}}}"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _flow(entries: Iterable[tuple[object, object]]) -> str:
    return ",".join(f"{key}: {_value_text(entry)}" for key, entry in entries)


def _read(path: str, text: str) -> object:
    try:
        return read_yaml(text).data
    except DocumentError as error:
        raise PlanError(error.title, error.detail, "write key=value with spaces between", Place(field=path)) from error


def leaves(data: Mapping[str, object], whole: Collection[str] = (), under: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of nested sections by their paths below one; those of ``whole`` sections together."""
    for name, value in data.items():
        path = f"{under}{name}"
        if isinstance(value, Mapping) and value and path not in whole:
            yield from leaves(value, whole, f"{path}.")
        else:
            yield path, value


Values: TypeAlias = Mapping[str, object]
_NAME, _FILE = Key.MODEL_NAME, Key.MODEL_CONFIG
_GROUPS, _HARDWARE = Key.HARDWARE_GROUPS, Key.HARDWARE_NAME


@dataclass(frozen=True, slots=True)
class Followed:
    """A field that followed another."""

    path: str  # the field, or a section as a whole
    value: object  # what the plan says now; None where the field has its default
    why: str

    @property
    def words(self) -> str:
        """The field, its value where that is short, and why."""
        value = "" if isinstance(self.value, BaseModel | dict) else f" is {_word(self.value)}"
        return f"{self.path}{value}: {self.why}"


@dataclass(frozen=True, slots=True)
class Edited:
    """A changed plan."""

    plan: Plan
    followed: tuple[Followed, ...] = ()  # what changed besides what was asked for


def edited(plan: Plan, change: Values, catalog: Catalog | None = None) -> Edited:
    """Return the plan with values at dotted paths, and what follows from them.

    The values are as a file or a person writes them; ``auto`` gives a field to the modes, or back to its default where
    they do not choose it. All are set together. What the change itself names follows nothing. Another model comes
    first, since it decides which parameters, task and settings there are.

    Args:
        change: new values by path, such as ``training.micro_batch``, ``model.spec.layers`` or ``hardware``.
        catalog: what names stand for; the shipped one with the user's own by default.

    Raises:
        PlanError: there is no such field, it does not take its value, or the values contradict each other.
    """
    changes = _with_model_file(change, catalog)
    first = {path: value for path, value in changes.items() if path in (_NAME, _FILE)}
    later = {path: value for path, value in changes.items() if path not in first}
    followed: list[Followed] = []
    for part in (first, later):
        if part:
            plan = _changed(plan, part, changes, catalog, followed)
    return Edited(plan, tuple(followed))


def with_values(plan: Plan, values: Values) -> Plan:
    """Return the plan with values that a search or a resolution chose, unchecked; nothing but an adapter follows."""
    sections: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        section, name = path.split(".", 1)
        if path.startswith(OWN_PARAMETERS):
            spec = sections.setdefault(section, {}).setdefault("spec", dict(plan.model.spec))
            cast("dict[str, object]", spec)[path.removeprefix(OWN_PARAMETERS)] = value
        else:
            sections.setdefault(section, {})[name] = value
    training = sections.get("training", {})
    if "method" in training:
        training["adapter"] = adapter_of(training["method"])
    changed = {name: getattr(plan, name).model_copy(update=fields) for name, fields in sections.items()}
    return plan.model_copy(update=changed)


def _with_model_file(change: Values, catalog: Catalog | None) -> Values:
    """Return the change with a model's name as a file where it is one."""
    name = change.get(_NAME)
    if not isinstance(name, str) or not is_model_file(name, catalog or load_catalog()):
        return change
    return {_FILE if path == _NAME else path: value for path, value in change.items()}


def _changed(plan: Plan, change: Values, named: Values, catalog: Catalog | None, followed: list[Followed]) -> Plan:
    """Return the plan with a change and what follows from it; ``named`` is what was asked for in all."""
    draft: dict[str, object] = dict(plan)
    reasons: dict[str, str] = {}
    for path, value in change.items():
        for below, written in _written(plan, path, value, catalog):
            draft = _with(draft, tuple(below.split(".")), written)
        known = all_fields().get(path)
        for follows in known.knob.follows if known else ():
            rule = REPLACING.get(follows.rule)
            if rule is None or _is_named(follows.path, named):
                continue
            new = rule(value, plan.value(follows.path))
            if new is not UNCHANGED:
                draft = _with(draft, tuple(follows.path.split(".")), new)
                reasons.setdefault(follows.path, follows.why)
    after = checked_plan(draft)
    values: dict[str, object] = {}
    for trigger in _changed_fields(plan, after, change):
        for follows in trigger.knob.follows:
            sound_rule = RULES.get(follows.rule)
            if sound_rule is None or follows.path in values or _is_named(follows.path, named):
                continue
            new = sound_rule(Change(plan, after, trigger.path, follows.path, catalog))
            if new is not UNCHANGED:
                values[follows.path] = _but_named(new, follows.path, named, after)
                reasons.setdefault(follows.path, follows.why)
    if values:
        draft = dict(after)
        for path, value in values.items():
            draft = _with(draft, tuple(path.split(".")), value)
        after = checked_plan(draft)
    followed += (
        Followed(path, after.value(path), why) for path, why in reasons.items() if after.value(path) != plan.value(path)
    )
    return after


def _is_named(path: str, named: Values) -> bool:
    """Whether a change sets a field, or the section it is in, itself."""
    return any(path == named_path or path.startswith(f"{named_path}.") for named_path in named)


def _but_named(new: object, path: str, named: Values, after: Plan) -> object:
    """Return what a table is given back to: nothing, or those of its keys that the change itself names."""
    preserved = {name.removeprefix(f"{path}."): after.value(name) for name in named if name.startswith(f"{path}.")}
    return preserved if new is DEFAULT and preserved else new


def _changed_fields(before: Plan, after: Plan, change: Values) -> Iterator[KnownField]:
    """Yield the fields that others follow and that differ, of the sections that were touched."""
    for section in dict.fromkeys(path.partition(".")[0] for path in change):
        if getattr(before, section) != getattr(after, section):
            yield from (
                known for known in _followed_fields(section) if before.value(known.path) != after.value(known.path)
            )


@cache
def _followed_fields(section: str) -> tuple[KnownField, ...]:
    """Return the fields of a section that others follow once the plan is sound."""
    known = (entry for path, entry in all_fields().items() if path.partition(".")[0] == section)
    return tuple(entry for entry in known if any(follows.rule in RULES for follows in entry.knob.follows))


def _written(plan: Plan, path: str, value: object, catalog: Catalog | None) -> Iterator[tuple[str, object]]:
    """Yield what a changed field is written as: ``auto`` where nothing chooses it as nothing, parameters checked."""
    name = path.removeprefix(OWN_PARAMETERS)
    if path.startswith(OWN_PARAMETERS) and "." not in name:
        facts = catalog or load_catalog()
        typed = spec_parameter(plan, name, value, facts)
        for key in names_of_parameter(plan, name, facts):
            yield f"{OWN_PARAMETERS}{key}", DEFAULT
        if typed is not None:
            yield path, typed
        return
    known = all_fields().get(path)
    if known is not None and isinstance(value, str) and value != AUTO and known.knob.kind in ("table", "list"):
        typed = _typed(known, value)
        if path == _GROUPS and typed is not DEFAULT:
            yield _HARDWARE, DEFAULT  # the first group names it
        yield path, typed
        return
    is_closed = known is not None and not known.knob.automatic
    yield path, DEFAULT if is_closed and isinstance(value, str) and value == AUTO else value


def _typed(known: KnownField, text: str) -> object:
    """Return what a typed table or list stands for; nothing where nothing was typed."""
    if known.knob.kind == "list":
        return [part for part in text.replace(",", " ").split() if part]
    return table_of(known.path, text, isinstance(known.default, tuple)) or DEFAULT


def _with(node: object, path: tuple[str, ...], value: object, above: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the mapping of a section, changed at a path; sections beside the path stay as they are."""
    if not isinstance(node, BaseModel | dict | None):
        raise PlanError("has no keys of its own", place=Place(field=".".join(above)))
    mapping = _given(node)
    key, *below = path
    if below:
        mapping[key] = _with(dict(node or {}).get(key), tuple(below), value, (*above, key))
    elif value is DEFAULT:
        mapping.pop(key, None)
    else:
        mapping[key] = value
    return mapping


def _given(node: BaseModel | dict[str, object] | None) -> dict[str, object]:
    """Return the keys of a section that were written: a default stays one, which modes may go beyond."""
    if isinstance(node, BaseModel) and not isinstance(node, Plan):
        return {name: value for name, value in node if name in node.model_fields_set}
    return dict(node or {})


def _word(value: object) -> str:
    return "its default" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


_PATH = Key.SCENARIOS


def pinned(plan: Plan, scenario: Plan, name: str = "") -> Plan:
    """Return a plan with another one next to it, under a name, else the first letter that is free."""
    is_free = is_scenario_name(name) and name not in plan.scenarios
    name = name if is_free else next(letter for letter in ascii_uppercase if letter not in plan.scenarios)
    return _with_scenarios(plan, {**plan.scenarios, name: scenario.model_copy(update={_PATH: {}})})


def unpinned(plan: Plan, name: str) -> Plan:
    """Return a plan without one of its compared plans."""
    return _with_scenarios(plan, {key: scenario for key, scenario in plan.scenarios.items() if key != name})


def taken(plan: Plan, name: str) -> Plan:
    """Return one of the compared plans in place of a plan; the other compared plans stay."""
    return _with_scenarios(plan.scenarios[name], plan.scenarios)


def renamed(plan: Plan, name: str, new: str) -> Plan:
    """Return a plan with another name for one of its compared plans, which stays in its place."""
    new = new.strip()
    if not is_scenario_name(new):
        raise PlanError("not a name", repr(new), "allowed: 1 to 40 characters without a dot", Place(field=_PATH))
    if new != name and new in plan.scenarios:
        raise PlanError("that name is taken", new, place=Place(field=_PATH))
    return _with_scenarios(plan, {new if key == name else key: scenario for key, scenario in plan.scenarios.items()})


def _with_scenarios(plan: Plan, scenarios: Mapping[str, Plan]) -> Plan:
    return edited(plan, {_PATH: dict(scenarios)}).plan
