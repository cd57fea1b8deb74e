"""K-means and principal components as kernels."""

from __future__ import annotations

import math

from capacity_tui.engine.estimate.classical.linear import centred_copy, sparse_work
from capacity_tui.engine.estimate.classical.rates import (
    Fit,
    Rates,
    data_bytes,
    kept_numbers,
    memory_parts,
    prediction_flops,
)
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models import PCA, KMeans
from capacity_tui.engine.numeric import Number


def lloyd(spec: KMeans, rates: Rates) -> Fit:
    """Each iteration: distances ``2 n k p``, nearest centre, new means (Lloyd 1982; Arthur and Vassilvitskii 2007)."""
    n, p, k, element_bytes = float(spec.n), float(spec.p), float(min(spec.k, spec.n)), rates.element_bytes
    expected = float(min(spec.max_iter, spec.iterations or rates.row.ratios["expected_iterations"]))
    starts, iterations = float(spec.n_init), expected * spec.n_init
    trials = 2.0 + math.floor(math.log(k))
    data = data_bytes(spec, element_bytes)
    return Fit(
        parameters=kept_numbers(centres=k * p),
        inference_flops=prediction_flops(distances=2.0 * k * p),
        operators=(
            centred_copy(spec, rates),
            rates.stream(
                "k-means++ starts",
                rates.row.passes["start"] * (k - 1.0) * data,
                flops=2.0 * (k - 1.0) * trials * n * p,
                count=starts,
            ),
            rates.loop("distances to candidates", n * trials, "candidate", count=(k - 1.0) * starts, flops=4.0),
            rates.product("distances", n, k, p, count=iterations, work=sparse_work(spec, rates, 1)),
            rates.loop("nearest centres", n * k, "compare", count=iterations, flops=2.0),
            rates.loop("new means", n * p * spec.density, "value", count=iterations, flops=1.0),
            rates.loop("rows", n, "row", count=iterations, flops=1.0),
        ),
        memory=memory_parts(
            data={"table": data},
            copies={"centred table": data},
            work={
                "vectors over the rows": rates.row.bytes["row"] * n,
                "distances to candidates": trials * n * element_bytes,
                "old and new centres": 2.0 * k * p * element_bytes,
            },
            model={"centres": k * p * element_bytes},
        ),
        peak="during the starts",
    )


def principal_components(spec: PCA, rates: Rates) -> Fit:
    """Return the fit by all singular values, by the covariance, or by a random projection."""
    kernels, work = {"full": _full, "covariance": _covariance, "randomized": _randomized}[spec.method](spec, rates)
    data, kept = data_bytes(spec, rates.element_bytes), spec.components
    copies = rates.row.bytes[f"copies_{spec.method}"] * data
    return Fit(
        parameters=kept_numbers(components=kept * spec.p, means=spec.p),
        inference_flops=prediction_flops(projection=2.0 * kept * spec.p, centring=spec.p),
        operators=kernels,
        memory=memory_parts(
            data={"table": data},
            copies={"copies of the table": copies},
            work={"decomposition": work},
            model={"components": kept * spec.p * rates.element_bytes, "means": spec.p * rates.element_bytes},
        ),
        peak="during the decomposition",
    )


def _full(spec: PCA, rates: Rates) -> tuple[tuple[Operator, ...], Number]:
    """QR with its Q and the left vectors ``6 m s²``, the triangle by divide and conquer ``9 s³``.

    Golub and Van Loan, 8.6; deflation halves the ``20 s³`` of their R-SVD (Gu and Eisenstat 1995).
    """
    long, short = float(max(spec.n, spec.p)), float(min(spec.n, spec.p))
    kernels = (
        centred_copy(spec, rates),
        rates.product("QR factorization and its Q", short, short, long, kernel="qr", work=2.0),
        rates.product("singular value decomposition", short, short, short, kernel="svd", work=4.5),
        rates.product("left singular vectors", long, short, short),
    )
    return kernels, (long * short + 5.0 * short * short) * rates.element_bytes


def _covariance(spec: PCA, rates: Rates) -> tuple[tuple[Operator, ...], Number]:
    """Covariance ``n p²``, eigenvalues ``9 p³`` (Golub and Van Loan, 8.3)."""
    n, p = float(spec.n), float(spec.p)
    kernels = (
        rates.stream("means", data_bytes(spec, rates.element_bytes), flops=n * p),
        rates.product("covariance", p, p, n, kernel="gram", work=0.5 * sparse_work(spec, rates, 2)),
        rates.product("eigenvalue decomposition", p, p, p, kernel="eigen", work=4.5),
    )
    return kernels, 4.0 * p * p * rates.element_bytes


def _randomized(spec: PCA, rates: Rates) -> tuple[tuple[Operator, ...], Number]:
    """``4 q + 2`` products of the data with a thin matrix (Halko et al. 2011)."""
    n, p = float(spec.n), float(spec.p)
    thin = min(spec.components + spec.oversampling, n, p)
    power, sparse = spec.iterations, sparse_work(spec, rates, 1)
    kernels = (
        centred_copy(spec, rates),
        rates.product("products with a thin matrix", n, thin, p, kernel="thin", count=power + 1.0, work=sparse),
        rates.product(
            "products of the transpose", p, thin, n, kernel="thin_transposed", count=power + 1.0, work=sparse
        ),
        rates.product("factorizations of thin matrices", thin, thin, n + p, kernel="thin_qr", count=power + 1.0),
        rates.product("left singular vectors", n, thin, thin),
    )
    return kernels, 3.0 * (n + p) * thin * rates.element_bytes
