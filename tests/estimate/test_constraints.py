"""What a run must keep, the one verdict of it, and the table of figures that limits are of."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from capacity_tui.engine.estimate import (
    METRICS,
    PARTS,
    Constraint,
    Estimate,
    Part,
    estimate_plan,
    figure_keys,
    figure_text,
    usual_words,
)
from capacity_tui.engine.estimate.figures.values import figure_words
from capacity_tui.engine.estimate.memory_estimate import verdicts
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan, all_fields
from capacity_tui.engine.plan.files import yaml_text
from capacity_tui.engine.present import to_json
from capacity_tui.engine.present.frameworks.exports import as_yaml
from capacity_tui.engine.present.results import to_builtins
from capacity_tui.engine.solve import answer
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Holds, Verdict

TTFT = "computation.infer.time_to_first_token_seconds"


def served(**inference: object) -> Estimate:
    plan = {
        "model": {"name": "llama-3.1-8b"},
        "task": "infer",
        "inference": {"engine": "vllm", "batch": 4, **inference},
        "hardware": {"name": "h100-sxm-80gb", "devices": 1},
    }
    return estimate_plan(Plan.model_validate(plan)).estimate


def trained(**sections: object) -> Estimate:
    plan = {
        "model": {"name": "llama-3.1-70b"},
        "task": "finetune",
        "training": {"seq_len": 4096, "micro_batch": 1, "global_batch": 16, "checkpointing": "full", "tokens": 50e6},
        "parallelism": {"zero": 3, "offload": "optimizer"},
        "hardware": {"name": "h100-sxm-80gb", "devices": 4},
        **sections,
    }
    return answer(Plan.model_validate(plan)).estimate


@pytest.mark.parametrize(
    ("limit", "holds"), [(0.5, Holds.NO), (1.0, Holds.LIKELY), (1.1, Holds.LIKELY), (9.0, Holds.YES)]
)
def test_a_limit_holds_at_the_far_end_by_the_estimate_or_not(limit: float, holds: Holds) -> None:
    assert Constraint("x", "x", "s", Interval(1.0, 0.8, 1.2), most=limit).holds is holds
    least = Constraint("x", "x", "s", Interval(1.0, 1.0 / 1.2, 1.0 / 0.8), least=1.0 / limit)
    assert least.holds is holds


def test_the_gravest_constraint_decides_plan_by_plan() -> None:
    reached = Interval(np.array([1.0, 2.0, 1.0]), np.array([0.9, 1.9, 0.5]), np.array([1.1, 2.1, 3.0]))
    memory = Constraint("m", "memory", "B", reached, most=1.5, broken_as=Verdict.DOES_NOT_FIT)
    late = Constraint("t", "TTFT", "s", Interval.exactly(np.array([2.0, 2.0, 0.0])), most=1.0)
    found = verdicts((memory, late), True)
    assert [found.words[place] for place in found.positions] == [
        Verdict.MISSES_LIMIT,
        Verdict.DOES_NOT_FIT,
        Verdict.TIGHT,
    ]
    unknown = verdicts((late,), False)
    assert [unknown.words[place] for place in np.broadcast_to(unknown.positions, 3)] == [
        Verdict.MISSES_LIMIT,
        Verdict.MISSES_LIMIT,
        Verdict.UNKNOWN,
    ]


def test_a_limit_of_latency_that_is_missed_is_no_fit() -> None:
    seconds = served().computation.infer
    assert seconds is not None
    first = float(seconds.time_to_first_token_seconds.value)
    kept, missed = served(ttft_seconds=100 * first), served(ttft_seconds=first / 100)
    assert (kept.verdict, kept.fits) == (Verdict.FITS, True)
    assert (missed.verdict, missed.fits) == (Verdict.MISSES_LIMIT, False)
    assert [limit.figure for limit in missed.broken] == [TTFT]
    assert served(ttft_seconds=1.01 * first).verdict is Verdict.TIGHT


def test_a_load_that_cannot_be_answered_is_a_limit_missed_and_no_figure_is_infinite_in_words() -> None:
    found = served(request_rate=10_000.0, ttft_seconds=1.0)
    assert (found.verdict, found.fits) == (Verdict.MISSES_LIMIT, False)
    assert found.broken[0].figure == "computation.infer.largest_requests_per_second"
    assert "inf" not in found.verdict_text.replace("infer", "")


def test_what_lies_in_host_memory_is_said_and_held_against_the_node() -> None:
    found = trained()
    host = next(limit for limit in found.constraints if limit.figure == "memory.host_bytes")
    assert host.why.startswith("assumed")
    # Gradients, master weights and two states of 70.6 billion parameters in 4 bytes, over four devices.
    assert float(found.memory.host_bytes) * 4 == pytest.approx(70.55e9 * 16, rel=0.05)
    assert "the optimizer in host memory" in found.memory.in_host
    assert (host.holds, found.fits) == (Holds.NO, False)
    roomy = trained(
        hardware={"name": "h100-sxm-80gb", "devices": 4, "spec": {"host_memory_gib": 512}},
        parallelism={"zero": 3, "offload": "optimizer"},
    )
    assert roomy.fits and roomy.memory.in_host in roomy.verdict_text


def test_unknown_memory_stays_unknown() -> None:
    plan = {"model": {"name": "llama-3.2-1b"}, "task": "infer", "hardware": {"name": "i7-1165g7", "devices": 1}}
    found = answer(Plan.model_validate(plan)).estimate
    assert (found.verdict, found.fits) == (Verdict.UNKNOWN, None)


@pytest.mark.parametrize(("gib", "verdict"), [(8, Verdict.DOES_NOT_FIT), (64, Verdict.FITS)])
def test_a_processor_has_the_memory_of_its_host(gib: float, verdict: Verdict) -> None:
    hardware = {"name": "i9-13900k", "spec": {"host_memory_gib": gib}}
    plan = {"model": {"name": "llama-3.1-8b"}, "task": "infer", "hardware": hardware}
    assert answer(Plan.model_validate(plan)).estimate.verdict is verdict


FIGURES = (*METRICS, *(f"{group}.{part}" for group, parts in PARTS.items() for part in parts))


@pytest.mark.parametrize("key", FIGURES)
def test_a_figure_is_explained_in_two_sentences(key: str) -> None:
    assert len(re.findall(r"[.!](?:\s|$)", figure_text(key))) == 2
    assert len(figure_text(key)) < 260


def test_every_figure_has_a_name_and_every_name_a_figure() -> None:
    assert set(Figure) == set(FIGURES)
    assert PARTS["computation.parts"] == get_args(Part)


def test_every_field_has_a_name_and_every_name_a_field() -> None:
    assert set(Key) == set(all_fields())
    assert not set(Key) & set(Figure)


def test_names_are_keys_in_capitals() -> None:
    assert all(member.name == member.value.replace(".", "_").upper() for member in Key)
    groups = ("computation", "infer", "parts")
    for member in Figure:
        assert member.name == "_".join(word for word in member.value.split(".") if word not in groups).upper()


def test_names_are_plain_texts_in_files() -> None:
    data = {Key.TRAINING_SEQ_LEN: Figure.COST_USD}
    assert yaml_text(data) == as_yaml((), (), data) == "training.seq_len: cost.usd\n"
    assert json.loads(to_json(to_builtins(data))) == {"training.seq_len": "cost.usd"}


def test_names_cost_no_library() -> None:
    code = "import sys, capacity_tui.engine.keys; print(*{'numpy', 'pydantic', 'yaml'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("task", ["train", "infer"])
def test_what_tables_call_a_figure_and_its_short_words_name_it(task: str) -> None:
    for label in {usual_words(metric.label) for metric in METRICS.values()} - {*figure_words(task)}:
        assert usual_words(METRICS[figure_keys(label, task)[0]].label) == label
    for word, keys in figure_words(task).items():
        assert figure_keys(word, task) == keys


def test_of_figures_with_one_word_a_percentage_is_meant_first() -> None:
    assert figure_keys("memory") == (Figure.MEMORY_UTILIZATION_PERCENT, Figure.MEMORY_RESERVED_BYTES)
