"""Jobs and machines as numbers, and the schedule that an order of the jobs makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Task:
    """A job as the scheduler sees it.

    Attributes:
        seconds: of the job on machines of each kind; infinite where it does not run.
        machines: machines of one kind that it takes at once.
        earliest: seconds from now until it may begin.
        deadline: seconds from now until it should have ended; infinite without one.
        priority: what a second of lateness counts.
    """

    seconds: tuple[float, ...]
    machines: int = 1
    earliest: float = 0.0
    deadline: float = np.inf
    priority: float = 1.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be scheduled.

    Attributes:
        tasks: the jobs.
        kinds: kind of each machine, by number.
        free_from: seconds from now until each machine is free.
        usd_per_second: of a machine of each kind; 0 where no price is known.
    """

    tasks: tuple[Task, ...]
    kinds: tuple[int, ...]
    free_from: tuple[float, ...]
    usd_per_second: tuple[float, ...]

    def of_kind(self, kind: int) -> list[int]:
        """Return the machines of a kind."""
        return [machine for machine, own in enumerate(self.kinds) if own == kind]


@dataclass(frozen=True, slots=True)
class Placed:
    """A job with its machines and its time.

    Attributes:
        task: number of the job.
        kind: kind of its machines.
        machines: their numbers.
        start, end: seconds from now.
    """

    task: int
    kind: int
    machines: tuple[int, ...]
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule, with what it is judged by.

    Attributes:
        placed: the jobs in the order in which they were placed.
        lateness: seconds after deadlines, each times its job's priority.
        makespan: seconds until the last job has ended.
        usd: price of the time in which jobs hold machines.
    """

    placed: tuple[Placed, ...]
    lateness: float
    makespan: float
    usd: float

    @property
    def score(self) -> tuple[float, float, float]:
        """What is least in the best schedule: lateness first, then the end of it all, then its price."""
        return self.lateness, self.makespan, self.usd


def placed_in_order(problem: Problem, order: Sequence[int], wanted: Sequence[int | None]) -> Timetable:
    """Return the schedule in which each job of an order begins as early as those before it let it.

    Gaps that they left are filled. A job goes to the kind of machine on which it ends first, the cheaper of equals,
    unless a kind is wanted for it.

    Args:
        problem: jobs and machines.
        order: numbers of the jobs.
        wanted: the kind that each job has to take; None for any.
    """
    busy: list[list[tuple[float, float]]] = [[] for _ in problem.kinds]
    placed: list[Placed] = []
    for number in order:
        task = problem.tasks[number]
        kinds = range(len(task.seconds)) if wanted[number] is None else (wanted[number],)
        options = [
            (start + task.seconds[kind], task.seconds[kind] * problem.usd_per_second[kind], start, kind, machines)
            for kind in kinds
            if kind is not None and np.isfinite(task.seconds[kind])
            for start, machines in [_earliest(problem, busy, task, kind)]
            if machines
        ]
        end, _, start, kind, machines = min(options)
        for machine in machines:
            busy[machine].append((start, end))
            busy[machine].sort()
        placed.append(Placed(number, kind, machines, start, end))
    return judged(problem, placed)


def judged(problem: Problem, placed: Sequence[Placed]) -> Timetable:
    """Return placed jobs with what their schedule is judged by."""
    late = sum(
        max(each.end - problem.tasks[each.task].deadline, 0.0) * problem.tasks[each.task].priority for each in placed
    )
    usd = sum((each.end - each.start) * len(each.machines) * problem.usd_per_second[each.kind] for each in placed)
    return Timetable(tuple(placed), late, max((each.end for each in placed), default=0.0), usd)


def _earliest(
    problem: Problem, busy: Sequence[Sequence[tuple[float, float]]], task: Task, kind: int
) -> tuple[float, tuple[int, ...]]:
    """Return when a job may begin on machines of a kind, and on which; none where there are too few of them."""
    machines, seconds = problem.of_kind(kind), task.seconds[kind]
    ready = {machine: max(problem.free_from[machine], task.earliest) for machine in machines}
    starts = {*ready.values(), *(end for machine in machines for _, end in busy[machine] if end > task.earliest)}
    for start in sorted(starts):
        free = [
            machine
            for machine in machines
            if ready[machine] <= start and all(end <= start or begin >= start + seconds for begin, end in busy[machine])
        ]
        if len(free) >= task.machines:
            return start, tuple(free[: task.machines])
    return np.inf, ()
