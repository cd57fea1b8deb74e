"""Sequences split over devices, and documents packed into them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.estimate.transformer.run import attended_in_documents
from capacity_tui.engine.plan.files import plan_from_data


def estimate(cp: int = 8, seq_len: int = 131072, context: str = "ring", **training: object) -> Estimate:
    plan = plan_from_data(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"seq_len": seq_len, "global_batch": 8 // cp, "checkpointing": "full", "framework": "megatron"}
            | training,
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
            "parallelism": {"cp": cp, "context": context, "zero": 3},
        }
    )
    return estimate_plan(plan, None, load_catalog()).estimate


def part(found: Estimate, name: str) -> float:
    return float(found.computation.parts.get(name, 0.0))


def test_pieces_of_a_ring_are_slower_than_the_whole_and_are_merged():
    whole, ring = estimate(context="all_to_all"), estimate()
    assert part(ring, "attention") > part(whole, "attention")
    assert part(ring, "attention") < 1.5 * part(whole, "attention")


def test_a_ring_hides_behind_long_pieces_and_not_behind_short_ones():
    def exposed(seq_len: int, context: str) -> float:
        found = estimate(seq_len=seq_len, context=context)
        return part(found, "context_parallel") / float(found.computation.step_seconds.value)

    assert exposed(131072, "ring") < 0.2 * exposed(131072, "all_gather")
    assert exposed(2048, "ring") > exposed(131072, "ring")


def test_gathered_keys_and_values_take_memory_that_a_ring_does_not():
    def backward_peak(context: str) -> float:
        return float(estimate(context=context).memory.timeline["backward peak"])

    assert backward_peak("all_gather") > backward_peak("ring") > 0


def test_heads_limit_what_may_be_swapped_for_tokens():
    with pytest.raises(PlanError, match="heads"):
        plan = plan_from_data(
            {
                "model": {"name": "llama-3-8b"},
                "training": {"seq_len": 65536, "global_batch": 1},
                "hardware": {"name": "h100-sxm-80gb", "devices": 64},
                "parallelism": {"cp": 64, "context": "all_to_all"},
            }
        )
        estimate_plan(plan, None, load_catalog())


def test_the_exchange_changes_nothing_where_sequences_are_whole():
    steps = {float(estimate(cp=1, context=name, seq_len=8192).computation.step_seconds.value)
             for name in ("ring", "all_to_all", "all_gather")}  # fmt: skip
    assert len(steps) == 1


def test_short_documents_leave_little_attention_and_fewer_model_flops():
    packed, whole = estimate(document_tokens=1024), estimate()
    assert part(packed, "attention") < 0.1 * part(whole, "attention")
    assert packed.computation.step_seconds.value < whole.computation.step_seconds.value
    assert packed.model.forward_flops < whole.model.forward_flops
    assert packed.memory.per_device_bytes.value == whole.memory.per_device_bytes.value


@given(st.floats(1, 1e6), st.integers(16, 1 << 20))
def test_documents_never_let_a_token_attend_to_more_than_sequence_or_document(document, seq):
    found = attended_in_documents(document, float(seq), float(seq))
    assert 0 <= found <= min(document, seq / 2) * (1 + 1e-6)


def test_documents_much_longer_than_a_sequence_change_nothing():
    assert math.isclose(attended_in_documents(1e9, 4096.0, 4096.0), 2048.0, rel_tol=1e-3)
    assert math.isclose(attended_in_documents(1e9, 4096.0, 1024.0), 1024 - 1024**2 / 8192, rel_tol=1e-3)
