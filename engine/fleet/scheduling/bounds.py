"""What no schedule can be better than: an end that no order reaches earlier, and lateness that none avoids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.fleet.scheduling.problem import Problem, Task


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no schedule is better than.

    Attributes:
        makespan: seconds until all jobs can have ended.
        lateness: seconds after deadlines that cannot be avoided, each times its job's priority.
        usd: price of each job on the machines on which it is cheapest.
    """

    makespan: float
    lateness: float
    usd: float


def lower_bounds(problem: Problem) -> Bounds:
    """Return what no schedule of the jobs is better than.

    All work needs room on the machines from when it may begin; and no job ends before its own shortest time has passed.
    """
    tasks = problem.tasks
    alone = [_alone(problem, task) for task in tasks]
    begins = sorted({task.earliest for task in tasks})
    rooms = [_room(problem, [task for task in tasks if task.earliest >= begin], begin) for begin in begins]
    late = sum(max(end - task.deadline, 0.0) * task.priority for task, end in zip(tasks, alone, strict=True))
    usd = sum(
        min(
            seconds * task.machines * rate
            for seconds, rate in zip(task.seconds, problem.usd_per_second, strict=True)
            if np.isfinite(seconds)
        )
        for task in tasks
    )
    return Bounds(max([*alone, *rooms], default=0.0), max(late, _crowded(problem)), usd)


def _alone(problem: Problem, task: Task) -> float:
    """Return when a job ends that has all machines for itself."""
    ends = []
    for kind, seconds in enumerate(task.seconds):
        free = sorted(max(problem.free_from[machine], task.earliest) for machine in problem.of_kind(kind))
        if np.isfinite(seconds) and len(free) >= task.machines:
            ends.append(free[task.machines - 1] + seconds)
    return min(ends, default=np.inf)


def _work(tasks: Iterable[Task]) -> float:
    """Return the least time that some jobs hold machines in all."""
    return sum(min(task.seconds) * task.machines for task in tasks)


def _room(problem: Problem, tasks: Sequence[Task], begin: float) -> float:
    """Return when the machines have had room for some jobs, none of which begins before a moment."""
    free, left = sorted(max(each, begin) for each in problem.free_from), _work(tasks)
    for number, (since, until) in enumerate(zip(free, [*free[1:], np.inf], strict=True), start=1):
        room = (until - since) * number
        if room >= left:
            return float(since + left / number)
        left -= room
    return float("inf")


def _crowded(problem: Problem) -> float:
    """Return lateness that follows from too many jobs before one deadline: the last of them ends no earlier."""
    worst = 0.0
    for deadline in {task.deadline for task in problem.tasks if np.isfinite(task.deadline)}:
        due = [task for task in problem.tasks if task.deadline <= deadline]
        end = _room(problem, due, min(task.earliest for task in due))
        worst = max(worst, (end - deadline) * min(task.priority for task in due))
    return worst
