"""Jobs with deadlines on a fleet: against every possible schedule where there are few, and against bounds where not."""

from __future__ import annotations

import json
import re
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import read_yaml
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.fleet import Schedule, folder_entries, schedule
from capacity_tui.engine.fleet.schedule import best_schedule
from capacity_tui.engine.fleet.schedule_entries import Entries
from capacity_tui.engine.fleet.schedule_problem import Problem, Task, Timetable, lower_bounds, placed_in_order
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.fleet import schedule_as_dict, schedule_parts
from capacity_tui.tui.cli import main

HOUR = 3600.0
FILE = """
fleet:
  - {instance: lambda-gpu-8x-h100-sxm5, count: 2, name: lambda}
  - {instance: aws-p5-48xlarge, free_from: 2h}
jobs:
  - {name: tables, time: 3h, earliest: 1h, deadline: 5h}
  - {name: check, time: 30min, machines: 2, deadline: 4h}
  - {name: train, plan: small, deadline: 1min, priority: 3}
"""
SMALL = {
    "model": {"name": "gpt2"},
    "training": {"tokens": 1e9, "micro_batch": 8, "method": "full"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 8},
}


def read(_: str) -> object:
    return plan_from_data(SMALL)


def scheduled(text: str) -> Schedule:
    return schedule(Entries(read_yaml(text, "jobs.yaml")), read)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Schedule:
    return scheduled(FILE)


def problem_of(seconds: list[tuple[float, ...]], kinds: tuple[int, ...], **others: list[float]) -> Problem:
    tasks = tuple(
        Task(
            each,
            int(others.get("machines", [1] * 99)[number]),
            others.get("earliest", [0.0] * 99)[number],
            others.get("deadline", [np.inf] * 99)[number],
        )
        for number, each in enumerate(seconds)
    )
    return Problem(tasks, kinds, (0.0,) * len(kinds), (1.0,) * (max(kinds) + 1))


def best_of_all(problem: Problem) -> tuple[float, float, float]:
    """Return the score of the best of all orders on all kinds of machines."""
    possible = [[kind for kind, each in enumerate(task.seconds) if np.isfinite(each)] for task in problem.tasks]
    orders = permutations(range(len(problem.tasks)))
    return min(placed_in_order(problem, order, wanted).score for order in orders for wanted in product(*possible))


def test_longest_jobs_first_balance_two_machines() -> None:
    problem = problem_of([(each,) for each in (7.0, 6.0, 5.0, 4.0, 2.0)], (0, 0))
    assert best_schedule(problem).timetable.makespan == 12.0 == lower_bounds(problem).makespan


def test_the_earliest_deadline_goes_first_where_one_machine_has_to_do() -> None:
    problem = problem_of([(4.0,), (2.0,), (1.0,)], (0,), deadline=[7.0, 6.0, 1.0])
    found = best_schedule(problem).timetable
    assert found.lateness == 0.0
    assert min(found.placed, key=lambda each: each.start).task == 2


def test_a_job_of_two_machines_waits_for_both_and_others_fill_the_gap() -> None:
    problem = problem_of([(3.0,), (2.0,), (3.0,)], (0, 0), machines=[1, 2, 1])
    found = best_schedule(problem).timetable
    assert found.makespan == 5.0 == lower_bounds(problem).makespan, "3 + 2 x 2 + 3 seconds of machines, on two"
    both = next(each for each in found.placed if each.task == 1)
    assert len(both.machines) == 2


def test_jobs_share_a_machine_and_what_others_have_of_it_comes_back() -> None:
    halves = tuple(Task((2.0,), shares=(share,)) for share in (0.5, 0.5, 0.25))
    whole = Problem(halves, (0,), (0.0,), (4.0,))
    assert [(each.start, each.end) for each in placed_in_order(whole, (0, 1, 2), (None,) * 3).placed] == [
        (0.0, 2.0),
        (0.0, 2.0),
        (2.0, 4.0),
    ]
    assert placed_in_order(whole, (0,), (None,)).usd == 4.0
    shared = Problem(halves, (0, 0), (0.0, 0.0), (4.0,), ((0.75, 5.0), (1.0, np.inf)))
    starts = {each.task: (each.start, each.machines) for each in placed_in_order(shared, (0, 2), (None,) * 3).placed}
    assert starts == {0: (5.0, (0,)), 2: (0.0, (0,))}, "a quarter fits beside the others, half waits for them"


def test_a_folder_of_plans_is_a_queue_on_what_is_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, devices in (("four", 4), ("nine", 9), ("sixteen", 16), ("two", 2)):
        (tmp_path / f"{name}.yaml").write_text(
            str({**SMALL, "hardware": {"name": "h100-sxm-80gb", "devices": devices}})
        )
    (tmp_path / "notes.txt").write_text("no plan")
    entries = folder_entries(
        tmp_path, lambda: [{"instance": "h100-sxm-80gb", "devices": 8, "taken": [5, 8], "count": 2}]
    )
    found = schedule(entries, lambda name: plan_from_data(read_yaml(tmp_path / name).data))  # type: ignore[arg-type]
    assert {job.name: job.machines for job in found.jobs} == dict.fromkeys(("two",), ("h100-sxm-80gb 1",))
    assert {name for name, _ in found.left_out} == {"four", "nine", "sixteen"}
    assert found.first_start == 0.0
    (tmp_path / "queue.yaml").write_text(
        "fleet: [{instance: h100-sxm-80gb, devices: 8, count: 2}]\n"
        "jobs: [{plan: two.yaml, name: first, priority: 9, deadline: 1s}]\n"
    )
    assert main(["fleet", "schedule", str(tmp_path), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {job["name"]: len(job["machines"]) for job in said["jobs"]} == {
        "first": 1,
        "four": 1,
        "nine": 2,
        "sixteen": 2,
    }
    assert not said["left_out"]
    assert main(["fleet", "schedule", str(tmp_path), "--check"]) == 1
    for file in tmp_path.iterdir():
        file.unlink()
    assert main(["fleet", "schedule", str(tmp_path), "--cluster", "none"]) == 2


def test_a_file_of_a_queue_that_is_no_plan_is_named_and_the_others_are_scheduled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queue.yaml").write_text(
        "fleet: [{instance: h100-sxm-80gb, devices: 8, count: 2}]\njobs:\n- {plan: gone.yaml}\n- {plan: bad.yaml}\n"
        f"- {{plan: {SMALL}, name: inside}}\n"
    )
    (tmp_path / "good.yaml").write_text(str(SMALL))
    bad = {"bad.yaml": b"model: {name: gpt2", "binary.yaml": b"\x00\xff\x81" * 99, "empty.yaml": b""}
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    assert main(["fleet", "schedule", str(tmp_path), "--format", "json"]) == 2
    said = capsys.readouterr()
    assert {job["name"] for job in json.loads(said.out)["jobs"]} == {"good", "inside"}
    lines = said.err.splitlines()
    assert len(lines) == 4
    assert "queue.yaml:3: jobs.0: gone.yaml: " in said.err
    for name in bad:
        assert sum(f"{tmp_path / name}:" in line for line in lines) == 1
    (tmp_path / "good.yaml").unlink()
    (tmp_path / "queue.yaml").write_text((tmp_path / "queue.yaml").read_text().rsplit("\n- ", 1)[0])
    assert main(["fleet", "schedule", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 4)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5), st.integers(2, 20)), min_size=2, max_size=4
    ),
    st.booleans(),
)
def test_few_jobs_are_scheduled_as_well_as_any_order_does(jobs: list[tuple[int, ...]], wide: bool) -> None:
    problem = problem_of(
        [(float(one), float(other)) for one, other, *_ in jobs],
        (0, 0, 1),
        machines=[2 if wide and number == 0 else 1 for number in range(len(jobs))],
        earliest=[float(each[2]) for each in jobs],
        deadline=[float(each[3]) for each in jobs],
    )
    if wide:
        tasks = (Task((problem.tasks[0].seconds[0], np.inf), 2, *(problem.tasks[0].earliest, 9.0)), *problem.tasks[1:])
        problem = Problem(tasks, problem.kinds, problem.free_from, problem.usd_per_second)
    found, best = best_schedule(problem).timetable, best_of_all(problem)
    assert found.score[0] == pytest.approx(best[0])
    assert found.score[1] <= best[1] * 1.25 + 1e-9
    bounds = lower_bounds(problem)
    assert bounds.lateness <= best[0] + 1e-9
    assert bounds.makespan <= found.makespan + 1e-9
    assert bounds.usd <= found.usd + 1e-9
    assert_possible(problem, found)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 10.0), st.integers(1, 3)), min_size=1, max_size=8), st.integers(3, 4))
def test_bounds_hold_and_list_scheduling_stays_near_them(jobs: list[tuple[float, int]], machines: int) -> None:
    problem = problem_of([(each,) for each, _ in jobs], (0,) * machines, machines=[float(wide) for _, wide in jobs])
    found, bounds = best_schedule(problem).timetable, lower_bounds(problem)
    assert bounds.makespan <= found.makespan + 1e-9
    # Garey and Graham 1975: a list of jobs that take several machines ends within twice the best.
    assert found.makespan <= 2.0 * bounds.makespan + 10.0
    assert_possible(problem, found)


def assert_possible(problem: Problem, found: Timetable) -> None:
    """No machine has two jobs at once, and none begins before it may."""
    assert sorted(each.task for each in found.placed) == list(range(len(problem.tasks)))
    for each in found.placed:
        task = problem.tasks[each.task]
        assert each.start >= task.earliest
        assert each.end == pytest.approx(each.start + task.seconds[each.kind])
        assert len(set(each.machines)) == task.machines
        assert {problem.kinds[machine] for machine in each.machines} == {each.kind}
        for other in found.placed:
            if other is not each and set(other.machines) & set(each.machines):
                assert other.end <= each.start + 1e-9 or each.end <= other.start + 1e-9


def test_a_file_becomes_times_machines_costs_and_what_is_late(found: Schedule) -> None:
    jobs = {job.name: job for job in found.jobs}
    tables, check, train = jobs["tables"], jobs["check"], jobs["train"]
    assert tables.start >= HOUR and tables.end.value - tables.start == pytest.approx(3 * HOUR)
    assert len(check.machines) == 2 and check.instance == "lambda-gpu-8x-h100-sxm5"
    # Training a model of that size takes longer than a minute on anything: the lateness is told, and no bound is above.
    assert [job.name for job in found.missed] == ["train"]
    assert train.late_seconds == pytest.approx(train.end.value - 60.0)
    assert 0 < found.bounds.lateness <= found.late_seconds + 1e-6
    assert found.usd == pytest.approx(sum(job.usd or 0.0 for job in found.jobs))
    assert found.usd <= (found.fleet_usd or 0.0)
    assert train.end.low <= train.end.value <= train.end.high


def test_a_schedule_is_told_for_scripts_and_for_people(found: Schedule) -> None:
    data = schedule_as_dict(found)
    assert {"jobs", "makespan_seconds", "usd", "missed", "lower_bound"} <= data.keys()
    text = "\n".join(map(str, schedule_parts(found)))
    assert "1 of 3 deadlines missed" in text and "train is" in text and "lambda 1" in text


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (("time: 3h", "time: 3 parsecs"), 6, "24h"),
        (("earliest: 1h", "earlist: 1h"), 6, "earliest"),
        (("machines: 2", "machines: 0"), 7, "greater than 0"),
        (("plan: small", "name: x"), 8, "given twice"),
        (("count: 2", "count: many"), 3, "integer"),
        (("jobs:", "task:"), 5, "task"),
        (("time: 30min", "only_on: [mars], time: 1h"), 7, "mars"),
        (("aws-p5-48xlarge", "aws-p99"), 4, "aws-p99"),
        (("machines: 2", "machines: 9"), 7, "runs on none"),
        (("name: check", "plan: small, name: check"), 7, "both plan and time"),
    ],
)
def test_a_fault_of_the_file_is_named_with_its_line(change: tuple[str, str], line: int, said: str) -> None:
    with pytest.raises(CapacityError, match=said) as fault:
        scheduled(FILE.replace(*change))
    errors = [fault.value, *(fault.value.further if isinstance(fault.value, PlanError) else ())]
    assert any(each.place.line == line and said in each.one_line() for each in errors)


def test_the_example_of_the_page_is_scheduled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text("utf-8")
    text = re.search(r"```yaml\n(fleet:.*?)```", page, re.DOTALL)
    assert text is not None
    file = tmp_path / "night.yaml"
    file.write_text(text[1])
    assert main(["fleet", "schedule", str(file), "--check"]) == 0
    told = capsys.readouterr().out
    assert "every deadline is kept" in told
    assert "cost:" in told
