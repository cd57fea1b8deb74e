"""Records behave as dataclasses of the standard library do."""

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from capacity_tui.engine import record


class Base:
    """What both decorators are given."""

    __slots__ = ()

    def doubled(self) -> float:
        return 2 * getattr(self, "size", 0)


def _classes(decorator: Any) -> tuple[Any, Any, Any]:
    @decorator(frozen=True, slots=True)
    class Plain(Base):
        """One with defaults."""

        name: str
        size: float = 1.5
        rows: list[int] = field(default_factory=list, hash=False)
        note: str = field(default="", compare=False, repr=False)

    @decorator(frozen=True, slots=True)
    class More(Plain):
        """One that adds to it."""

        extra: int = 3

        def __post_init__(self) -> None:
            if self.extra < 0:
                raise ValueError(self.extra)

    @decorator(slots=True, kw_only=True)
    class Open:
        """One that changes."""

        count: int = 0

    return Plain, More, Open


RECORDS, STANDARD = _classes(record.dataclass), _classes(dataclasses.dataclass)


def shown(value: object) -> str:
    """Return how a record prints, without the function that its class was made in."""
    return repr(value).rpartition("<locals>.")[2]


@pytest.mark.parametrize(
    "make",
    [
        lambda plain, more, _: plain("a"),
        lambda plain, more, _: plain("a", size=2, note="kept"),
        lambda plain, more, _: more("a", 2, [1], "n", 5),
        lambda plain, more, _: dataclasses.replace(more("a"), size=7.0, extra=0),
        lambda plain, more, opened: opened(count=4),
    ],
)
def test_a_record_prints_and_holds_what_a_dataclass_does(make: Any) -> None:
    ours, standard = make(*RECORDS), make(*STANDARD)
    assert shown(ours) == shown(standard)
    assert dataclasses.asdict(ours) == dataclasses.asdict(standard)
    assert [entry.name for entry in dataclasses.fields(ours)] == [entry.name for entry in dataclasses.fields(standard)]
    assert type(ours).__match_args__ == type(standard).__match_args__
    assert dataclasses.is_dataclass(ours) and not hasattr(ours, "__dict__")


@pytest.mark.parametrize("classes", [RECORDS, STANDARD], ids=["record", "standard"])
def test_records_compare_and_hash_by_the_fields_that_say_so(classes: Any) -> None:
    plain, more, opened = classes
    assert plain("a", note="one") == plain("a", note="two") != plain("b")
    assert plain("a") != more("a")
    assert hash(plain("a", rows=[1])) == hash(plain("a", rows=[2]))
    assert opened(count=1) == opened(count=1)
    with pytest.raises(TypeError):
        hash(opened())


@pytest.mark.parametrize("classes", [RECORDS, STANDARD], ids=["record", "standard"])
def test_a_frozen_record_refuses_changes_and_wrong_arguments(classes: Any) -> None:
    plain, more, opened = classes
    for wrong in (plain, lambda: plain("a", colour=1), lambda: opened(3)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain("a").size = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        del plain("a").name
    with pytest.raises(ValueError, match="-1"):
        more("a", extra=-1)
    changed = opened()
    changed.count = 5
    assert changed == opened(count=5)


def test_defaults_are_made_anew_for_every_record() -> None:
    plain, *_ = RECORDS
    assert plain("a").rows is not plain("a").rows
    assert plain("a", size=2).doubled() == 4


@record.dataclass(frozen=True, slots=True)
class Kept:
    """One that can be found by its name."""

    name: str
    sizes: tuple[int, ...] = ()


def test_records_are_copied_and_pickled() -> None:
    kept = Kept("a", (1, 2))
    assert pickle.loads(pickle.dumps(kept)) == copy.copy(kept) == copy.deepcopy(kept) == kept
