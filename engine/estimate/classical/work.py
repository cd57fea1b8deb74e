"""A plan that fits a classical model, settled and as neutral work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Algorithm
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.classical import linear, trees
from capacity_tui.engine.estimate.classical.rates import Fit, Rates, rates_of
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.estimate.work import ModelFacts, Note, Operator, Phase, Work
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import (
    CLASSICAL_SPECS,
    LARGEST_ROWS,
    PCA,
    BoostedTrees,
    ClassicalSpec,
    DecisionTree,
    KernelSVM,
    KMeans,
    LinearRegressionNormal,
    LinearRegressionQR,
    LinearSVM,
    LogisticRegressionNewton,
    LogisticRegressionSGD,
    RandomForest,
    Spec,
    read_spec,
)
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import ModelSection, Plan
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.uncertainty import Range
from capacity_tui.engine.units import format_bytes, format_count, format_number, format_seconds

METHOD = "kernels of the usual library by roofline, loops by measured time of one step; memory term by term"
GPU_LOOPS = "speed of a GPU in loops of its own: by analogy with gradient boosting"


def of_one_machine(cluster: Cluster) -> Cluster:
    """Return a cluster whose device is all processors of a node, which a fit uses together; others as they are.

    A device that shares the memory of its machine has all of that, as the data of a fit lie there.
    """
    device, sockets = cluster.device, int(cluster.per_node)
    if device.shared_bytes is not None:
        whole = replace(device, memory_bytes=device.shared_bytes)
        whole = whole.with_provenance(device.known["bandwidth"], "memory_bytes")
        others = (assumed for assumed in cluster.assumed if assumed not in device.assumptions())
        return replace(cluster, device=whole, assumed=(*whole.assumptions(), *others))
    if not device.is_processor or sockets == 1 or float(np.max(cluster.devices)) != sockets:
        return cluster
    machine = replace(
        device,
        memory_bytes=None if device.memory_bytes is None else device.memory_bytes * sockets,
        bandwidth=device.bandwidth * sockets,
        units=device.units * sockets,
        tdp_watts=None if device.tdp_watts is None else device.tdp_watts * sockets,
        peaks={name: peak * sockets for name, peak in device.peaks.items()},
    )
    return replace(cluster, device=machine, devices=1.0, part=f"{sockets} x ")


def settle_classical(plan: Plan, family: str, device: Device) -> ClassicalSpec:
    """Return the parameters of a classical plan with every default filled in; PlanError where one is not allowed."""
    spec = read_spec(CLASSICAL_SPECS[family], plan.model.spec)
    for name in ("precision", "n_jobs"):
        if getattr(spec, name) == AUTO:
            raise PlanError("still auto", hint="choose a mode, or give a value", place=_place(name))
    on_cpu, cores = device.is_processor, int(device.units)
    precision = spec.precision or ("fp64" if on_cpu else "fp32")
    if precision not in device.peaks:
        hint = "use fp32, or give hardware.spec.fp64_tflops"
        raise PlanError(f"no {precision} rate is published", device.name, hint, _place("precision"))
    if on_cpu and int(spec.n_jobs or 1) > cores:
        raise PlanError("more cores than the machine has", f"{spec.n_jobs}", f"allowed: 1 to {cores}", _place("n_jobs"))
    return spec.model_copy(update={"precision": precision, "n_jobs": spec.n_jobs or (cores if on_cpu else None)})


def classical_work(
    spec: ClassicalSpec, family: str, cluster: Cluster, catalog: Catalog, efficiency: float | None = None
) -> Work:
    """Return one fit of a settled plan as neutral work, as one step; ``efficiency`` is that of products in the plan."""
    device, on_cpu = cluster.device, cluster.device.is_processor
    in_place = on_cpu or not device.has_own_memory
    rates = fit_rates(spec, family, device, catalog, efficiency)
    fit = fit_of(spec, rates)
    operators = fit.operators if in_place else (*fit.operators, _transfer(fit.memory["data"], device))
    process = catalog.algorithms[COMMON].bytes["process"] if on_cpu else device.efficiency.context_bytes
    return Work(
        facts=ModelFacts(fit.parameters, fit.parameters, fit.inference_flops, "sample", rates.row.complexity, "rows"),
        memory=fit.memory,
        host_bytes=0.0 if in_place else fit.memory["data"],
        places={fit.peak: sum(fit.memory.values(), start=0.0)},
        fragmentation=0.0,
        context_bytes=context_bytes(process, 0.0, 0.0),
        phases=(Phase("step", operators, fixed_seconds=rates.row.seconds),),
        units_per_step=float(spec.n),
        units_per_sample=1.0,
        steps=1.0,
        model_flops_per_step=sum((operator.flops * operator.count for operator in fit.operators), start=0.0),
        peak_flops=device.peak(str(spec.precision)),
        method=METHOD,
        assumed=(*cluster.assumed, *(() if on_cpu else (GPU_LOOPS,))),
        warnings=(*_limits(spec, rates, cluster), *_conditioning(spec), *_idle(spec, rates, cluster)),
    )


def _transfer(data: Number, device: Device) -> Operator:
    """Return the copy of the data from the host."""
    return Operator("copy to the device", "compute", "step", "layer", 0.0, data, 1.0, device.host_bandwidth)


def _place(name: str) -> Place:
    return Place(field=f"{Key.MODEL_SPEC}.{name}")


def reasonable_rows(family: str, device: Device, catalog: Catalog) -> int:
    """Return the most rows that are fitted in reasonable time and inside memory, with every other default."""
    resolved = settle_classical(Plan(model=ModelSection(name=family)), family, device)
    rates = fit_rates(resolved, family, device, catalog, None)
    memory = np.inf if device.memory_bytes is None else float(np.max(device.memory_bytes))

    def is_reasonable(trial: ClassicalSpec) -> bool:
        fit = fit_of(trial, rates)
        return float(fit_seconds(fit, rates)) <= rates.row.reasonable_seconds and float(fit_bytes(fit)) <= memory

    return largest_rows(resolved.model_copy(update={"n": LARGEST_ROWS}), is_reasonable)


# Significant digits of the types, and the halvings that find a number of rows to a hundredth.
MACHINE_EPSILON = {"fp32": 2.0**-24, "fp64": 2.0**-53}

HALVINGS = 60


def largest_rows(spec: ClassicalSpec, within: Callable[[ClassicalSpec], bool]) -> int:
    """Return the most rows for which a condition still holds, everything else equal; 0 where none does."""
    low, high = 0.0, float(spec.n)
    for _ in range(HALVINGS):
        middle = np.floor((low + high) / 2.0)
        if middle <= low:
            break
        low, high = (middle, high) if within(spec.model_copy(update={"n": int(middle)})) else (low, middle)
    return int(low)


def _limits(spec: ClassicalSpec, rates: Rates, cluster: Cluster) -> Iterator[Note]:
    row, fit = rates.row, fit_of(spec, rates)
    seconds, held = float(fit_seconds(fit, rates)), float(fit_bytes(fit))
    instead = f" Use instead: {row.instead}." if row.instead else ""
    if seconds > row.reasonable_seconds:
        limit = row.reasonable_seconds
        rows = largest_rows(spec, lambda trial: float(fit_seconds(fit_of(trial, rates), rates)) <= limit)
        detail = (
            f"{row.complexity}: {format_number(spec.n)} rows take about {format_seconds(seconds)}; up to about "
            f"{format_count(rows)} rows stay below {format_seconds(limit)}.{instead}"
        )
        yield Note("scales_badly", f"{row.name} is slow at {format_count(float(spec.n))} rows", detail)
    capacity = cluster.device.memory_bytes
    if capacity is not None and held > float(np.max(capacity)):
        room = float(np.max(capacity))
        rows = largest_rows(spec, lambda trial: float(fit_bytes(fit_of(trial, rates))) <= room)
        detail = (
            f"{format_bytes(held)} at the peak, {fit.peak}; memory holds {format_bytes(room)}, enough for about "
            f"{format_count(rows)} rows.{instead}"
        )
        yield Note("too_large", f"{row.name} does not fit into memory", detail)


def _conditioning(spec: ClassicalSpec) -> Iterator[Note]:
    """The Gram matrix has the squared condition number of the data (Higham 2002, chapter 20)."""
    if not isinstance(spec, LinearRegressionNormal):
        return
    epsilon = MACHINE_EPSILON[str(spec.precision)]
    limit = epsilon**-0.5
    if spec.p > spec.n:
        detail = (
            f"{format_number(spec.p)} features against {format_number(spec.n)} rows: add a penalty, or reduce features."
        )
        yield Note("singular", "The Gram matrix is singular", detail)
    if spec.condition is not None and spec.condition * limit**-1 > 0.1:
        digits = max(0.0, -np.log10(epsilon * spec.condition**2))
        detail = (
            f"About {digits:.0f} digits of the result are left in {spec.precision} at a condition number of "
            f"{spec.condition:.3g}; none from {limit:.2g} on. linear_regression_qr keeps "
            f"{max(0.0, -np.log10(epsilon * spec.condition)):.0f}."
        )
        yield Note("ill_conditioned", "The normal equations square the condition number", detail)
    elif spec.condition is None and spec.precision == "fp32":
        detail = (
            f"In fp32 nothing is left of the result from a condition number of {format_number(limit)} on; use fp64 or "
            "linear_regression_qr."
        )
        yield Note("ill_conditioned", "The normal equations square the condition number", detail)


def _idle(spec: ClassicalSpec, rates: Rates, cluster: Cluster) -> Iterator[Note]:
    if float(np.max(cluster.devices)) > 1:
        detail = (
            f"A fit runs on one of {format_number(float(np.max(cluster.devices)))} devices; the others wait and cost."
        )
        yield Note("one_device", "One device does the work", detail)
    if rates.row.single_threaded and cluster.device.is_processor and float(spec.n_jobs or 1) > 1:
        detail = f"{rates.row.library} runs on one core, whatever n_jobs says."
        yield Note("one_core", "One core does the work", detail)


COMMON = "common"  # Row of the catalogue that holds what all algorithms share

FITS: Mapping[type[ClassicalSpec], Callable[..., Fit]] = {
    LinearRegressionNormal: linear.normal_equations,
    LinearRegressionQR: linear.orthogonal_factorization,
    LogisticRegressionNewton: linear.newton,
    LogisticRegressionSGD: linear.stochastic_gradient,
    LinearSVM: linear.coordinate_descent,
    KernelSVM: linear.minimal_optimization,
    DecisionTree: trees.decision_tree,
    RandomForest: trees.random_forest,
    BoostedTrees: trees.boosted_trees,
    KMeans: linear.lloyd,
    PCA: linear.principal_components,
}


def step_range(row: Algorithm, spec: Spec | None) -> Range:
    """Return the ratios of measured to estimated time of an algorithm's fits."""
    basis = f"measured over estimated fits of {row.name}; {row.source}"
    if row.open_range is None or getattr(spec, "iterations", None) is not None:
        return Range(*row.step_range, basis)
    return Range(*row.open_range, f"{basis}; the data decide how many iterations it takes, give iterations to narrow")


def fit_rates(spec: ClassicalSpec, family: str, device: Device, catalog: Catalog, efficiency: float | None) -> Rates:
    """Return what the machine reaches for a settled fit; ``efficiency`` is what the plan says of matrix products."""
    cores = float(spec.n_jobs or device.units) if device.is_processor else float(device.units)
    rates = rates_of(device, catalog.algorithms[family], catalog.algorithms[COMMON], str(spec.precision), cores)
    return rates if efficiency is None else replace(rates, reach=efficiency)


def fit_of(spec: ClassicalSpec, rates: Rates) -> Fit:
    """Return size, memory and kernels of one fit."""
    return FITS[type(spec)](spec, rates)


def fit_seconds(fit: Fit, rates: Rates) -> Number:
    """Seconds of a fit: its kernels one after another."""
    kernels: Number = sum((operator_seconds(operator) * operator.count for operator in fit.operators), start=0.0)
    return kernels + rates.row.seconds


def fit_bytes(fit: Fit) -> Number:
    """Bytes a fit keeps at its peak."""
    return sum(fit.memory.values(), start=0.0)
