"""Dataclasses whose classes cost next to nothing: of their methods only ``__init__`` is generated, once it pays.

A command imports some three hundred of them and makes a few records of every second one; what `dataclasses` generates
for a class takes most of a millisecond. To type checkers, and to functions such as `fields`, `replace` and `asdict`,
these are dataclasses like any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from types import MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - offered to other modules

    from pydantic import TypeAdapter
else:

    def dataclass(written: type | None = None, /, **options: bool) -> type | Callable[[type], type]:
        """Return a class as a dataclass; the options are those of the standard decorator, and mean the same."""
        return _record_class(written, **options) if written else lambda written: _record_class(written, **options)


Field = dataclasses.Field[Any]
T = TypeVar("T")
_FEW = 40  # Records of a class that take as long to fill field by field as its ``__init__`` takes to generate


def _record_class(
    written: type, *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> type:
    """Return a copy of a class that has its slots and the methods of a dataclass."""
    inherited: dict[str, Field] = {}
    for base in reversed(written.__mro__[1:]):
        inherited |= vars(base).get("__dataclass_fields__", {})
    content = {name: value for name, value in vars(written).items() if name not in ("__dict__", "__weakref__")}
    kinds = get_annotations(written).items()
    own = {name: _field(name, kind, content) for name, kind in kinds if "ClassVar" not in str(kind)}
    fields = inherited | own
    if slots:
        content = {name: value for name, value in content.items() if name not in own}
        content["__slots__"] = tuple(name for name in own if name not in inherited)
    methods = {
        "__dataclass_fields__": fields,
        "__dataclass_params__": SimpleNamespace(frozen=frozen, eq=eq),
        "__match_args__": () if kw_only else tuple(name for name, entry in fields.items() if entry.init),
        "__repr__": _repr,
    }
    if eq:
        methods |= _comparison(fields, frozen)
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    record = type(written)(written.__name__, written.__bases__, methods | content)
    if "__init__" not in content:
        _generate_init_later(record, fields, frozen, kw_only)
    return record


def _field(name: str, kind: object, content: dict[str, Any]) -> Field:
    """Return the field of a name; what only says how a field is made is taken out of the content of the class."""
    value = content.get(name, dataclasses.MISSING)
    is_field = isinstance(value, dataclasses.Field)
    entry: Field = content.pop(name) if is_field else dataclasses.field(default=value)
    entry.name, entry.type = name, kind
    entry._field_type = _IS_FIELD  # type: ignore[attr-defined]  # what `fields` knows one by
    return entry


def _generate_init_later(record: Any, fields: Mapping[str, Field], frozen: bool, kw_only: bool) -> None:
    """Give a class an ``__init__`` that has the generated one take its place once there are more than a few records."""
    made = {name: entry for name, entry in fields.items() if entry.init}
    positional = () if kw_only else tuple(made)
    has_more = hasattr(record, "__post_init__")
    count = 0

    def __init__(self: object, /, *values: object, **named: object) -> None:  # noqa: N807 - it is one
        nonlocal count
        count += 1
        given = {**dict(zip(positional, values, strict=False)), **named}
        # The generated one also says what is wrong with what was given.
        if count > _FEW or len(given) != len(values) + len(named) or not _fill(self, made, given):
            if record.__init__ is __init__:
                record.__init__ = _init(record, fields, frozen, kw_only, has_more)
            record.__init__(self, *values, **named)
        elif has_more:
            self.__post_init__()  # type: ignore[attr-defined]

    record.__init__ = __init__


def _fill(self: object, fields: Mapping[str, Field], given: dict[str, object]) -> bool:
    """Set every field as given or by default; returns whether nothing is left over or missing."""
    for name, entry in fields.items():
        if name in given:
            value = given.pop(name)
        elif entry.default_factory is not dataclasses.MISSING:
            value = entry.default_factory()
        elif (value := entry.default) is dataclasses.MISSING:
            return False
        object.__setattr__(self, name, value)
    return not given


def _init(record: Any, fields: Mapping[str, Field], frozen: bool, kw_only: bool, has_more: bool) -> Any:
    """Return a generated ``__init__``; ``has_more`` says that ``__post_init__`` follows."""
    known: dict[str, Any] = {"set_field": object.__setattr__, "missing": dataclasses.MISSING}
    parameters, lines = ["self", *(["*"] if kw_only else [])], []
    for name, entry in fields.items():
        if not entry.init:
            continue
        value = name
        if entry.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"] = entry.default_factory
            value = f"make_{name}() if {name} is missing else {name}"
            parameters.append(f"{name}=missing")
        elif entry.default is not dataclasses.MISSING:
            known[f"default_{name}"] = entry.default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        slot = getattr(record, name, None)
        if not frozen:
            lines.append(f"self.{name} = {value}")
        elif isinstance(slot, MemberDescriptorType):
            # A third less time than by its name.
            known[f"set_{name}"] = slot.__set__
            lines.append(f"set_{name}(self, {value})")
        else:
            lines.append(f"set_field(self, {name!r}, {value})")
    lines.append("self.__post_init__()" if has_more else "pass")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), known)  # noqa: S102 - names of fields alone
    return known["__init__"]


def _comparison(fields: Mapping[str, Field], frozen: bool) -> dict[str, Any]:
    """Return the methods by which records of one class are equal, and by which frozen ones are hashed."""
    compared = _values(name for name, entry in fields.items() if entry.compare)
    hashed = _values(name for name, entry in fields.items() if (entry.compare if entry.hash is None else entry.hash))

    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - it is one
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807 - it is one
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values(fields: Iterable[str]) -> Callable[[object], tuple[object, ...]]:
    """Return what gives the values of some fields of a record."""
    names = tuple(fields)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _repr(self: Any) -> str:
    shown = (f"{entry.name}={getattr(self, entry.name)!r}" for entry in dataclasses.fields(self) if entry.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(_: object, name: str, *__: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[object]:
    """Return the values that copies and pickles hold."""
    return [getattr(self, entry.name) for entry in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for entry, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, entry.name, value)


_IS_FIELD = dataclasses.fields(dataclasses.make_dataclass("_", ["field"]))[0]._field_type  # type: ignore[attr-defined]


def record_of_data(kind: type[T], data: object) -> T:
    """Return the record that plain data describe, such as those of a JSON file; what it has no field for is left out.

    Raises:
        ValueError: a field is missing, or its value is none of its kind; the text says which.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - what reads no file of records waits for no library

    read: TypeAdapter[T] = _reader(kind)  # type: ignore[arg-type]  # classes are hashable
    try:
        return read.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


@cache
def _reader(kind: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(kind)
