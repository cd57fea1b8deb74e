"""Up to how many rows an algorithm is a reasonable choice on a machine."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.classical.algorithms import fit_bytes, fit_of, fit_rates, fit_seconds
from capacity_tui.engine.estimate.classical.limits import largest_rows
from capacity_tui.engine.estimate.classical.work import settle_classical
from capacity_tui.engine.models import LARGEST_ROWS
from capacity_tui.engine.models.classical import ClassicalSpec
from capacity_tui.engine.plan import ModelSection, Plan


def reasonable_rows(family: str, device: Device, catalog: Catalog) -> int:
    """Return the most rows that are fitted in reasonable time and inside memory, with every other default.

    Args:
        family: name of the algorithm.
        device: what it runs on.
        catalog: facts, with the time that is reasonable.

    Raises:
        PlanError: the device has no rate for the algorithm's numbers.
    """
    resolved = settle_classical(Plan(model=ModelSection(name=family)), family, device)
    rates = fit_rates(resolved, family, device, catalog, None)
    memory = np.inf if device.memory_bytes is None else float(np.max(device.memory_bytes))

    def is_reasonable(trial: ClassicalSpec) -> bool:
        fit = fit_of(trial, rates)
        return float(fit_seconds(fit, rates)) <= rates.row.reasonable_seconds and float(fit_bytes(fit)) <= memory

    return largest_rows(resolved.model_copy(update={"n": LARGEST_ROWS}), is_reasonable)
