"""Devices of a cluster with what was measured on its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import MeasuredCurve, MeasuredDevice, MeasuredError
from capacity_tui.engine.cluster.found import Found
from capacity_tui.engine.cluster.measured_here import with_measured

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Curve, FitError, MeasuredEfficiency


def as_measured_there(found: Found, name: str, catalog: Catalog) -> Found:
    """Return hardware with what was measured on the cluster of a name, where that is one and something was.

    Args:
        found: the devices.
        name: what the plan calls its hardware.
        catalog: rows of clusters, and of devices as they were measured.
    """
    cluster = catalog.clusters.find_id(name)
    rows = [row for row in catalog.measured_devices.values() if row.cluster == cluster]
    if cluster is None or not rows:
        return found
    return replace(found, device=with_measured(found.device, tuple(map(_constants, rows)), cluster))


def _constants(row: MeasuredDevice) -> MeasuredEfficiency:
    from capacity_tui.engine.machine import MeasuredEfficiency  # noqa: PLC0415 - few were measured

    return MeasuredEfficiency(
        device=row.device,
        date=str(row.checked),
        software=row.software,
        gemm=row.gemm,
        constants=row.constants,
        curves=tuple(map(_curve, row.curves)),
        errors=tuple(map(_error, row.errors)),
    )


def _curve(row: MeasuredCurve) -> Curve:
    from capacity_tui.engine.machine import Curve  # noqa: PLC0415 - few were measured

    return Curve(row.name, row.sizes, row.ratios)


def _error(row: MeasuredError) -> FitError:
    from capacity_tui.engine.machine import FitError  # noqa: PLC0415 - few were measured

    return FitError(row.name, row.count, row.median, row.worst, row.interpolated)
