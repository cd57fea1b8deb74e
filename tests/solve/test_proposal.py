"""The plan to begin with: the largest model that leaves the modes their shares of memory."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import UsedShare
from capacity_tui.engine.plan import edited
from capacity_tui.engine.solve import open_plan, propose
from capacity_tui.engine.solve.answers import largest_model
from capacity_tui.engine.solve.modes import compare
from capacity_tui.engine.solve.modes.mode_plan import ModePlan, used_shares

HARDWARE = ("h100-sxm-80gb", "2xrtx-3090", "gtx-1660-ti", "M1_Pro", "8xA100_80GB_fp16", "64xh100-sxm-80gb")
"""A server's card, two of a workstation, an old one, a laptop, a machine of eight, and a cluster of such."""


def memory_share_of(filled: ModePlan) -> UsedShare:
    shares = used_shares(filled.mode, filled.estimate, filled.resolved.cluster)
    return next(share for share in shares if share.figure == "memory")


@pytest.mark.parametrize("hardware", HARDWARE)
def test_the_first_plan_has_three_columns_inside_their_shares(hardware: str) -> None:
    found = compare(propose(hardware=hardware))
    assert len(found.groups) == 3
    for column in found.columns:
        assert not memory_share_of(column).why, column.mode.id
        assert column.reasons
    for column in (found.conservative, found.balanced):
        assert "way_out" not in [note.code for note in column.estimate.warnings]


@pytest.mark.parametrize("hardware", HARDWARE)
def test_modes_that_choose_the_model_too_keep_their_shares_and_extreme_fills_its_own(hardware: str) -> None:
    found = compare(edited(open_plan(), {"hardware.name": hardware}).plan)
    for column in found.columns:
        assert not memory_share_of(column).why, column.mode.id
    share = memory_share_of(found.extreme)
    assert share.used > 0.8 * share.allowed


def test_a_weak_machine_is_proposed_a_size_that_ends_in_time_with_its_tokens() -> None:
    found = compare(edited(open_plan(), {"hardware.name": "rtx-3060-12gb"}).plan).conservative
    size = found.estimate.model.parameters
    assert 23e6 <= size <= 71e6
    assert 10 <= float(str(found.plan.training.tokens)) / size <= 15
    assert "trains within the mode's 2 h" in found.reasons["model.name"]


def test_the_model_on_the_edge_is_named_beside_the_one_with_room() -> None:
    plan = edited(open_plan("finetune"), {"training.method": "qlora", "hardware.name": "rtx-4070",
                                          "training.tokens": 1e7}).plan  # fmt: skip
    names = ("qwen2.5-14b", "gemma-2-9b", "mistral-7b-v0.3")
    found = largest_model(plan, names, None, load_catalog())
    assert found.edge == "qwen2.5-14b"
    assert found.comfortable in names[1:]
