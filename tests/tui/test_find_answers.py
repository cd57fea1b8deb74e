"""Searches of the real engine as the screen shows them."""

from __future__ import annotations

import pytest
from flow import burst, cells, once, press, settle, shown

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.settings import Settings
from capacity_tui.tui.shown.comparison import HardwareRow
from capacity_tui.tui.shown.results import Results
from capacity_tui.tui.views.find.screen import FindScreen, SearchQuestion, limits_of, parts_asked, parts_limited

PLAN = """
model: {name: llama-3.2-1b}
training: {tokens: 1e9, micro_batch: auto, seq_len: 2048}
hardware: {name: h100-sxm-80gb, devices: 8}
"""
SMALL = {"hardware": "h100-sxm-80gb,a100-sxm-80gb", "devices": "4..8"}


class StillCapacityEngine(CapacityEngine):
    """The real engine on no machine in particular."""

    def detect(self) -> tuple[HardwareRow, ...]:
        return ()


@pytest.fixture(scope="module")
def engine() -> StillCapacityEngine:  # type: ignore[override]
    return StillCapacityEngine()


def asked(engine: CapacityEngine, **given: str) -> SearchQuestion:
    return engine.open(PLAN).question({**SMALL, **given})


def answered(question: SearchQuestion) -> Results:
    return question.answer(lambda _: None, lambda: False)


def numbers(results: Results, title: str) -> list[float | None]:
    place = [column.title for column in results.columns].index(title)
    return [row.cells[place].number for row in results.rows]


def test_rows_are_in_the_order_of_the_goal_and_keep_the_limits(engine: CapacityEngine) -> None:
    results = answered(asked(engine, usd="30"))
    costs = numbers(results, "cost")
    assert costs[0] == min(costs)
    assert max(costs) < 30
    assert results.evaluated > results.fitting > len(results.rows)
    assert [column.title for column in results.columns[:3]] == ["hardware", "n", "layout"]
    assert results.is_complete
    assert results.excluded


def test_a_row_takes_the_plan_to_what_it_says(engine: CapacityEngine) -> None:
    results = answered(asked(engine))
    row, heads = results.rows[0], [column.title for column in results.columns]
    column = engine.open(PLAN).changed(row.change).compare().columns[0]
    assert [headline.text for headline in column.headlines][:2] == [
        row.cells[heads.index(name)].text for name in ("time", "cost")
    ]


def test_rows_of_the_front_have_no_better_and_others_say_which_is(engine: CapacityEngine) -> None:
    results = answered(asked(engine))
    time, cost = numbers(results, "time"), numbers(results, "cost")
    for place, row in enumerate(results.rows):
        better = [other for other in range(len(time)) if time[other] < time[place] and cost[other] < cost[place]]
        assert not (place in results.front and better)
        if row.surpassed is not None:
            assert time[row.surpassed] <= time[place]
            assert cost[row.surpassed] <= cost[place]


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("time", "soon", "soon"),
        ("limits", "memory", "memory"),
        ("limits", "beauty<=3", "beauty"),
        ("vary", "training.seq_len", "not an axis"),
        ("devices", "many", "many"),
        ("solve", "beauty", "beauty"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_words(engine: CapacityEngine, key: str, text: str, told: str) -> None:
    with pytest.raises(CapacityError) as refused:
        asked(engine).edited(key, text)
    assert told in refused.value.one_line()
    assert told in refused.value.in_place()


def test_the_command_says_all_of_the_question(engine: CapacityEngine) -> None:
    question = asked(engine, goal="fastest", usd="50", limits="memory<=90%, mfu >= 20%", vary="seq_len=1k,2k")
    command = question.command()
    assert command.startswith("capacity-tui search --model llama-3.2-1b --gpu 8xh100-sxm-80gb --seq 2048 --tokens")
    for words in (
        "--goal time",
        "--limit 'usd<=50' --limit 'memory<=90%' --limit 'mfu>=20%'",
        "--hardware h100-sxm-80gb,a100-sxm-80gb --devices 4..8",
        "--each 1",
        "--vary seq_len=1k,2k",
    ):
        assert words in command


def test_the_command_says_a_limit_of_the_plan_once(engine: CapacityEngine) -> None:
    limited = engine.open(PLAN).changed({"limits.usd": 50.0, "limits.seconds": 7200.0})
    command = limited.question({}).command()
    assert "--limit 'time<=2h' --limit 'usd<=50'" in command
    assert "limits." not in command
    # One that is asked otherwise stands beside that of the plan, which holds too.
    assert "--set limits.usd=50 " in f"{limited.question({'usd': '80'}).command()} "


def test_a_plans_limit_of_whole_requests_is_part_of_the_question(engine: CapacityEngine) -> None:
    served = {"task": "infer", "inference.request_seconds": 8.0}
    for load, figure in (({"inference.concurrency": 4}, "infer.request_seconds"), ({}, "computation.step_seconds")):
        parts = {part.key: part.text for part in engine.open(PLAN).changed({**served, **load}).question({}).fields()}
        assert f"{figure}<=8s" in parts["limits"]


def test_a_question_turned_round_gives_the_value_and_what_the_next_one_breaks(engine: CapacityEngine) -> None:
    question = engine.open(PLAN).question({"solve": "devices", "time": "4h"})
    shares: list[float] = []
    results = question.answer(lambda so_far: shares.append(so_far.share), lambda: False)
    assert 0.0 < shares[0] < 1.0
    held, beyond = results.rows
    assert held.verdict is Verdict.FITS
    assert beyond.verdict is Verdict.MISSES_LIMIT
    assert numbers(results, "n") == [held.change["hardware.devices"], held.change["hardware.devices"] - 1]
    assert numbers(results, "time")[0] < 4 * 3600
    assert beyond.about[0].startswith(f"next Devices {beyond.change['hardware.devices']}: training time")
    assert "capacity-tui need " in question.command()
    assert "--solve devices --limit 'time<=4h'" in question.command()


def test_a_search_that_is_stopped_returns_the_best_so_far(engine: CapacityEngine) -> None:
    asks = iter([False, False, *[True] * 1000])
    results = asked(engine).answer(lambda _: None, lambda: next(asks))
    assert not results.is_complete
    assert results.share < 1


async def test_opening_taking_and_pinning_with_the_real_engine(engine: CapacityEngine) -> None:
    app = CapacityApp(source=PLAN, engine=lambda: engine, settings=Settings(hint=False, start=False))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        burst(app, "space", "f", "tab", *"lll", "backspace")  # what was begun is not waited for
        await once(pilot, lambda: isinstance(app.screen, FindScreen) and app.screen.form.cursor == 3)
        await once(pilot, lambda: not app.has_keys)
        for key, text in SMALL.items():
            app.screen._edit(key, text)
        await settle(pilot)
        assert "h100-sxm-80gb" in shown(pilot, "found")
        before = shown(pilot, "answer")
        await press(pilot, "tab", "enter")
        assert shown(pilot, "answer") != before
        await press(pilot, "P", "u", "u")
        assert shown(pilot, "answer") == before
    assert not app.mistakes


def test_every_limit_of_a_line_becomes_a_part_of_the_question() -> None:
    limits = ("time<=30d", "cost.usd_per_hour<=20", "memory<=80%")
    assert limits_of(parts_limited(limits)) == limits


def test_a_line_that_asks_for_one_of_a_family_is_solved_within_it(engine: CapacityEngine) -> None:
    planned = plan_of_line(read_line("largest gemma 3 i can qlora on a 4090, 10k samples"))
    parts = parts_asked(planned.asked, planned.plan)
    assert set(parts["models"].split(",")) == {"gemma-3-27b", "gemma-3-12b", "gemma-3-4b", "gemma-3-1b", "gemma-3-270m"}


async def test_what_was_assumed_of_a_question_stands_in_the_view_that_answers_it(engine: CapacityEngine) -> None:
    """Its memory among that: the search itself may hold the plan by other means than the line says."""
    app = CapacityApp(source=PLAN, engine=lambda: engine, settings=Settings(hint=False, start=False))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        document, assumed = engine.plan_of_line(
            "how much vram for lora llama-3.2-1b batch 4", app.session.store.document
        )
        assert any(entry.startswith("memory: ") for entry in assumed)
        app.session.take_up(document, None, assumed)
        await once(pilot, lambda: isinstance(app.screen, FindScreen))
        await once(pilot, lambda: any("assumed: memory: " in "".join(one.text for one in row) for row in cells(app)))
    assert not app.mistakes
