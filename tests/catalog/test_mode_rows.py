"""The modes hold every figure the auto-configuration document gives."""

from __future__ import annotations

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.plan.sections import MEMORY_REMEDIES

ORDER = ("conservative", "balanced", "extreme")


def test_utilization_and_sizes(shipped: Catalog) -> None:
    low, middle, high = (shipped.modes[name] for name in ORDER)
    assert [mode.utilization for mode in (low, middle, high)] == [0.50, 0.75, 0.95]
    assert low.parameters_range == (23e6, 70e6)
    assert middle.parameters_range == (70e6, 200e6)
    assert high.parameters_range == (200e6, None)
    assert low.batch_range == (2, 8)
    assert middle.batch_range == (8, 32)
    assert high.batch_range == (None, None)
    assert [mode.sequence_range for mode in (low, middle, high)] == [(512, 1024), (1024, 2048), (2048, None)]
    assert [mode.training_hours_range for mode in (low, middle, high)] == [(0.5, 2), (2, 6), (6, None)]
    assert [mode.power_share_range for mode in (low, middle, high)] == [(None, 0.4), (0.6, 0.8), (0.9, 1.0)]


def test_tokens_per_parameter(shipped: Catalog) -> None:
    assert shipped.modes["conservative"].tokens_per_parameter_range == (10, 15)
    assert shipped.modes["balanced"].tokens_per_parameter == 20
    assert shipped.modes["extreme"].tokens_per_parameter_range == (25, None)


def test_reserves_shrink_from_conservative_to_extreme_within_the_ranges(shipped: Catalog) -> None:
    reserves = [shipped.modes[name].reserve for name in ORDER]
    for name in ("context_gb", "fragmentation", "spikes", "system_gb"):
        figures = [getattr(reserve, name) for reserve in reserves]
        assert figures == sorted(figures, reverse=True), name
    for reserve in reserves:
        assert reserve.context_gb_range == (1, 2)
        assert reserve.fragmentation_range == (0.15, 0.20)
        assert reserve.system_gb_range == (2, 4)
        assert reserve.spikes == 0.10
        for name in ("context_gb", "fragmentation", "system_gb"):
            least, most = getattr(reserve, f"{name}_range")
            assert least <= getattr(reserve, name) <= most


def test_recovery_alerts_and_warnings(shipped: Catalog) -> None:
    low, middle, high = (shipped.modes[name] for name in ORDER)
    assert [len(mode.recovery.out_of_memory) for mode in (low, middle, high)] == [6, 4, 0]
    assert set(low.recovery.out_of_memory) == set(MEMORY_REMEDIES)
    assert high.recovery.max_restarts == 0
    assert middle.watch.temperature_c == 80
    assert [mode.watch.power_share for mode in (low, middle, high)] == [0.4, 0.8, 1.0]
    assert any("80 C" in warning.text for warning in high.warnings)
    assert all(mode.recovery.checkpoint_share > 0 for mode in (low, middle, high))
