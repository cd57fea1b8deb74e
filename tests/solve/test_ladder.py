"""The largest models that a card tunes and runs."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import edited
from capacity_tui.engine.solve import Rung, ladder, open_plan


@pytest.fixture(scope="module")
def rungs() -> tuple[Rung, ...]:
    return tuple(ladder(edited(open_plan(), {"hardware.name": "rtx-4070"}).plan))


def test_each_way_has_a_comfortable_model_and_a_larger_one_on_the_edge(rungs: tuple[Rung, ...]) -> None:
    sizes = {row.id: row.params_total for row in load_catalog().architectures.values()}
    ways = list(dict.fromkeys(rung.way for rung in rungs))
    assert {way.partition(":")[0] for way in ways} == {"fine-tune", "run"}
    for way in ways:
        comfortable, edge = (rung for rung in rungs if rung.way == way)
        assert comfortable.is_comfortable
        assert not edge.is_comfortable
        assert sizes[edge.model] > sizes[comfortable.model]
        assert edge.estimate.fits


def test_fewer_bits_run_a_larger_model(rungs: tuple[Rung, ...]) -> None:
    sizes = {row.id: row.params_total for row in load_catalog().architectures.values()}
    run = [sizes[rung.model] for rung in rungs if rung.is_comfortable and rung.way.startswith("run")]
    assert run[0] == max(run)
    assert run[-1] == min(run)
    assert all(rung.speed.endswith("tok/s") and rung.share.endswith("%") for rung in rungs)


def test_hardware_that_nobody_knows_is_named() -> None:
    with pytest.raises(CapacityError, match="no hardware is called"):
        tuple(ladder(edited(open_plan(), {"hardware.name": "nonsense99"}).plan))
