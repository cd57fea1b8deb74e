"""The plan to begin with: the largest model that leaves the balanced mode its room."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import edited
from capacity_tui.engine.solve import open_plan, propose
from capacity_tui.engine.solve.answers import largest_model
from capacity_tui.engine.solve.modes import compare
from capacity_tui.engine.solve.modes.mode_plan import used_shares


@pytest.mark.parametrize("hardware", ["h100-sxm-80gb", "2xrtx-3090", "8xh100-sxm-80gb"])
def test_three_modes_differ_and_balanced_keeps_its_share(hardware: str) -> None:
    found = compare(propose(hardware=hardware))
    assert len(found.groups) == 3
    balanced = found.balanced
    shares = used_shares(balanced.mode, balanced.estimate, balanced.resolved.cluster)
    assert not [share.why for share in shares if share.figure == "memory" and share.why]
    assert "way_out" not in [note.code for note in balanced.estimate.warnings]


def test_the_model_on_the_edge_is_named_beside_the_one_with_room() -> None:
    plan = edited(open_plan("finetune"), {"training.method": "qlora", "hardware.name": "rtx-4070",
                                          "training.tokens": 1e7}).plan  # fmt: skip
    names = ("qwen2.5-14b", "gemma-2-9b", "mistral-7b-v0.3")
    found = largest_model(plan, names, None, load_catalog())
    assert found.edge == "qwen2.5-14b"
    assert found.comfortable in names[1:]
