"""Linear models, k-means and principal components as kernels."""

from __future__ import annotations

import math

import numpy as np

from capacity_tui.engine.estimate.classical.rates import (
    Fit,
    Rates,
    data_bytes,
    kept_numbers,
    memory_parts,
    prediction_flops,
)
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models import (
    PCA,
    ClassicalSpec,
    KernelSVM,
    KMeans,
    LinearRegressionNormal,
    LinearRegressionQR,
    LinearSVM,
    LogisticRegressionNewton,
    LogisticRegressionSGD,
)
from capacity_tui.engine.numeric import Number


def centred_copy(spec: ClassicalSpec, rates: Rates) -> Operator:
    """Return the passes that copy the data and subtract its means."""
    moved = rates.row.passes["centre"] * data_bytes(spec, rates.element_bytes)
    return rates.stream("centre a copy of the data", moved, flops=2.0 * spec.n * spec.p * spec.density)


def sparse_work(spec: ClassicalSpec, rates: Rates, power: int) -> float:
    """Return the share of a dense product that sparse operands leave, at the speed of a dense one.

    Sparse loops reach a small part of the dense rate, so that few zeros save nothing.
    """
    return min(1.0, float(rates.sparse_slowdown) * spec.density**power)


def normal_equations(spec: LinearRegressionNormal, rates: Rates) -> Fit:
    """Gram matrix ``n p²`` FLOPs, Cholesky ``p³/3``, two triangular solves (Golub and Van Loan, 5.3.2)."""
    n, p, element_bytes = float(spec.n), float(spec.p), rates.element_bytes
    data = data_bytes(spec, element_bytes)
    return Fit(
        parameters=kept_numbers(coefficients=p, intercept=1.0),
        inference_flops=prediction_flops(products=2.0 * p),
        operators=(
            centred_copy(spec, rates),
            rates.product("Gram matrix", p, p, n, kernel="gram", work=0.5 * sparse_work(spec, rates, 2)),
            rates.stream("right-hand side", data + n * element_bytes, flops=2.0 * n * p * spec.density),
            rates.product("Cholesky factorization", p, p, p, kernel="cholesky", work=1.0 / 6.0),
            rates.stream("triangular solves", 2.0 * p * p * element_bytes, flops=2.0 * p * p),
        ),
        memory=memory_parts(
            data={"table": data, "targets": n * element_bytes},
            copies={"centred table": data, "centred targets": n * element_bytes},
            work={"Gram matrix and its factor": 2.0 * p * p * element_bytes},
            model={"coefficients": p * element_bytes, "intercept": element_bytes},
        ),
        peak="while the Gram matrix is formed",
    )


def orthogonal_factorization(spec: LinearRegressionQR, rates: Rates) -> Fit:
    """Householder QR ``2 m s² - 2/3 s³``, then the small triangle by singular values, ``8/3 s³``.

    With m the longer and s the shorter side (Golub and Van Loan, 5.3.3; LAPACK gelsd).
    """
    long, short = float(max(spec.n, spec.p)), float(min(spec.n, spec.p))
    element_bytes, data = rates.element_bytes, data_bytes(spec, rates.element_bytes)
    return Fit(
        parameters=kept_numbers(coefficients=spec.p, intercept=1.0),
        inference_flops=prediction_flops(products=2.0 * spec.p),
        operators=(
            centred_copy(spec, rates),
            rates.product("QR factorization", short, short, long, kernel="qr", work=1.0 - short / (3.0 * long)),
            rates.panels("panels of the factorization", long, short),
            rates.product("singular values of the triangle", short, short, short, kernel="bidiagonal", work=4.0 / 3.0),
        ),
        memory=memory_parts(
            data={"table": data, "targets": spec.n * element_bytes},
            copies={"copies of the table": rates.row.bytes["copies"] * data, "centred targets": spec.n * element_bytes},
            work={"triangle and its inverse": 2.0 * short * short * element_bytes},
            model={"coefficients": spec.p * element_bytes, "intercept": element_bytes},
        ),
        peak="while the copy of the data is factorized",
    )


def newton(spec: LogisticRegressionNewton, rates: Rates) -> Fit:
    """Each iteration: gradient ``4 n p``, Hessian ``2 n p²``, Cholesky ``p³/3``."""
    n, p, element_bytes, steps = float(spec.n), float(spec.p), rates.element_bytes, float(spec.iterations)
    data = data_bytes(spec, element_bytes)
    moved, flops = rates.row.passes["step"] * data, 6.0 * n * p * spec.density
    return Fit(
        parameters=kept_numbers(coefficients=p, intercept=1.0),
        inference_flops=prediction_flops(products=2.0 * p, logistic=4.0),
        operators=(
            rates.stream("weighted copy, gradient and line search", moved, flops=flops, count=steps),
            rates.loop("logistic function", n, "logistic", count=steps, flops=10.0),
            rates.product("Hessian", p, p, n, kernel="hessian", count=steps, work=sparse_work(spec, rates, 2)),
            rates.product("Cholesky factorization", p, p, p, kernel="cholesky", count=steps, work=1.0 / 6.0),
        ),
        memory=memory_parts(
            data={"table": data, "targets": 8.0 * n},
            copies={"copy of the table": data},
            work={
                "Hessian and its factor": 2.0 * p * p * element_bytes,
                "vectors over the rows": rates.row.bytes["row"] * n,
            },
            model={"coefficients": p * element_bytes, "intercept": element_bytes},
        ),
        peak="while the Hessian is formed",
    )


def stochastic_gradient(spec: LogisticRegressionSGD, rates: Rates) -> Fit:
    """Each epoch visits every value of every row twice: ``4 n p`` FLOPs.

    Batches beyond one row run as products of matrix and vector, with the fixed time of an update.
    """
    n, values, epochs = float(spec.n), float(spec.n) * spec.p * spec.density, float(spec.epochs)
    element_bytes, data = rates.element_bytes, data_bytes(spec, rates.element_bytes)
    if spec.batch_size > 1:
        steps = -(-spec.n // spec.batch_size)
        kernels: tuple[Operator, ...] = (
            rates.stream("gradients", 2.0 * data, flops=4.0 * values, count=epochs),
            rates.loop("updates", float(steps), "update", count=epochs, flops=4.0 * spec.p),
        )
    else:
        kernels = (
            rates.loop("products and updates", values, "value", count=epochs, flops=4.0),
            rates.loop("rows", n, "row", count=epochs, flops=10.0),
            rates.misses(n, data, count=epochs),
        )
    return Fit(
        parameters=kept_numbers(coefficients=spec.p, intercept=1.0),
        inference_flops=prediction_flops(products=2.0 * spec.p, logistic=4.0),
        operators=kernels,
        memory=memory_parts(
            data={"table": data, "targets": 8.0 * n},
            work={"vectors over the rows": rates.row.bytes["row"] * n},
            model={"coefficients": spec.p * element_bytes, "intercept": element_bytes},
        ),
        peak="during the epochs",
    )


def coordinate_descent(spec: LinearSVM, rates: Rates) -> Fit:
    """Each pass visits every value twice; values are first copied with their index (Fan et al. 2008)."""
    n, values, passes = float(spec.n), float(spec.n) * spec.p * spec.density, float(spec.iterations)
    element_bytes, data = rates.element_bytes, data_bytes(spec, rates.element_bytes)
    copied = rates.row.bytes["value"] * (values + 2.0 * n)
    return Fit(
        parameters=kept_numbers(coefficients=spec.p, intercept=1.0),
        inference_flops=prediction_flops(products=2.0 * spec.p),
        operators=(
            rates.loop("copy into rows of index and value", values, "copy", flops=1.0),
            rates.loop("products and updates", values, "value", count=passes, flops=4.0),
            rates.loop("rows", n, "row", count=passes, flops=10.0),
            rates.misses(n, copied, count=passes),
        ),
        memory=memory_parts(
            data={"table": data, "targets": 8.0 * n},
            copies={"rows of index and value": copied},
            work={"vectors over the rows": rates.row.bytes["row"] * n},
            model={"coefficients": spec.p * element_bytes, "intercept": element_bytes},
        ),
        peak="during the passes",
    )


CACHED_BYTES = 4.0  # The cache keeps kernel values in single precision


kernel_columns = formula()  # Columns of the kernel matrix that are computed, those the cache lost several times


def minimal_optimization(spec: KernelSVM, rates: Rates) -> Fit:
    """Iterations grow with the support vectors; each looks at all rows and needs two kernel columns."""
    n, p, support = float(spec.n), float(spec.p), spec.support_vectors
    row, element_bytes = rates.row, rates.element_bytes
    values = n * p * spec.density
    data, cache = data_bytes(spec, element_bytes), spec.cache_mb * 2.0**20
    iterations = row.ratios["iterations"] * support
    columns = kernel_columns(row.ratios["columns"] * support, cache / (CACHED_BYTES * n), row.ratios["again"])
    return Fit(
        parameters=kept_numbers(**{"support vectors": support * p, "their weights": support, "intercept": 1.0}),
        inference_flops=prediction_flops(distances=support * 3.0 * p, kernels=support * 10.0),
        operators=(
            rates.loop("kernel products", columns * values, "value", flops=2.0),
            rates.loop("kernel values", columns * n, "kernel", flops=12.0),
            rates.loop("working sets and gradients", iterations * n, "row", flops=6.0),
        ),
        memory=memory_parts(
            data={"table": data, "targets": 8.0 * n},
            copies={"copy of the table": 8.0 * values if spec.density >= 1.0 else 12.0 * values},
            work={
                "cached kernel columns": np.minimum(cache, CACHED_BYTES * n * np.minimum(columns, n)),
                "vectors over the rows": row.bytes["row"] * n,
            },
            model={"support vectors": support * p * 8.0, "their weights and indices": support * 16.0},
        ),
        peak="while the kernel cache is full",
    )


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
    kernels, work = {"full": _full, "covariance": _covariance, "randomized": _randomized}[spec.solver](spec, rates)
    data, kept = data_bytes(spec, rates.element_bytes), spec.components
    copies = rates.row.bytes[f"copies_{spec.solver}"] * data
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
        rates.panels("panels of the factorization", long, short),
        rates.panels("panels of its Q", long, short),
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
