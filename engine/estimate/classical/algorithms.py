"""Which algorithm is made of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Algorithm
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.classical import kernel_svm, linear, trees, unsupervised
from capacity_tui.engine.estimate.classical.fit import Fit
from capacity_tui.engine.estimate.classical.rates import Rates, rates_of
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.models.classical import (
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
)
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty import Range

# Row of the catalogue that holds what all algorithms share.
COMMON = "common"
FITS: Mapping[type[ClassicalSpec], Callable[..., Fit]] = {
    LinearRegressionNormal: linear.normal_equations,
    LinearRegressionQR: linear.orthogonal_factorization,
    LogisticRegressionNewton: linear.newton,
    LogisticRegressionSGD: linear.stochastic_gradient,
    LinearSVM: linear.coordinate_descent,
    KernelSVM: kernel_svm.minimal_optimization,
    DecisionTree: trees.decision_tree,
    RandomForest: trees.random_forest,
    BoostedTrees: trees.boosted_trees,
    KMeans: unsupervised.lloyd,
    PCA: unsupervised.principal_components,
}


def step_range(row: Algorithm) -> Range:
    """Return the ratios of measured to estimated time of an algorithm's fits."""
    return Range(*row.step_range, f"measured over estimated fits of {row.name}; {row.source}")


def fit_rates(spec: ClassicalSpec, family: str, device: Device, catalog: Catalog, efficiency: float | None) -> Rates:
    """Return what the machine reaches for a fit whose precision and cores are settled.

    Args:
        spec: parameters of the fit.
        family: name of the algorithm.
        device: what it runs on.
        catalog: facts.
        efficiency: share of the peak that matrix products reach, where the plan says so.
    """
    cores = float(spec.n_jobs or device.units) if device.kind == "cpu" else float(device.units)
    rates = rates_of(device, catalog.algorithms[family], catalog.algorithms[COMMON], str(spec.precision), cores)
    return rates if efficiency is None else replace(rates, reach=efficiency)


def fit_of(spec: ClassicalSpec, rates: Rates) -> Fit:
    """Return size, memory and kernels of one fit."""
    return FITS[type(spec)](spec, rates)


def fit_seconds(fit: Fit, rates: Rates) -> Number:
    """Seconds of a fit: its kernels one after another."""
    kernels: Number = sum((operator_seconds(each) * each.count for each in fit.operators), start=0.0)
    return kernels + rates.row.seconds


def fit_bytes(fit: Fit) -> Number:
    """Bytes a fit keeps at its peak."""
    return sum(fit.memory.values(), start=0.0)
