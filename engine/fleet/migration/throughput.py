"""What a job reaches on another instance, and the fewest machines that carry it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster, resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS, Estimate, estimate_resolved, figures_of
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited, memory_searched
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve import EstimatedPlan, with_evidence
from capacity_tui.engine.solve.modes import ModeName, ModePlan, fill, is_written
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

NAME, DEVICES, SPOT = Key.HARDWARE_NAME, Key.HARDWARE_DEVICES, Key.PRICING_SPOT
_WORK = (Figure.LARGEST_REQUESTS_PER_SECOND, Figure.REQUESTS_PER_SECOND, Figure.TOKENS_PER_SECOND)
"""Work a second, by what a plan does: under a load what could be answered, else what is answered."""

_SERVED_LAYOUT = (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_DP)
_JOB = (Key.MODEL_NAME, Key.TRAINING_SEQ_LEN, Key.TRAINING_TOKENS)
"""What a job is: where the plan leaves it open, it is the same on every machine."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a job reaches on some devices."""

    devices: int
    set: Mapping[str, object]  # the change that makes the user's plan this one
    filled: ModePlan | None = None  # the plan as planning fills it; None where it cannot be on these devices at all
    # figures of its estimate by result key; none where memory is short
    figures: Mapping[str, Interval] = field(default_factory=dict)
    refusal: str = ""  # why it cannot be there at all; empty where it can

    @classmethod
    def of(cls, filled: ModePlan, change: Mapping[str, object]) -> Throughput:
        """Return what a filled plan reaches."""
        estimate = filled.estimate
        figures = {} if estimate.verdict is Verdict.DOES_NOT_FIT else figures_of(estimate)
        return cls(int(mean(estimate.computation.devices)), change, filled, figures)

    @property
    def estimate(self) -> Estimate | None:
        return None if self.filled is None else self.filled.estimate

    @property
    def verdict(self) -> Verdict:
        return Verdict.CANNOT_RUN if self.estimate is None else self.estimate.verdict

    @property
    def fits(self) -> bool:
        """Whether the job fits, and keeps its limits."""
        return self.verdict.holds is not False

    @property
    def is_short(self) -> bool:
        """Whether memory of a device or of its host is too small."""
        return self.estimate is not None and self.estimate.verdict is Verdict.DOES_NOT_FIT

    @property
    def short_bytes(self) -> float:
        """Bytes that the fullest device lacks; 0 where they are enough."""
        if self.estimate is None or self.estimate.memory.capacity_bytes is None:
            return 0.0
        memory = self.estimate.memory
        return max(0.0, mean(memory.reserved_bytes.value) - mean(self.estimate.memory.capacity_bytes))

    @property
    def work(self) -> Interval | None:
        """Work a second: requests, tokens or samples."""
        return next((self.figures[key] for key in _WORK if key in self.figures), None)

    @property
    def work_of_one_release(self) -> Interval | None:
        """The same where the software's release is known: whichever it is, other machines would run it as well."""
        estimate = self.estimate
        key = next((key for key in _WORK if key in self.figures), None)
        if key is None or estimate is None or self.filled is None or estimate.work.evidence.least_rate >= 1.0:
            return self.work
        known = replace(estimate.work.evidence, least_rate=1.0)
        figure = METRICS[key].read(with_evidence(EstimatedPlan.of(self.filled.plan, self.filled), known))
        return figure if isinstance(figure, Interval) else self.work

    @property
    def replicas(self) -> int:
        """Copies of the model that work apart from each other."""
        return 1 if self.filled is None else int(self.filled.plan.parallelism.dp or 1)

    @property
    def zero(self) -> int:
        """Which states these copies shard among them, 0 for none."""
        return 0 if self.filled is None else int(self.filled.plan.parallelism.zero or 0)

    def paid(self, cluster: Cluster) -> Throughput:
        """Return the same, paid for as the price of a cluster says."""
        if self.filled is None or self.filled.resolved.cluster.price == cluster.price:
            return self
        resolved = replace(self.filled.resolved, cluster=cluster)
        filled = replace(self.filled, resolved=resolved, estimate=estimate_resolved(resolved, self.filled.catalog))
        return Throughput.of(filled, {**self.set, SPOT: cluster.price.is_spot})


class Job:
    """A job that is planned for one kind of machine after the other.

    Args:
        plan: as the user gave it.
        settled: the same where it runs now, with nothing open.
        mode: the mode that fills it.
        payment: how other machines are paid for, as fields of a plan.
    """

    def __init__(
        self,
        plan: Plan,
        settled: Plan,
        mode: ModeName,
        payment: Mapping[str, object],
        catalog: Catalog,
        machine: Machine | None,
    ) -> None:
        self.plan, self.settled, self._mode = plan, settled, mode
        self._catalog, self._machine = catalog, machine
        same: dict[str, object] = {path: settled.value(path) for path in _JOB if plan.value(path) == AUTO}
        paid: dict[str, object] = {path: AUTO for path in (Key.PRICING_USD_PER_HOUR,) if plan.value(path) is not None}
        on_demand: dict[str, object] = {SPOT: False} if plan.pricing.spot else {}
        self._change = {**same, **paid, **on_demand, **payment}

    @property
    def is_replicated(self) -> bool:
        """Whether more machines mean more copies of the model that work apart from each other."""
        return self.plan.is_inference

    def on(self, name: str, devices: int) -> Throughput:
        """Return what the job reaches on so many devices of an instance.

        What the user wrote stays, as far as the job then fits; a layout that does not is left to the mode.
        """
        hardware = {**self._change, NAME: name, DEVICES: devices}
        best: Throughput | None = None
        for opened in self._openings():
            result = self.with_change({**hardware, **opened})
            if best is None or result.fits or (best.filled is None and result.filled is not None):
                best = result
            if best.fits:
                break
        assert best is not None  # noqa: S101 - there is one opening at least
        return best

    def with_change(self, change: Mapping[str, object]) -> Throughput:
        """Return what the job reaches with a change of the user's plan, hardware and its payment included."""
        try:
            plan = edited(self.plan, change, self._catalog).plan
            return Throughput.of(fill(plan, self._mode, self._machine, self._catalog), change)
        except CapacityError as error:
            return Throughput(int(str(change.get(DEVICES, 1))), change, refusal=error.title)

    def cluster(self, reached: Throughput) -> Cluster:
        """Return the devices of what was reached, with their price."""
        if reached.filled is not None:
            return reached.filled.resolved.cluster
        surroundings = {path: reached.set[path] for path in reached.set if path.startswith(("hardware.", "pricing."))}
        plan = edited(self.plan, surroundings, self._catalog).plan
        return resolve_cluster(plan.hardware, plan.pricing, self._catalog, self._machine)

    def _openings(self) -> Iterator[Mapping[str, object]]:
        """Yield the fields that are left to the mode: another machine wants another layout."""
        if self.is_replicated:
            yield {path: AUTO for path in _SERVED_LAYOUT if is_written(self.plan, path)}
            return
        yield {}
        if opened := {path: AUTO for path in memory_searched() if self.plan.value(path) != AUTO}:
            yield opened


NEARLY = 1e-9  # Machines that do the same work as nearly as numbers can tell are enough
_SPARE = 4.0  # Limits that so many times the machines do not keep are kept by no number of them
_MOST = 4096


class Fewest:
    """Finds how many machines a service takes."""

    def __init__(self, on: Callable[[int], Throughput], one: Throughput, wanted: float, *, keeps_limits: bool) -> None:
        self._on, self._wanted, self._keeps_limits = on, wanted, keeps_limits
        self._known = {1: one}

    def from_guess(self, guess: int) -> tuple[int, Throughput]:
        """Return the fewest machines and what they reach; where none keep the limits, the fewest that do the work."""
        low, high = 0, guess
        while not self._is_enough(high):
            if self._is_hopeless(high):
                return self._least(0, high, self._does_work) if self._does_work(high) else (1, self._at(1))
            low, high = high, 2 * high
        if high > 1 and low < high - 1 and not self._is_enough(high - 1):
            return high, self._at(high)
        return self._least(low, high, self._is_enough)

    def _least(self, low: int, high: int, holds: Callable[[int], bool]) -> tuple[int, Throughput]:
        """Return the least number that holds, of one that does not and one that does."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high, self._at(high)

    def _is_enough(self, count: int) -> bool:
        return self._does_work(count) and (self._at(count).fits or not self._keeps_limits)

    def _does_work(self, count: int) -> bool:
        return self._work(count) >= self._wanted * (1.0 - NEARLY)

    def _is_hopeless(self, count: int) -> bool:
        return self._work(count) >= _SPARE * self._wanted or 2 * count > _MOST or self._at(count).filled is None

    def _work(self, count: int) -> float:
        work = self._at(count).work
        return 0.0 if work is None else mean(work.value)

    def _at(self, count: int) -> Throughput:
        if count not in self._known:
            self._known[count] = self._on(count)
        return self._known[count]
