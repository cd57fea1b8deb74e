"""What a plan would be with other values, as plain frozen data, and how such figures stand beside each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_count
from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Tried:
    """The plan with one row taken, estimated.

    Attributes:
        verdict: what it comes to.
        memory: what the fullest device holds of what it has.
        time: of the job, of a token served, or of a step where the length of the job is open.
        price: of an hour.
        reason: why it cannot be estimated, or empty.
        share: memory as a share of what there is.
        seconds: the time as a number.
        usd: the price as a number.
        cost: of the whole job; empty where its length is open.
        cost_usd: the same as a number.
        source: whose price it is, and how old.
        words: what the verdict says of it; empty for the words it always has.
    """

    verdict: Verdict
    memory: str = ""
    time: str = ""
    price: str = ""
    reason: str = ""
    share: float | None = None
    seconds: float | None = None
    usd: float | None = None
    cost: str = ""
    cost_usd: float | None = None
    source: str = ""
    words: str = ""


Key: TypeAlias = tuple[float, ...]
_NEVER = float("inf")
_KILO = 1024
_SHORT_FROM = 10_000
_COUNTED_FROM = 10_000_000


def _least(value: float | None) -> float:
    return _NEVER if value is None else value


def _suits(tried: Tried) -> float:
    """Return 0 for what may fit, so that nothing that does not is ever offered as the fastest or the cheapest."""
    return float(tried.verdict.holds is False)


ORDERS: dict[str, Callable[[Tried], Key]] = {
    "fit": lambda tried: (float(tried.verdict.gravity), _least(tried.cost_usd), _least(tried.seconds)),
    "memory": lambda tried: (_least(tried.share),),
    "time": lambda tried: (_suits(tried), _least(tried.seconds)),
    "cost": lambda tried: (_suits(tried), _least(tried.cost_usd), _least(tried.seconds)),
    "price": lambda tried: (_suits(tried), _least(tried.usd), _least(tried.seconds)),
}
"""By what a list can be sorted, the best first."""


def time_against(tried: Tried, start: Tried | None) -> str:
    """Return the difference to the time of the current value; of that itself, about how long it takes."""
    if tried is start or start is None or not start.seconds or tried.seconds is None:
        return _brief(tried.time)
    return f"{tried.seconds / start.seconds - 1:+.0%}".replace("%", " %")


def _brief(time: str) -> str:
    """Return a time without what it is of, and without the smaller of two units, which the larger one tells."""
    words = time.partition("/")[0].split()
    first = next((index for index, word in enumerate(words) if word[0].isdigit()), 0)
    return " ".join(words[first : first + 3])


def short_value(value: str) -> str:
    """Return a long number in thousands of 1024 where it is a multiple, a very long one in millions or billions."""
    number = int(value) if value.isdigit() else 0
    if number >= _COUNTED_FROM:
        return format_count(number).replace(" ", "")
    return f"{number // _KILO}k" if number >= _SHORT_FROM and number % _KILO == 0 else value
