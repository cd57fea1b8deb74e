"""A pause of a guarded run, or its end: what and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Move:
    """What is done to the processes of a run.

    Attributes:
        action: pause or resume them.
    """

    action: Literal["pause", "resume"]
    cause: Literal["heat", "battery"]
    reason: str

    def data(self) -> dict[str, object]:
        """Return it as plain data, as it is announced and kept."""
        return {"action": self.action, "cause": self.cause, "reason": self.reason}
