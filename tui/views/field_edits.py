"""The keys that change the field under a cursor, whatever the field is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from capacity_tui.tui.actions import Commands


class FieldEdits(ABC):
    """Steps the field under the cursor, types its value, or leaves it to what is usual."""

    @property
    def value_commands(self) -> Commands:
        """What the keys of values do, by action."""
        return {
            "value.more": partial(self.step, 1),
            "value.less": partial(self.step, -1),
            "value.much_more": partial(self.step, 1, big=True),
            "value.much_less": partial(self.step, -1, big=True),
            "value.type": self.type_value,
            "value.auto": self.automatic,
        }

    @abstractmethod
    def step(self, direction: int, big: bool = False) -> None:
        """Step the field under the cursor."""

    @abstractmethod
    def type_value(self) -> None:
        """Type the value of the field under the cursor, or pick it from a list."""

    @abstractmethod
    def automatic(self) -> None:
        """Leave the field under the cursor to what is usual, or to the modes."""
