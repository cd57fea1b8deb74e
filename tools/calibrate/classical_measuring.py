"""Fits of classical models for real: their time and memory, beside what the machine reached in the same process.

Needs the dependency group ``measure``. Every fit runs alone in a process with one thread, at least twice; the least
processor time counts. The same process then measures its matrix products and copies, so that what else runs on the
machine slows both. Memory is the peak above the process with its libraries loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# A fit is repeated until it took this long in all, since short ones vary most.
REPEATS, LONG_ENOUGH = (2, 6), 1.5

# The solver of each way to find principal components.
SOLVERS = {"covariance": "covariance_eigh"}

Spec = Mapping[str, str | int | float]
Table = NDArray[np.float32 | np.float64]
Target = NDArray[np.float32 | np.float64 | np.int64]


@dataclass(frozen=True)
class Case:
    """One fit: the algorithm and its parameters as a plan names them."""

    algorithm: str
    spec: Spec


@dataclass(frozen=True)
class Measured:
    """One fit as it was measured."""

    algorithm: str  # its name in plans
    spec: Spec  # its parameters, with what the data alone decide: iterations, support vectors
    seconds: float  # processor time
    bytes: float  # peak of memory
    rates: Mapping[str, float]  # what one core reached: matrix products by type, FLOP/s, and copies (``stream``), B/s


class Estimator(Protocol):
    """What scikit-learn and XGBoost have in common."""

    def fit(self, features: Table, target: Target) -> object:
        """Fit the model."""


def grid(algorithm: str, *sizes: tuple[int, int], **options: str | int | float) -> Iterator[Case]:
    """Yield one case a size, rows by features."""
    for n, p in sizes:
        yield Case(algorithm, {"n": n, "p": p, "precision": "fp64", **options})


# The constants of profiles/algorithms.yaml were set on these.
CALIBRATION = (
    *grid("linear_regression_normal", (200_000, 20), (500_000, 20), (50_000, 200), (100_000, 100), (20_000, 500)),
    *grid("linear_regression_normal", (200_000, 100), (30_000, 800), precision="fp32"),
    *grid("linear_regression_qr", (200_000, 20), (100_000, 50), (50_000, 100), (20_000, 200), (5_000, 600)),
    *grid("linear_regression_qr", (50_000, 150), precision="fp32"),
    *grid("logistic_regression_newton", (200_000, 20), (100_000, 50), (50_000, 100), (10_000, 400)),
    *grid("logistic_regression_sgd", (50_000, 20), (20_000, 100), (100_000, 20), (5_000, 1000), epochs=10),
    *grid("svm_linear", (20_000, 20), (20_000, 100), (5_000, 400), (50_000, 50), iterations=20),
    *grid("svm_rbf", (1_500, 20), (3_000, 20), (6_000, 20), (3_000, 100), (2_000, 400), (10_000, 10)),
    *grid("decision_tree", (20_000, 20), (50_000, 20), (10_000, 100), (100_000, 10)),
    *grid("decision_tree", (50_000, 50), (200_000, 20), max_depth=6),
    *grid("random_forest", (10_000, 20), (20_000, 100), (50_000, 20), n_estimators=10),
    *grid("random_forest", (50_000, 50), (20_000, 200), n_estimators=20, max_depth=8),
    *grid("xgboost_like", (50_000, 20), (200_000, 20), (20_000, 200), (100_000, 100), n_estimators=20),
    *grid("xgboost_like", (50_000, 50), (200_000, 20), n_estimators=20, max_depth=10),
    *grid("xgboost_like", (20_000, 20), (50_000, 50), (10_000, 200), n_estimators=10, method="exact"),
    *grid("kmeans", (100_000, 20), (200_000, 10), (20_000, 200), k=10, iterations=20),
    *grid("kmeans", (50_000, 20), (20_000, 100), k=100, iterations=20),
    *grid("pca_svd", (50_000, 50), (20_000, 100), (10_000, 300), (1_500, 500), method="full"),
    *grid("pca_svd", (200_000, 50), (20_000, 400), method="covariance"),
    *grid("pca_svd", (20_000, 400), (5_000, 1_000), (100_000, 100), method="randomized", n_components=20),
)

# These sizes and settings the constants have not seen.
HELD_OUT = (
    *grid("linear_regression_normal", (300_000, 40), (60_000, 150), (15_000, 700)),
    *grid("linear_regression_normal", (100_000, 300), precision="fp32"),
    *grid("linear_regression_qr", (120_000, 30), (40_000, 80), (12_000, 300)),
    *grid("linear_regression_qr", (30_000, 250), precision="fp32"),
    *grid("logistic_regression_newton", (120_000, 30), (70_000, 80), (20_000, 250)),
    *grid("logistic_regression_sgd", (30_000, 50), (80_000, 40), (8_000, 500), epochs=15),
    *grid("svm_linear", (30_000, 30), (10_000, 200), (40_000, 80), iterations=15),
    *grid("svm_rbf", (2_500, 50), (4_500, 30), (5_000, 200), (12_000, 15)),
    *grid("decision_tree", (30_000, 30), (15_000, 60), (150_000, 5)),
    *grid("decision_tree", (80_000, 40), max_depth=10),
    *grid("random_forest", (30_000, 40), (15_000, 15), n_estimators=15),
    *grid("random_forest", (100_000, 30), n_estimators=8, max_depth=12),
    *grid("xgboost_like", (80_000, 40), (30_000, 120), n_estimators=30, max_depth=8),
    *grid("xgboost_like", (300_000, 10), n_estimators=40, max_depth=4),
    *grid("xgboost_like", (40_000, 30), n_estimators=15, method="exact", max_depth=4),
    *grid("kmeans", (150_000, 30), (30_000, 150), k=20, iterations=15),
    *grid("kmeans", (20_000, 50), k=200, iterations=10),
    *grid("pca_svd", (30_000, 80), (8_000, 400), method="full"),
    *grid("pca_svd", (100_000, 120), method="covariance"),
    *grid("pca_svd", (40_000, 250), method="randomized", n_components=40),
)


def measure(cases: Iterable[Case]) -> Iterator[Measured]:
    """Yield each case as measured, in a process of its own."""
    for case in cases:
        runs: list[Measured] = []
        while len(runs) < REPEATS[0] or (len(runs) < REPEATS[1] and sum(run.seconds for run in runs) < LONG_ENOUGH):
            runs.append(_alone(case))
        yield min(runs, key=lambda run: run.seconds)


def read_measured(path: Path) -> tuple[Measured, ...]:
    """Return the fits of a file, one JSON object a line."""
    return tuple(Measured(**json.loads(line)) for line in path.read_text("utf-8").splitlines())


def append_measured(path: Path, measured: Measured) -> None:
    """Add a fit to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(measured)) + "\n")


def _alone(case: Case) -> Measured:
    command = [sys.executable, "-m", __spec__.name, case.algorithm, json.dumps(dict(case.spec))]
    answer = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(answer.stderr)
    return Measured(**json.loads(answer.stdout.splitlines()[-1]))


def rates() -> dict[str, float]:
    """Return what one core reaches now: matrix products by type, FLOP/s, and copies of memory, B/s."""
    found = {}
    for name, kind in (("fp64", np.float64), ("fp32", np.float32)):
        square = np.random.default_rng(0).random((1000, 1000)).astype(kind)
        found[name] = 2 * 1000**3 / fastest(partial(np.matmul, square, square))
    source = np.random.default_rng(0).random(8_000_000)
    found["stream"] = 16.0 * source.size / fastest(source.copy)
    return found


def fastest(work: Callable[[], object], repeats: int = 4) -> float:
    """Return the least processor time of some work, s."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def fit(algorithm: str, spec: Spec) -> Measured:
    """Fit once in this process, after a tiny fit that loads what the library loads late."""
    kind = np.float32 if spec["precision"] == "fp32" else np.float64
    rng = np.random.default_rng(1)
    tiny: Table = rng.standard_normal((200, 5)).astype(kind)
    estimator(algorithm, {**spec, "k": 2, "n_components": 2}).fit(tiny, (tiny[:, 0] > 0).astype(np.int64))
    before = resident("VmRSS")
    features, classes = table(rng, int(spec["n"]), int(spec["p"]), kind, clusters=algorithm == "kmeans")
    target: Target = classes.astype(kind) if algorithm.startswith("linear") else classes
    model = estimator(algorithm, spec)
    start = time.process_time()
    model.fit(features, target)
    seconds = time.process_time() - start
    held = resident("VmHWM") - before
    return Measured(algorithm, {**spec, **found_out(algorithm, model, spec)}, seconds, held, rates())


def table(
    rng: np.random.Generator, n: int, p: int, kind: type[np.float32 | np.float64], *, clusters: bool
) -> tuple[Table, NDArray[np.int64]]:
    """Return features and a noisy binary target that depends on a tenth of them."""
    features: Table = rng.standard_normal((n, p), dtype=kind)
    if clusters:
        features += rng.integers(0, 3, (n, 1)).astype(kind)
    informative = max(2, p // 10)
    score = features[:, :informative].sum(axis=1) / np.sqrt(informative) + 0.5 * rng.standard_normal(n)
    return features, (score > score.mean()).astype(np.int64)


def estimator(algorithm: str, spec: Spec) -> Estimator:
    """Return the scikit-learn or XGBoost estimator that an algorithm stands for."""
    if algorithm == "xgboost_like":
        from xgboost import XGBClassifier

        boosted: Estimator = XGBClassifier(
            n_estimators=spec["n_estimators"],
            max_depth=spec.get("max_depth", 6),
            tree_method=spec.get("method", "hist"),
            n_jobs=1,
        )
        return boosted
    from sklearn import cluster, decomposition, ensemble, linear_model, svm, tree

    depth = spec.get("max_depth")
    makers: dict[str, Callable[[], Estimator]] = {
        "linear_regression_normal": lambda: linear_model.Ridge(alpha=1e-6, solver="cholesky"),
        "linear_regression_qr": linear_model.LinearRegression,
        "logistic_regression_newton": lambda: linear_model.LogisticRegression(solver="newton-cholesky"),
        "logistic_regression_sgd": lambda: linear_model.SGDClassifier(
            loss="log_loss", max_iter=spec["epochs"], tol=None, random_state=0),
        "svm_linear": lambda: svm.LinearSVC(dual=True, tol=1e-12, max_iter=spec["iterations"], random_state=0),
        "svm_rbf": svm.SVC,
        "decision_tree": lambda: tree.DecisionTreeClassifier(max_depth=depth, random_state=0),
        "random_forest": lambda: ensemble.RandomForestClassifier(
            spec["n_estimators"], max_depth=depth, n_jobs=1, random_state=0),
        "kmeans": lambda: cluster.KMeans(spec["k"], n_init=1, max_iter=spec["iterations"], tol=0, random_state=0),
        "pca_svd": lambda: decomposition.PCA(
            spec.get("n_components"), random_state=0,
            svd_solver=SOLVERS.get(str(spec.get("method", "full")), spec.get("method", "full"))),
    }  # fmt: skip
    return makers[algorithm]()


def found_out(algorithm: str, model: Estimator, spec: Spec) -> Spec:
    """Return what depends on the data alone and a plan has to be told."""
    if algorithm in ("logistic_regression_newton", "kmeans"):
        return {"iterations": int(np.max(getattr(model, "n_iter_")))}
    if algorithm == "svm_rbf":
        return {"support_share": float(np.sum(getattr(model, "n_support_"))) / int(spec["n"])}
    return {}


def resident(kind: str) -> int:
    """Return this process's resident bytes now (``VmRSS``) or at their peak (``VmHWM``)."""
    status = Path("/proc/self/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asdict(fit(sys.argv[1], json.loads(sys.argv[2])))))
