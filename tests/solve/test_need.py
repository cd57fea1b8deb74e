"""Questions asked backwards: the answer keeps the limits, the next value does not, and nothing better was missed."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.present import needed_as_dict
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.solve.need import answer_line_question, need
from capacity_tui.engine.solve.need.bounds import TIME, Bounds
from capacity_tui.engine.solve.search import Question, parse_axis, parse_goal, parse_limit
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

FACTS = load_catalog()
MOST = "memory.utilization_percent"
TRAINED = plan_from_data(
    {
        "model": {"name": "llama-3.2-1b"},
        "training": {"seq_len": 4096, "global_batch": 64, "tokens": 1e9, "micro_batch": 2, "checkpointing": "full"},
        "parallelism": {"zero": 1},
        "hardware": {"name": "a100-sxm-80gb", "devices": 8},
    }
)
SERVED_DATA = {
    "task": "infer",
    "model": {"name": "llama-3.1-8b"},
    "inference": {"batch": 16, "output_tokens": 512, "engine": "vllm"},
    "hardware": {"name": "l40s", "devices": 1},
}
SERVED = plan_from_data(SERVED_DATA)


def asked(plan, solve, *limits, goal=None, **more):
    found = tuple(parse_limit(text, plan.task) for text in limits)
    wanted = None if goal is None else parse_goal(goal, plan.task)
    return need(Question(plan, limits=found, goal=wanted, **more), solve, catalog=FACTS)


def far_end(estimate, key):
    value = figure(estimate, key).value
    return None if value is None else mean(value.high if isinstance(value, Interval) else value)


def holds(plan, change, *limits):
    """Whether a changed plan keeps limits, by an estimate of its own."""
    try:
        estimate = fill(edited(plan, change, FACTS).plan, "balanced", catalog=FACTS).estimate
    except CapacityError:
        return False
    ends = [(far_end(estimate, limit.figure), limit.most) for limit in (parse_limit(text) for text in limits)]
    return estimate.verdict is not Verdict.DOES_NOT_FIT and all(end is not None and end <= most for end, most in ends)


def test_the_fewest_devices_are_those_that_trying_every_number_finds():
    limits = ("time<=3h", "memory<=100%")
    found = asked(TRAINED, "hardware.devices", *limits)
    # Beyond one node, whole nodes are rented.
    counts = [*range(1, 9), 16, 24, 32]
    by_hand = [count for count in counts if holds(TRAINED, {"hardware.devices": count}, *limits)]
    assert found.value == by_hand[0] and 1 < by_hand[0] < 24
    assert found.neighbour is not None and found.value_of(found.neighbour) == counts[counts.index(by_hand[0]) - 1]
    assert found.binding == "computation.estimated_train_time_seconds"


def test_the_longest_prompt_is_the_one_that_a_plan_tells_of():
    found = asked(SERVED, "inference.prompt_tokens")
    told = figure(answer(SERVED, catalog=FACTS).estimate, "inference.longest_context").number
    assert found.value + 512 == told
    assert not found.neighbour.holds and found.value_of(found.neighbour) == found.value + 1


def test_a_context_ends_where_the_model_reads_no_more():
    small = edited(SERVED, {"inference.batch": 1, "hardware.name": "h200-sxm-141gb"}, FACTS).plan
    found = asked(small, "inference.prompt_tokens")
    assert found.value == FACTS.architectures["llama-3.1-8b"].max_context - 512
    assert (found.neighbour, found.binding) == (None, "model.max_context")


def test_layers_on_a_device_end_with_those_of_the_model():
    small = edited(SERVED, {"inference.batch": 1, "inference.engine": "llamacpp", "hardware.name": "rtx-4090"}, FACTS)
    found = asked(edited(small.plan, {"inference.weights": "q4_0"}, FACTS).plan, "inference.gpu_layers")
    assert (found.value, found.binding) == (32, "model.spec.layers")


@settings(max_examples=4, deadline=None)
@given(
    hours=st.floats(0.3, 30),
    usd=st.floats(5, 400),
    path=st.sampled_from(["hardware.devices", "training.tokens", "training.seq_len", "training.micro_batch"]),
)
@example(26.9, 400.0, "hardware.devices")
def test_an_answer_holds_and_its_neighbour_fails(hours, usd, path):
    limits = (f"time<={hours:.3g}h", f"usd<={usd:.3g}")
    found = asked(TRAINED, path, *limits)
    if found.best is None:
        assert found.nearest is not None and found.nearest.violations
        return
    assert holds(TRAINED, found.best.change, *limits)
    if found.neighbour is not None:
        assert not holds(TRAINED, found.neighbour.change, *limits)
        keys = {"computation.estimated_train_time_seconds", "cost.usd", "memory.reserved_bytes"}
        # A value may also end where there is no such plan, as with fewer sequences than replicas.
        assert found.binding in keys if found.neighbour.violations else found.neighbour.fault


def test_tokens_for_a_budget_are_as_many_as_it_pays():
    found = asked(TRAINED, "training.tokens", "usd<=20")
    cost = far_end(found.best.filled.estimate, "cost.usd")
    assert 19.8 < cost <= 20.0
    assert found.binding == "cost.usd"


def test_a_goal_decides_between_values_that_hold():
    fewest = asked(TRAINED, "hardware.devices", "time<=10h", "usd<=60")
    fastest = asked(TRAINED, "hardware.devices", "time<=10h", "usd<=60", goal="time")
    assert fastest.value > fewest.value
    assert fastest.neighbour is None or "cost.usd" in {each.key for each in fastest.neighbour.violations}


OPEN = plan_from_data(
    {"model": {"name": "llama-3.2-1b"}, "training": {"tokens": 1e9}, "hardware": {"name": "a100-sxm-80gb"}}
)


def test_a_budget_beside_a_deadline_buys_no_more_devices_than_the_deadline_needs():
    assert asked(TRAINED, "hardware.devices", "time<=1000h", "usd<=60").value == 1
    budget = asked(OPEN, "hardware.devices", "usd<=100")
    assert budget.value > 1 and budget.binding == "cost.usd"
    assert asked(OPEN, "hardware.devices", "usd<=100", "time<=24h").value < budget.value


def test_the_cheapest_device_is_that_of_trying_each():
    names = ("l4", "l40s", "a100-sxm-80gb", "a10g", "h100-sxm-80gb", "rtx-4090")
    limits = ("time<=30h",)
    found = asked(TRAINED, "hardware.name", *limits, goal="usd", hardware=names)
    costs = {}
    for name in names:
        if holds(TRAINED, {"hardware.name": name, "hardware.devices": 8}, *limits):
            plan = edited(TRAINED, {"hardware.name": name}, FACTS).plan
            cost = figure(fill(plan, "balanced", catalog=FACTS).estimate, "cost.usd").number
            costs.update({} if cost is None else {name: cost})
    assert found.value == min(costs, key=costs.get)


def test_the_largest_model_is_that_of_trying_each():
    names = ("llama-3.1-8b", "gpt2-small", "tinyllama-1.1b", "qwen2.5-3b", "llama-3.2-1b", "qwen2.5-0.5b")
    limits = ("usd<=60",)
    found = asked(TRAINED, "model.parameters", *limits, models=names)
    sizes = {name: FACTS.architectures[name].params_total for name in names}
    fitting = [name for name in names if holds(TRAINED, {"model.name": name}, *limits)]
    assert found.best.change == {"model.name": max(fitting, key=sizes.get)}
    assert found.value == max(sizes[name] for name in fitting)
    assert found.value_of(found.neighbour) == min(size for size in sizes.values() if size > found.value)


@pytest.mark.parametrize("name", ["h100-sxm-80gb", "rtx-4090", "a100-sxm-80gb", "mi300x", "l4", "t4", "b200-sxm"])
def test_nothing_is_better_than_at_best(name):
    for plan in (
        TRAINED,
        edited(TRAINED, {"training.precision": "auto", "training.tokens": "auto"}, FACTS).plan,
        SERVED,
    ):
        for model in ("llama-3.2-1b", "gpt2-small", "qwen2.5-7b"):
            change = {"hardware.name": name, "model.name": model}
            best = Bounds(plan, FACTS).at_best(change)
            try:
                found = fill(edited(plan, change, FACTS).plan, "balanced", catalog=FACTS).estimate
            except CapacityError:
                continue
            assert best["model.parameters"] == figure(found, "model.parameters").number
            for key in best.keys() & {
                "computation.estimated_train_time_seconds",
                "cost.usd",
                "memory.utilization_percent",
            }:
                assert best[key] <= figure(found, key).number, (key, model)


def test_what_else_may_change_comes_with_the_answer():
    found = asked(SERVED, "hardware.name", "hourly<=10", hardware=("l4", "t4", "a10g"), devices=(1, 2, 4))
    assert set(found.best.change) == {"hardware.name", "hardware.devices"}
    assert found.best.number("cost.usd_per_hour") <= 10


def test_the_format_of_most_bits_that_fits_is_found():
    large = edited(SERVED, {"model.name": "llama-3.1-70b", "hardware.devices": 2, "inference.batch": 1}, FACTS).plan
    found = asked(large, "inference.weights")
    kept = [name for name in ("awq-4", "gptq-8", "q6_k") if holds(large, {"inference.weights": name}, "memory<=100%")]
    sizes = {
        name: far_end(
            fill(edited(large, {"inference.weights": name}, FACTS).plan, "balanced", catalog=FACTS).estimate, MOST
        )
        for name in (*kept, found.value)
    }
    assert kept
    assert sizes[found.value] == max(sizes.values())


def test_no_answer_says_what_is_nearest_and_which_limit_binds():
    found = asked(TRAINED, "hardware.devices", "time<=1h", "usd<=1")
    assert found.value is None and found.binding == "cost.usd"
    data = needed_as_dict(found, None)
    assert data["result"] is None
    assert data["nearest"]["broken"][0]["relax_to"] > 1
    assert any("would do" in line for line in data["remarks"])


def test_a_load_has_to_be_served_without_any_limit():
    loaded = edited(SERVED, {"inference.request_rate": 3.0, "inference.engine": "vllm"}, FACTS).plan
    found = asked(loaded, "hardware.name", hardware=("l4", "h100-sxm-80gb"))
    assert found.value == "h100-sxm-80gb"
    assert found.binding == "computation.infer.largest_requests_per_second"


def test_the_largest_load_is_found_below_rates_that_are_all_as_late():
    """A server that cannot keep up is as slow at a thousand requests a second as at twenty."""
    found = asked(SERVED, "inference.request_rate", "tpot<=100ms")
    assert holds(SERVED, {"inference.request_rate": found.value})
    assert found.neighbour is not None and found.neighbour.violations


@pytest.mark.parametrize(
    ("solve", "words"),
    [
        ("training.seqlen", "did you mean"),
        ("inference.batch", "does not apply"),
        ("training.adapter.rank", "does not apply"),
        ("report.format", "is not a number"),
        ("training.micro_batch", "is solved for"),
    ],
)
def test_bad_questions_are_refused(solve, words):
    with pytest.raises(PlanError, match=words):
        asked(TRAINED, solve, vary=(parse_axis("training.micro_batch=1,2", FACTS),))


def test_a_limit_of_which_nothing_is_known_is_refused():
    endless = edited(TRAINED, {"training.tokens": None}, FACTS).plan
    with pytest.raises(PlanError, match="length is open"):
        asked(endless, "hardware.devices", "usd<=100")


def test_somebody_may_stop_it():
    axis = parse_axis("training.micro_batch=1..8", FACTS)
    question = Question(TRAINED, vary=(axis,))
    assert not need(question, "hardware.name", catalog=FACTS, stopped=lambda: True).complete
    assert not need(question, "training.seq_len", catalog=FACTS, stopped=lambda: True).complete


def test_a_budget_goes_to_the_size_that_learns_most_from_it():
    names = ("llama-3.2-1b", "qwen2.5-3b", "gpt2-small", "qwen2.5-0.5b", "llama-3.1-8b", "mixtral-8x7b")
    plan = edited(TRAINED, {"training.tokens": "auto"}, FACTS).plan
    found = asked(plan, "model.parameters", "usd<=200", goal="loss", models=names)
    losses = {}
    for name in names:
        paid = asked(edited(plan, {"model.name": name}, FACTS).plan, "training.tokens", "usd<=200")
        losses[name] = None if paid.best is None else paid.best.number("training.expected_loss")
    best = min((name for name, loss in losses.items() if loss is not None), key=losses.get)
    assert found.best.change["model.name"] == best
    assert found.best.number("training.expected_loss") == pytest.approx(losses[best], rel=1e-3)
    assert found.binding == "cost.usd"


def test_what_planning_says_fits_is_found_whatever_a_method_leaves_to_its_default():
    plan = plan_of_line(read_line("qlora 4090"), catalog=FACTS).plan
    found = asked(plan, "model.name", "memory<=100%")
    # Nearly all of a 16-bit model's weights would fill the card with a third of that.
    assert FACTS.architectures[found.value].params_total >= 24e9
    assert holds(plan, found.best.change, "memory<=100%")
    plan = plan_of_line(read_line("llama-65b qlora 512"), catalog=FACTS).plan
    found = asked(plan, "hardware.name", "memory<=100%", hardware=("rtx-a6000",))
    assert found.value == "rtx-a6000"
    assert holds(plan, found.best.change, "memory<=100%")


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen2.5-32b", "mixtral-8x7b"])
def test_no_plan_takes_less_memory_than_its_bound_says(method, name):
    tuned = {"model": {"name": name}, "task": "finetune", "training": {"method": method, "micro_batch": 1}}
    plan = plan_from_data({**tuned, "hardware": {"name": "b200-sxm", "devices": 1}})
    change = {"hardware.name": "b200-sxm"}
    reached = figure(fill(plan, "balanced", catalog=FACTS).estimate, "memory.utilization_percent").number
    assert Bounds(plan, FACTS).at_best(change)["memory.utilization_percent"] <= reached


def test_the_next_name_is_the_one_that_comes_nearest():
    plan = plan_from_data({**SERVED_DATA, "model": {"name": "qwen2.5-72b"}})
    found = asked(plan, "hardware.name", devices=(1, 2, 4, 8))
    assert found.value is not None
    if found.neighbour is not None:
        assert found.neighbour.violation <= 1.0


def test_users_that_are_asked_for_are_no_more_than_the_engine_keeps_up_with():
    """They send a request now and then, as users whose number a line says, so that their number ends with the load."""
    asking_line = read_line("how many users can a 4090 handle with llama-3.1-8b awq")
    made = plan_of_line(asking_line, catalog=FACTS)
    needed = answer_line_question(made.plan, made.asked, catalog=FACTS)
    assert 10 < needed.value < 1000

    def verdict(users):
        plan = plan_of_line(read_line(f"serve llama-3.1-8b awq 4090 {users} users"), catalog=FACTS).plan
        return answer(plan, catalog=FACTS).estimate.verdict

    assert verdict(needed.value) in (Verdict.FITS, Verdict.TIGHT)
    assert verdict(2 * needed.value) is Verdict.MISSES_LIMIT


def test_epochs_of_so_many_tokens_are_solved_for_in_a_time():
    line = plan_of_line(read_line("how many epochs of 50M tokens in 24h llama 8b lora 8xh100"))
    found = answer_line_question(line.plan, line.asked, catalog=FACTS)
    assert found.value > 1
    assert figure(found.best.estimate, "computation.estimated_train_time_seconds").number <= 24 * 3600


def test_no_model_is_named_for_memory_that_is_not_known():
    def asked(text):
        line = plan_of_line(read_line(text), catalog=FACTS)
        return answer_line_question(line.plan, line.asked, catalog=FACTS)

    with pytest.raises(PlanError, match="without the memory"):
        asked("what can i run on an i5 laptop")
    assert asked("what model can i run on an i5 laptop 16gb ram").value == "mistral-small-24b-2501"


@pytest.mark.parametrize("solve", ["inference.batch", "inference.prompt_tokens", "model.parameters"])
def test_nothing_that_takes_memory_is_solved_where_it_is_not_known(solve):
    served = {"output_tokens": 512, "engine": "llamacpp"}
    plan = plan_from_data({**SERVED_DATA, "inference": served, "hardware": {"name": "i7-1365u"}})
    with pytest.raises(PlanError, match="fits is not known without the memory"):
        asked(plan, solve)


@pytest.mark.parametrize("load", ["200 concurrent users", "200 simultaneous users", "200 concurrent requests"])
def test_devices_for_so_many_at_once_do_not_leave_them_waiting(load):
    line = plan_of_line(read_line(f"how many l4 for {load}, llama-3.1-8b"), catalog=FACTS)
    needed = answer_line_question(line.plan, line.asked, catalog=FACTS)
    assert needed.value > 1
    assert figure(needed.best.estimate, "computation.infer.time_to_first_token_seconds").number < 10


def test_a_network_is_never_faster_than_its_bound():
    training = {"samples": 1_000_000, "epochs": 30}
    data = {"model": {"name": "yolov5s"}, "task": "train", "training": training, "hardware": {"name": "t4"}}
    plan = plan_from_data(data)
    bound = Bounds(plan, FACTS).at_best({"hardware.name": "l4"})[TIME]
    filled = fill(edited(plan, {"hardware.name": "l4"}, FACTS).plan, "balanced")
    reached = figure(filled.estimate, TIME).number
    assert reached is not None
    assert 0.0 < bound < mean(reached)
    assert TIME not in Bounds(plan, FACTS).at_best({"hardware.name": "l4", "training.precision": "fp8"})
