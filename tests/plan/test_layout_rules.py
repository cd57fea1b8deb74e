"""Layouts that cannot be are refused with the rule; those that software finds a way around are remarked on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.plan import Layout, Plan, possible, refuse_impossible
from capacity_tui.engine.plan.layout_rules import LAYOUT_RULES
from capacity_tui.engine.present.frameworks import framework_files
from capacity_tui.engine.solve import answer

LLAMA = {"layers": 32.0, "heads": 32.0, "kv_heads": 8.0, "ffn": 14336.0, "vocab": 128256.0}


def plan(model: str, devices: int, task: str = "train", **parallel: object) -> Plan:
    return Plan.model_validate(
        {
            "task": task,
            "model": {"name": model},
            "parallelism": parallel,
            "hardware": {"name": "h100-sxm-80gb", "devices": devices},
        }
    )


def test_feed_forwards_of_unlike_widths_are_no_remainder() -> None:
    resolve_plan(plan("gemma-4-e2b", 2, tp=2), load_catalog(), None)


@pytest.mark.parametrize(
    ("model", "devices", "parallel", "field", "words"),
    [
        ("llama-3-8b", 24, {"tp": 3}, "parallelism.tp", "32 heads, TP 3"),
        ("llama-3-8b", 64, {"tp": 64}, "parallelism.tp", "32 heads, TP 64"),
        ("llama-3-8b", 64, {"pp": 64}, "parallelism.pp", "32 layers, PP 64"),
        ("llama-3-8b", 16, {"pp": 8, "interleave": 8}, "parallelism.pp", "PP 8 x interleave 8"),
        ("llama-3-8b", 3, {"cp": 3}, "parallelism.cp", "2 048 tokens, CP 3"),
        ("mixtral-8x7b", 12, {"ep": 3}, "parallelism.ep", "8 experts, EP 3"),
        ("llama-3-8b", 8, {"ep": 8}, "parallelism.ep", "0 experts, EP 8"),
        ("llama-3-8b", 8, {"tp": 3}, "parallelism", "3 x 1 x 1 = 3, devices 8"),
        ("llama-3-8b", 8, {"dp": 3}, "parallelism.dp", "3 x 1 x 1 x 1, devices 8"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_with_its_numbers(
    model: str, devices: int, parallel: dict[str, int], field: str, words: str
) -> None:
    with pytest.raises(PlanError) as caught:
        estimate_plan(plan(model, devices, **parallel))
    assert caught.value.place.field == field
    assert words in str(caught.value)


def test_serving_refuses_what_splits_heads_apart_but_not_software_that_pads_them() -> None:
    with pytest.raises(PlanError, match="32 heads, TP 24"):
        estimate_plan(plan("llama-3-8b", 24, "infer", tp=24))
    padded = plan("llama-3-8b", 24, "infer", tp=24)
    neuron = padded.model_copy(
        update={
            "inference": padded.inference.model_copy(update={"engine": "neuron"}),
            "hardware": padded.hardware.model_copy(update={"name": "trainium1"}),
        }
    )
    assert estimate_plan(neuron).estimate.memory.reserved_bytes.value > 0


@pytest.mark.parametrize(
    ("parallel", "devices", "code"),
    [
        ({"tp": 16}, 16, "layout_kv_heads_copied"),
        ({"pp": 5}, 5, "layout_equal_stages"),
        ({"pp": 4, "dp": 1}, 4, "layout_micro_batches"),
    ],
)
def test_what_software_works_around_is_remarked_on_in_answers_and_files(
    parallel: dict[str, int], devices: int, code: str
) -> None:
    wanted = plan("llama-3-8b", devices, **parallel)
    found = {note.code: note for note in answer(wanted).estimate.warnings}
    assert code in found
    files = framework_files(resolve_plan(wanted, load_catalog()), load_catalog())
    assert any(found[code].title in text for text in files.values())


def test_a_layout_that_megatron_splits_with_embedding_and_loss_as_layers_is_possible() -> None:
    wanted = plan("llama-3.1-405b", 256, dp=4, tp=4, pp=16, interleave=8)
    assert estimate_plan(wanted).estimate.memory.reserved_bytes.value > 0


@given(tp=st.lists(st.integers(1, 80), min_size=1, max_size=6), pp=st.integers(1, 70), ep=st.sampled_from([1, 2, 3, 8]))
def test_arrays_judge_as_single_layouts_do(tp: list[int], pp: int, ep: int) -> None:
    sizes = np.array(tp, dtype=np.float64)
    together = possible(Layout(devices=sizes * pp * ep, dp=ep, tp=sizes, pp=pp, ep=ep, experts=8.0, **LLAMA))
    for size, judged in zip(sizes, together, strict=True):
        alone = Layout(devices=size * pp * ep, dp=ep, tp=size, pp=pp, ep=ep, experts=8.0, **LLAMA)
        try:
            refuse_impossible(alone)
        except PlanError:
            assert not judged
        else:
            assert judged


def test_every_rule_has_its_own_name_and_words() -> None:
    assert len({rule.id for rule in LAYOUT_RULES}) == len(LAYOUT_RULES)
    assert all(rule.broken and rule.remedy for rule in LAYOUT_RULES)
