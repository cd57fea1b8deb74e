"""What would become of the plan if something were changed, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to one figure.

    Attributes:
        text: the figure, its new value and the difference.
        gain: 1 where that is better, -1 where it is worse, 0 where neither.
    """

    text: str
    gain: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """A change that would improve the plan.

    Attributes:
        title: what to do.
        change: fields of the plan and their new values.
        verdict: whether the plan fits with it.
        effects: all that it does.
        caution: what else it changes; empty for nothing.
    """

    title: str
    change: Mapping[str, object] = field(hash=False)
    verdict: Verdict
    effects: tuple[Effect, ...] = ()
    caution: str = ""
