"""Rates measured on this machine in place of modelled ones, where the size of the work was sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.work import Operator, Work
from capacity_tui.engine.machine import Curve
from capacity_tui.engine.numeric import Number, any_true, where


def as_measured(work: Work, device: Device, precision: str) -> Work:
    """Return the work with measured rates; the roofline stays where a size was not sampled, and is named.

    Args:
        work: what runs.
        device: what it runs on, with the curves measured there.
        precision: type of the linear layers, as the plan gives it.
    """
    curves = {curve.name: curve for curve in device.efficiency.curves}
    if not curves:
        return work
    native = device.native(precision)
    unsampled: list[str] = []

    def timed(operator: Operator) -> Operator:
        curve = curves.get(curve_name(operator, native))
        if curve is None:
            return operator
        if not np.all(np.asarray(curve.covers(_size(operator))) > 0):
            unsampled.append(operator.name)
        return _timed(operator, curve, device.bandwidth)

    phases = tuple(replace(phase, operators=tuple(map(timed, phase.operators))) for phase in work.phases)
    note = (f"outside the sampled sizes, by roofline: {', '.join(unsampled)}",) if unsampled else ()
    return replace(work, phases=phases, assumed=(*work.assumed, *note))


def curve_name(operator: Operator, precision: str) -> str:
    """Return the curve that speaks of an operator."""
    if operator.part == "attention":
        return f"attention{'_backward' if operator.phase == 'backward' else ''}.{precision}"
    return f"gemm.{precision}" if _computes(operator) else operator.name


def _computes(operator: Operator) -> bool:
    return operator.part != "optimizer" and any_true(operator.flops > 0)


def _size(operator: Operator) -> Number:
    return operator.flops if _computes(operator) else operator.bytes


def _timed(operator: Operator, curve: Curve, nominal: Number) -> Operator:
    """Return an operator at the speed measured for its size; memory-bound ones by the nominal bandwidth."""
    if _computes(operator):
        return replace(operator, rate=operator.rate * curve.at(operator.flops))
    inside = curve.covers(operator.bytes) > 0
    return replace(operator, bandwidth=where(inside, nominal * curve.at(operator.bytes), operator.bandwidth))
