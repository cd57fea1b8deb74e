"""What is done about a run in trouble: bounded, in the order of its plan, with the global batch kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.machine import Machine, detect, detected, missing
from capacity_tui.engine.plan import all_fields, edited
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.plan.sections import MEMORY_REMEDIES
from capacity_tui.engine.runs.guard.failures import Failure
from capacity_tui.engine.runs.guard.recovery_policy import Step, next_step, recovery_ladder, why_no_step
from capacity_tui.engine.solve.modes import fill

Mode = Literal["conservative", "balanced", "extreme"]
MEMORY = Failure("out_of_memory", "CUDA ran out of memory", "device", "CUDA out of memory", 0)
LOST = Failure("device_lost", "a device is gone", device=2)
UNSTABLE = Failure("unstable", "the loss is no number")
SMALL = """
model: {name: gpt2}
training: {tokens: 1e9, micro_batch: 8, global_batch: 32, seq_len: 1024, precision: fp32}
hardware: {name: rtx-4090}
"""
MANY = """
model: {name: llama-3.2-1b}
training: {steps: 1000, micro_batch: 1, global_batch: 32, seq_len: 1024}
hardware: {name: h100-sxm-80gb, devices: 8}
"""


@cache
def filled(text: str, mode: Mode = "balanced", more: str = "") -> Answer:
    found = fill(plan_from_text(text + more, "plan"), mode)
    return Answer(found.resolved, found.estimate)


def steps_until_the_end(answer: Answer, failure: Failure = MEMORY) -> list[Step]:
    taken: list[Step] = []
    while step := next_step(answer, failure, [each.data() for each in taken]):
        taken.append(step)
        answer = step.answer
    return taken


def test_out_of_memory_is_answered_in_the_order_of_the_plan_until_its_restarts_are_used() -> None:
    taken = steps_until_the_end(filled(SMALL, "balanced", "recovery: {max_restarts: 6}"))
    order = list(dict.fromkeys(step.remedy for step in taken))
    # With one sequence and its activations checkpointed, a shorter precision saves less than a step is worth.
    assert order == ["micro_batch", "checkpointing", "offload", "precision"]
    for step in taken:
        before, after = step.figures["memory.reserved_bytes"]
        assert after < before
        assert step.plan.training.global_batch == 32
        assert "CUDA ran out of memory" in step.reason
    assert taken[0].change["training.micro_batch"] in (1, 2, 4)
    assert taken[-1].plan.parallelism.offload == "optimizer"


@pytest.mark.parametrize(("mode", "most"), [("conservative", 5), ("balanced", 3), ("extreme", 0)])
def test_a_mode_bounds_what_is_done(mode: Mode, most: int) -> None:
    taken = steps_until_the_end(filled(SMALL, mode))
    assert len(taken) <= most
    assert bool(taken) is (most > 0)


def test_the_plan_says_what_is_tried_and_in_which_order() -> None:
    more = "recovery: {out_of_memory: [precision, micro_batch], max_restarts: 9}"
    assert [step.remedy for step in steps_until_the_end(filled(SMALL, "extreme", more))][:2] == [
        "precision",
        "micro_batch",
    ]
    assert next_step(filled(SMALL, "balanced", "recovery: {out_of_memory: []}"), MEMORY) is None


def test_shorter_sequences_keep_the_tokens_of_a_step_and_the_processor_comes_last() -> None:
    more = "recovery: {out_of_memory: [sequence, processor]}"
    text = SMALL.replace("seq_len: 1024", "seq_len: 4096")
    step = next_step(filled(text, "balanced", more), MEMORY)
    assert step is not None
    assert (step.plan.training.seq_len, step.plan.training.global_batch) == (2048, 64)
    last = next_step(filled(SMALL, "balanced", "recovery: {out_of_memory: [processor]}"), MEMORY)
    assert last is None or last.answer.resolved.cluster.device.kind == "cpu"


def test_a_lost_device_leaves_as_many_as_divide_the_batch_then_the_processor() -> None:
    step = next_step(filled(MANY), LOST)
    assert step is not None
    assert step.change["hardware.devices"] == 4
    assert step.plan.training.global_batch == 32
    assert step.environment == {"CUDA_VISIBLE_DEVICES": "0,1,3,4"}
    alone = next_step(filled(SMALL), LOST)
    assert alone is not None
    assert alone.remedy == "processor"
    assert alone.answer.resolved.cluster.device.kind == "cpu"
    assert next_step(filled(MANY, "balanced", "recovery: {device_lost: stop}"), LOST) is None


def test_an_unstable_run_goes_on_from_the_checkpoint_before_with_more_accumulation() -> None:
    step = next_step(filled(MANY), UNSTABLE)
    assert step is not None
    assert step.checkpoint == "before"
    assert (step.change["training.global_batch"], step.change["training.steps"]) == (64, 500)
    assert step.plan.training.micro_batch == 1
    assert next_step(filled(MANY, "extreme"), UNSTABLE) is None


def test_a_hang_is_started_again_as_it_was_and_a_full_disk_is_only_told() -> None:
    step = next_step(filled(SMALL), Failure("hang", "no step for a long time"))
    assert step is not None
    assert (step.remedy, dict(step.change)) == ("restart", {})
    assert next_step(filled(SMALL), Failure("disk_full", "the disk is full")) is None


def test_memory_of_the_machine_is_not_saved_on_its_devices() -> None:
    host = Failure("out_of_memory", "the kernel killed it for memory", "host")
    fewer = next_step(filled(SMALL, "balanced", "data: {workers: 4}"), host)
    assert fewer is not None
    assert (dict(fewer.change), next(iter(fewer.figures))) == ({"data.workers": 2}, "memory.host_bytes")
    assert next_step(filled(SMALL, "balanced", "data: {workers: 1}"), host) is None
    offloading = SMALL + "parallelism: {offload: optimizer}\ndata: {workers: 1}\n"
    step = next_step(filled(offloading), host)
    assert step is not None
    assert step.plan.parallelism.offload == "none"


def test_why_nothing_is_done_is_told_with_what_the_plan_says() -> None:
    last = filled(SMALL, "balanced", "recovery: {out_of_memory: [precision], max_restarts: 2}\n")
    while step := next_step(last, MEMORY):
        last = step.answer
    assert "recovery.out_of_memory (precision) saves 5 % of the memory" in why_no_step(last, MEMORY)
    assert why_no_step(last, MEMORY, [{}, {}]) == "not started again: recovery.max_restarts is 2"
    nothing = filled(SMALL, "balanced", "recovery: {out_of_memory: []}")
    assert why_no_step(nothing, MEMORY) == "not started again: recovery.out_of_memory is empty"
    stopped = filled(MANY, "balanced", "recovery: {device_lost: stop}")
    assert why_no_step(stopped, LOST) == "not started again: recovery.device_lost is stop"
    assert why_no_step(stopped, Failure("disk_full", "the disk is full")) == ""


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([MEMORY, LOST, UNSTABLE]), st.integers(0, 4), st.sampled_from([SMALL, MANY]))
def test_every_step_can_be_told_as_plain_data_and_made_by_an_edit(failure: Failure, restarts: int, text: str) -> None:
    step = next_step(filled(text), failure, [{}] * restarts)
    if step is None:
        return
    assert restarts < 3
    assert set(step.change) == set(step.before)
    assert all(step.plan.value(path) == value for path, value in step.change.items())
    assert step.data()["reason"] == step.reason


def machine_with(catalogue_id: str | None, memory: int = 64 << 30) -> Machine:
    """This machine with another processor, which has no units for bf16."""
    found = detect()
    known = missing("a test", "no row") if catalogue_id is None else detected(catalogue_id, "a test")
    cpu = replace(found.cpu, catalogue_id=known, simd=detected(("AVX", "FMA", "AVX2"), "a test"))
    held = detected(memory, "a test")
    return replace(found, cpu=cpu, memory=replace(found.memory, total_bytes=held, available_bytes=held))


def test_what_a_processor_goes_on_with_is_the_machines_own_in_a_precision_that_it_runs() -> None:
    """Of a processor without units for bf16, as most desktops have, and of one that no catalogue knows."""
    plan = filled(SMALL.replace("precision: fp32", "precision: bf16"))
    for known in ("cpu-8c-3.5ghz-baseline", None):
        step = next_step(plan, LOST, detect=partial(machine_with, known))
        assert step is not None
        device, training = step.answer.resolved.cluster.device, step.plan.training
        assert device.kind == "cpu"
        assert training.precision not in device.runs_as
        assert training.global_batch == 32
        assert step.plan.hardware.devices == 1
        assert step.plan.hardware.name == (known or "detected")


def test_a_run_that_is_too_large_for_the_processors_memory_takes_smaller_batches() -> None:
    step = next_step(filled(SMALL), LOST, detect=lambda: machine_with(None, memory=6 << 30))
    assert step is not None
    assert step.plan.training.micro_batch < 8
    assert step.plan.training.global_batch == 32
    assert step.answer.estimate.fits


def test_memory_that_ran_out_was_more_than_was_estimated_so_that_the_estimate_has_to_shrink() -> None:
    """14 GiB were estimated of 24: half of those, not of these, is what another start may take."""
    answer = filled(SMALL, "balanced", "watch: {memory_share: 0.5}\nrecovery: {out_of_memory: [micro_batch]}")
    before = float(answer.estimate.memory.reserved_bytes.value)
    assert before < 0.7 * float(answer.estimate.memory.capacity_bytes or 0)
    step = next_step(answer, MEMORY)
    assert step is not None
    assert step.figures["memory.reserved_bytes"][1] <= 0.5 * before
    gentler = edited(answer.plan, {"training.micro_batch": 2 * step.plan.training.micro_batch}).plan
    assert float(fill(gentler, "balanced").estimate.memory.reserved_bytes.value) > 0.5 * before


def test_the_ladder_has_rungs_for_all_that_a_plan_may_ask_for() -> None:
    inactive = {"stop", "warn"}
    for kind, remedies in recovery_ladder().items():
        choices = MEMORY_REMEDIES if kind == "out_of_memory" else all_fields()[f"recovery.{kind}"].knob.choices
        assert set(choices) - inactive == set(remedies), kind
