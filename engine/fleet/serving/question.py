"""What is asked of a fleet that serves: how many requests, how soon they must be answered, on which instances."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.serving.load_curve import LoadCurve
from capacity_tui.engine.plan import Plan

_MOST_PERCENT = 99.9


@dataclass(frozen=True, slots=True)
class ServingQuestion:
    """A load, and what must hold of it.

    Attributes:
        plan: the model, its requests and its hardware.
        rate: requests a second; of a load that varies, at its peak.
        ttft: most seconds to the first token; None for any.
        tpot: most seconds of each token after it; None for any.
        percentile: percent of the requests that must keep each limit.
        hardware: instances and devices to choose among, as a search takes them; none for the plan's own.
        spread: standard deviation of lengths over their mean, for prompts and answers; None for the plan's own.
        load: how the load varies over a day; None for an even one.
        startup_seconds: until a replica that is asked for answers; None for what is assumed.
        scale_down_seconds: for which fewer must be enough before a replica is given up; None for what is assumed.
        reserve: replicas beyond what the load needs, as a share; None for what is assumed.
        seed: of the random numbers.
    """

    plan: Plan
    rate: float
    ttft: float | None = None
    tpot: float | None = None
    percentile: float = 95.0
    hardware: tuple[str, ...] = ()
    spread: float | None = None
    load: LoadCurve | None = None
    startup_seconds: float | None = None
    scale_down_seconds: float | None = None
    reserve: float | None = None
    seed: int = 1

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            PlanError: a number is out of its range, or no limit is given.
        """
        if self.ttft is None and self.tpot is None:
            raise PlanError("no limit of latency", hint="say --ttft 2s, --tpot 50ms, or both")
        for name, value in (("rate", self.rate), ("ttft", self.ttft), ("tpot", self.tpot)):
            if value is not None and not 0 < value < float("inf"):
                raise PlanError("must be above 0", f"{name} {value:g}", "such as --rate 20 --ttft 2s --tpot 50ms")
        if not 1 <= self.percentile <= _MOST_PERCENT:
            raise PlanError("not a percentile", f"{self.percentile:g}", f"from 1 to {_MOST_PERCENT:g}")
        for name, value in (
            ("spread", self.spread),
            ("reserve", self.reserve),
            ("startup", self.startup_seconds),
            ("scale-down", self.scale_down_seconds),
        ):
            if value is not None and not 0 <= value < float("inf"):
                raise PlanError("must not be negative", f"{name} {value:g}")
