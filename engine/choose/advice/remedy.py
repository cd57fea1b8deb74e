"""One thing that could be changed about a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to change.

    Attributes:
        code: stable name; of several remedies with one code the best is told.
        title: what to do.
        change: plan fields and their new values.
        caution: what else it changes.
    """

    code: str
    title: str
    change: Mapping[str, object] = field(default_factory=dict)
    caution: str = ""

    @property
    def is_gentle(self) -> bool:
        """Whether it leaves results and hardware as they are."""
        return not self.caution and not any(path.startswith("hardware.") for path in self.change)
