"""One thing that could be changed about a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# What remedies do to the result, for those that do something to it.
ROUNDS_MORE = "Rounds more coarsely: compare losses or answers first."
OTHER_DATA = "The model then sees shorter texts."
OTHER_BATCH = "The optimizer then takes other steps."
ONLY_ADAPTERS = "Only the adapters learn."


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to change.

    Attributes:
        code: stable name; of several remedies with one code the best is told.
        title: what to do.
        change: plan fields and their new values.
        caution: what else it changes.
        replaces_choice: whether it is for the user to go beyond what a mode chose, too.
    """

    code: str
    title: str
    change: Mapping[str, object] = field(default_factory=dict)
    caution: str = ""
    replaces_choice: bool = False

    @property
    def moves_hardware(self) -> bool:
        """Whether it asks for other hardware, or for more or less of it."""
        return any(path.startswith("hardware.") for path in self.change)

    @property
    def is_gentle(self) -> bool:
        """Whether it leaves results and hardware as they are."""
        return not self.caution and not self.moves_hardware
