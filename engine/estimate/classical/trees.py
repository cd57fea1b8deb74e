"""Decision trees, random forests and boosted trees as kernels."""

from __future__ import annotations

import math

from capacity_tui.engine.estimate.classical.rates import (
    Fit,
    Rates,
    data_bytes,
    kept_numbers,
    memory_parts,
    prediction_flops,
)
from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models import BoostedTrees, DecisionTree, RandomForest
from capacity_tui.engine.numeric import Number


@equation
def grown_levels(depth: Number, growth: Number, rows: Number, smallest: Number) -> Number:
    """Levels that every row passes on its way to a pure leaf, at most ``depth``."""
    return min(depth, max(1.0, growth * math.log2(max(2.0, rows / smallest))))


@equation
def sort_depth(levels: Number, rows: Number) -> Number:
    """Comparisons of one value of one feature, over all levels of a tree."""
    whole = math.log2(max(2.0, rows))
    falling = min(levels, whole)
    return falling * (2.0 * whole - falling + 1.0) / 2.0


def decision_tree(spec: DecisionTree, rates: Rates) -> Fit:
    """Every node sorts its rows by every feature and scans them for the best split (Breiman et al. 1984)."""
    depth = float(spec.max_depth or math.inf)
    levels, leaves = _grown(float(spec.n), depth, spec.min_samples_split, rates)
    visited = float(spec.n) * spec.p * spec.density
    nodes = 2.0 * leaves - 1.0
    return Fit(
        parameters=kept_numbers(nodes=3.0 * nodes),
        inference_flops=prediction_flops(levels=2.0 * levels),
        operators=_exact_splits(visited, levels, float(spec.n), rates, 1.0),
        memory=memory_parts(**_tree_memory(spec, rates), model={"nodes": rates.row.bytes["node"] * nodes}),
        peak="while the tree grows",
    )


def random_forest(spec: RandomForest, rates: Rates) -> Fit:
    """Trees on bootstrap samples, which hold ``1 - 1/e`` of the rows; splits look at some features (Breiman 2001)."""
    drawn = float(spec.n) * (1.0 - math.exp(-1.0))
    depth = float(spec.max_depth or math.inf)
    levels, leaves = _grown(drawn, depth, spec.min_samples_split, rates)
    trees, nodes = float(spec.n_estimators), 2.0 * leaves - 1.0
    visited = drawn * spec.features * spec.density
    return Fit(
        parameters=kept_numbers(nodes=3.0 * nodes * trees),
        inference_flops=prediction_flops(levels=2.0 * levels * trees),
        operators=(
            *_exact_splits(visited, levels, drawn, rates, trees),
            rates.loop("rows", float(spec.n), "row", count=trees),
        ),
        memory=memory_parts(
            **_tree_memory(spec, rates, rates.cores), model={"nodes": rates.row.bytes["node"] * nodes * trees}
        ),
        peak="when the last trees are grown",
    )


def boosted_trees(spec: BoostedTrees, rates: Rates) -> Fit:
    """Each tree visits the values of its rows and features level by level (Chen and Guestrin 2016).

    Of several classes each has a tree a round (Friedman 2001), and a gradient pair and a margin of every row.
    """
    trees, leaves, depth = spec.trees, spec.leaves, float(spec.max_depth)
    levels = min(depth, max(1.0, math.log2(leaves) * (rates.row.ratios["leafwise"] if spec.max_leaves else 1.0)))
    values = float(spec.n) * spec.p * spec.density
    sampled = values * spec.subsample * spec.colsample
    rows = float(spec.n) * spec.subsample
    operators = _histogram_splits if spec.method == "hist" else _sorted_splits
    nodes = 2.0 * leaves - 1.0
    row, data = rates.row, data_bytes(spec, rates.element_bytes)
    bins = 1.0 if spec.n_bins <= 256 else 2.0
    copies = row.bytes["binned"] * bins * values if spec.method == "hist" else row.bytes["sorted"] * values
    histograms = row.bytes["bin"] * spec.n_bins * spec.p * leaves if spec.method == "hist" else 0.0
    vectors = row.bytes["row"] + row.bytes["class"] * (spec.trees_of_a_round - 1)
    return Fit(
        parameters=kept_numbers(nodes=3.0 * nodes * trees),
        inference_flops=prediction_flops(levels=2.0 * levels * trees),
        operators=(
            *operators(spec, rates, values, sampled, levels),
            rates.loop("gradients, partitions and predictions", rows, "row", count=trees * levels, flops=6.0),
        ),
        memory=memory_parts(
            data={"table": data, "targets": 8.0 * spec.n},
            copies={"binned table" if spec.method == "hist" else "sorted columns": copies},
            work={"histograms": histograms, "vectors over the rows": vectors * spec.n},
            model={"nodes": row.bytes["node"] * nodes * trees},
        ),
        peak="while a tree grows",
    )


def _histogram_splits(
    spec: BoostedTrees, rates: Rates, values: Number, sampled: Number, levels: Number
) -> tuple[Operator, ...]:
    """Bin once; then build the histograms of the smaller child of each split and subtract for the other.

    Bins of dense tables are bytes at fixed places; those of sparse ones have their feature beside them.
    """
    trees, histogram = spec.trees, "histogram" if spec.density == 1.0 else "sparse_histogram"
    visited = sampled * (1.0 + 0.5 * (levels - 1.0))
    searched = spec.leaves * spec.p * spec.colsample * spec.n_bins
    return (
        rates.loop("quantiles and bins", values, "bin", flops=2.0),
        rates.loop("histograms", visited, histogram, count=trees, flops=2.0),
        rates.loop("search for splits", searched, "split", count=trees, flops=6.0),
    )


def _sorted_splits(
    spec: BoostedTrees, rates: Rates, values: Number, sampled: Number, levels: Number
) -> tuple[Operator, ...]:
    """Sort the columns once; then scan them on every level."""
    comparisons = values * math.log2(max(2.0, float(spec.n)))
    return (
        rates.loop("sort the columns", comparisons, "compare", flops=1.0),
        rates.loop("scans for splits", sampled, "scan", count=spec.trees * levels, flops=6.0),
    )


def _grown(rows: float, depth: float, smallest: int, rates: Rates) -> tuple[float, float]:
    """Return the levels and the leaves of a tree grown until its leaves are pure, or to a depth."""
    ratios = rates.row.ratios
    levels = float(grown_levels(depth, ratios["growth"], rows, smallest / 2.0))
    leaves = max(1.0, min(2.0 ** min(depth, 60.0), ratios["leaves"] * rows / (smallest / 2.0)))
    return levels, leaves


def _exact_splits(visited: float, levels: float, rows: float, rates: Rates, trees: float) -> tuple[Operator, ...]:
    comparisons = visited * float(sort_depth(levels, rows))
    return (
        rates.loop("gather and scan", visited * levels, "visit", count=trees, flops=6.0),
        rates.loop("sort the rows of each node", comparisons, "compare", count=trees, flops=1.0),
    )


def _tree_memory(
    spec: DecisionTree | RandomForest, rates: Rates, at_once: Number = 1.0
) -> dict[str, dict[str, Number]]:
    """Return data, the library's fp32 copy and the arrays of the trees that grow at once."""
    row = rates.row
    copied = 0.0 if rates.element_bytes == 4.0 and spec.density >= 1.0 else 4.0 * spec.n * spec.p * spec.density
    return {
        "data": {"table": data_bytes(spec, rates.element_bytes), "targets": 8.0 * spec.n},
        "copies": {"fp32 table": copied, "targets": row.bytes["target"] * spec.n},
        "work": {"vectors of growing trees": row.bytes["row"] * spec.n * at_once},
    }
