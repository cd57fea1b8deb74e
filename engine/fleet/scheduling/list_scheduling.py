"""A good order of jobs: the usual rules of list scheduling, improved by moving jobs as long as that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.fleet.scheduling.bounds import lower_bounds
from capacity_tui.engine.fleet.scheduling.problem import Problem, Task, Timetable, placed_in_order

# Schedules that are tried at most, and jobs times schedules: many jobs take longer each.
MOST_TRIED, MOST_PLACED = 3000, 60_000
# Schedules that are tried for each job after the last that was better.
PATIENCE = 40


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of the jobs, the kinds of machines that some must take, and the schedule it makes."""

    order: tuple[int, ...]
    wanted: tuple[int | None, ...]
    timetable: Timetable
    tried: int = 1


def best_schedule(problem: Problem, seed: int = 1) -> Ordered:
    """Return the best schedule that was found.

    The rules go first: earliest deadline, longest job, least slack, highest priority, shortest job, earliest start. The
    best of them is then improved: jobs change places, go elsewhere in the order, or take another kind of machine.

    Args:
        problem: jobs and machines; each job runs on a kind that has enough machines for it.
        seed: of the random numbers.
    """
    count = len(problem.tasks)
    free: tuple[int | None, ...] = (None,) * count
    ordered = [_made(problem, order, free) for order in _rules(problem)]
    best = min(ordered, key=lambda each: each.timetable.score)
    bounds = lower_bounds(problem)
    least = (bounds.lateness, bounds.makespan, bounds.usd)
    draw = np.random.default_rng(seed)
    tried, better = len(ordered), len(ordered)
    while tried < min(MOST_TRIED, MOST_PLACED // count) and tried - better < PATIENCE * count:
        if np.allclose(best.timetable.score, least):
            break
        changed = _changed(problem, best, draw)
        tried += 1
        if changed.timetable.score < best.timetable.score:
            better = tried
        if changed.timetable.score <= best.timetable.score:
            best = changed
    return replace(best, tried=tried)


def _made(problem: Problem, order: Sequence[int], wanted: tuple[int | None, ...]) -> Ordered:
    return Ordered(tuple(order), wanted, placed_in_order(problem, order, wanted))


def _rules(problem: Problem) -> Iterator[list[int]]:
    """Yield the orders of the usual rules."""

    def shortest(task: Task) -> float:
        return min(task.seconds)

    tasks = problem.tasks
    numbers = range(len(tasks))
    yield sorted(numbers, key=lambda each: (tasks[each].deadline, -shortest(tasks[each])))
    yield sorted(numbers, key=lambda each: -shortest(tasks[each]) * tasks[each].machines)
    yield sorted(numbers, key=lambda each: tasks[each].deadline - shortest(tasks[each]))
    yield sorted(numbers, key=lambda each: (-tasks[each].priority, tasks[each].deadline))
    yield sorted(numbers, key=lambda each: shortest(tasks[each]) / tasks[each].priority)
    yield sorted(numbers, key=lambda each: (tasks[each].earliest, tasks[each].deadline))


def _kinds(problem: Problem) -> int:
    return len(problem.usd_per_second)


def _changed(problem: Problem, best: Ordered, draw: np.random.Generator) -> Ordered:
    """Return an order with one change."""
    order, wanted = list(best.order), list(best.wanted)
    one, other = (int(each) for each in draw.integers(len(order), size=2))
    way = int(draw.integers(3))
    if way == 0 and _kinds(problem) > 1:
        possible = [kind for kind, seconds in enumerate(problem.tasks[one].seconds) if np.isfinite(seconds)]
        choices: list[int | None] = [None, *possible]
        wanted[one] = choices[int(draw.integers(len(choices)))]
    elif way == 1:
        order[one], order[other] = order[other], order[one]
    else:
        order.insert(other, order.pop(one))
    return _made(problem, order, tuple(wanted))
