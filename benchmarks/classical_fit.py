"""Fit classical models for real and compare time and memory with the estimates.

Needs the dependency group ``measure``. Every fit runs alone in a process with one thread, at least twice; the least
processor time counts. The same process then measures its matrix products and copies, so that what else runs on the
machine slows both. Memory is the peak above the process with its libraries loaded.

Run: ``python benchmarks/classical_fit.py [--calibration] [ALGORITHM ...]``
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# A fit is repeated until it took this long in all, since short ones vary most.
REPEATS, LONG_ENOUGH = (2, 6), 1.5
TARGETS = {"time": 0.25, "memory": 0.20}


@dataclass(frozen=True)
class Case:
    """One fit: the algorithm and its parameters as a plan names them."""

    algorithm: str
    spec: dict[str, object]


def grid(algorithm: str, *sizes: tuple[int, int], **options: object) -> Iterator[Case]:
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
    *grid("pca_svd", (50_000, 50), (20_000, 100), (10_000, 300), (1_500, 500)),
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
    *grid("pca_svd", (30_000, 80), (8_000, 400)),
    *grid("pca_svd", (100_000, 120), method="covariance"),
    *grid("pca_svd", (40_000, 250), method="randomized", n_components=40),
)


def main(wanted: list[str]) -> None:
    errors: dict[str, list[tuple[float, float]]] = {}
    algorithms = [name for name in wanted if name != "--calibration"]
    for case in CALIBRATION if "--calibration" in wanted else HELD_OUT:
        if algorithms and case.algorithm not in algorithms:
            continue
        measured = measure(case)
        seconds, held = predict(Case(case.algorithm, {**case.spec, **measured["spec"]}), measured["rates"])
        taken, used = measured["seconds"], measured["bytes"]
        errors.setdefault(case.algorithm, []).append((seconds / taken, held / used))
        sizes = " ".join(f"{key}={value}" for key, value in {**case.spec, **measured["spec"]}.items())
        time_text = f"{taken:8.3f} s predicted {seconds:8.3f} ({seconds / taken:5.2f})"
        memory_text = f"{used / 1e6:8.1f} MB predicted {held / 1e6:8.1f} ({held / used:5.2f})"
        print(f"{case.algorithm:27} {time_text} {memory_text}  {sizes}", flush=True)
    print("\nmedian absolute error        time  memory   fits")
    for algorithm, ratios in errors.items():
        time_error, memory_error = (statistics.median(abs(pair[i] - 1.0) for pair in ratios) for i in (0, 1))
        verdict = "" if time_error <= TARGETS["time"] and memory_error <= TARGETS["memory"] else "  above the target"
        print(f"{algorithm:27} {time_error:6.0%}  {memory_error:6.0%}  {len(ratios):5}{verdict}")


def rates() -> dict[str, float]:
    """Return what one core reaches now: matrix products by type, FLOP/s, and copies of memory, B/s."""
    found = {}
    for name, kind in (("fp64", np.float64), ("fp32", np.float32)):
        square = np.random.default_rng(0).random((1000, 1000)).astype(kind)
        found[name] = 2 * 1000**3 / fastest(lambda square=square: square @ square)
    source = np.random.default_rng(0).random(8_000_000)
    found["stream"] = 16.0 * source.size / fastest(source.copy)
    return found


def fastest(work: Callable[[], object], repeats: int = 4) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measure(case: Case) -> dict[str, object]:
    """Return seconds and peak bytes of a fit, and what it found out: iterations, support vectors."""
    runs = []
    while len(runs) < REPEATS[0] or (len(runs) < REPEATS[1] and sum(run["seconds"] for run in runs) < LONG_ENOUGH):
        answer = subprocess.run(
            [sys.executable, __file__, "--fit", case.algorithm, json.dumps(case.spec)],
            env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if answer.returncode:
            raise SystemExit(answer.stderr)
        runs.append(json.loads(answer.stdout.splitlines()[-1]))
    return min(runs, key=lambda run: run["seconds"])


def predict(case: Case, rates: dict[str, float]) -> tuple[float, float]:
    """Return seconds and bytes as estimated for one core of this machine."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.cluster.resolve_cluster import efficiency_of
    from capacity_tui.engine.estimate.estimate import estimate_plan
    from capacity_tui.engine.plan.files.loading import plan_from_data

    reach = efficiency_of("CPU", load_catalog())
    spec = {
        "units": 1,
        "fp64_tflops": rates["fp64"] / reach.gemm["fp64"] / 1e12,
        "fp32_tflops": rates["fp32"] / reach.gemm["fp32"] / 1e12,
        "bandwidth_gbs": rates["stream"] / float(reach.stream) / 1e9,
    }
    hardware = {"name": "cpu-4c-2.5ghz-basic", "spec": spec}
    plan = plan_from_data({"model": {"name": case.algorithm, "spec": case.spec}, "hardware": hardware})
    estimate = estimate_plan(plan).estimate
    return float(estimate.computation.step_seconds.value), float(estimate.memory.per_device_bytes.value)


def fit(algorithm: str, spec: dict[str, object]) -> dict[str, object]:
    """Fit once in this process, after a tiny fit that loads what the library loads late."""
    kind = np.float32 if spec["precision"] == "fp32" else np.float64
    rng = np.random.default_rng(1)
    tiny = np.asarray(rng.standard_normal((200, 5)), dtype=kind)
    estimator(algorithm, {**spec, "k": 2, "n_components": 2}).fit(tiny, (tiny[:, 0] > 0).astype(int))
    before = resident("VmRSS")
    features, target = table(rng, int(spec["n"]), int(spec["p"]), kind, clusters=algorithm == "kmeans")
    if algorithm.startswith("linear"):
        target = target.astype(kind)
    model = estimator(algorithm, spec)
    start = time.process_time()
    model.fit(features, target)
    seconds = time.process_time() - start
    held = resident("VmHWM") - before
    return {"seconds": seconds, "bytes": held, "spec": found_out(algorithm, model, spec), "rates": rates()}


def table(rng: np.random.Generator, n: int, p: int, kind: type, clusters: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return features and a noisy binary target that depends on a tenth of them."""
    features = rng.standard_normal((n, p), dtype=kind)
    if clusters:
        features += rng.integers(0, 3, (n, 1)).astype(kind)
    informative = max(2, p // 10)
    score = features[:, :informative].sum(axis=1) / np.sqrt(informative) + 0.5 * rng.standard_normal(n)
    return features, (score > score.mean()).astype(np.int64)


def estimator(algorithm: str, spec: dict[str, object]) -> object:
    """Return the scikit-learn or XGBoost estimator that an algorithm stands for."""
    if algorithm == "xgboost_like":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=spec["n_estimators"], max_depth=spec.get("max_depth", 6),
                             tree_method=spec.get("method", "hist"), n_jobs=1)  # fmt: skip
    from sklearn import cluster, decomposition, ensemble, linear_model, svm, tree

    depth = spec.get("max_depth")
    makers: dict[str, Callable[[], object]] = {
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
            svd_solver={"covariance": "covariance_eigh"}.get(spec.get("method"), spec.get("method", "full"))),
    }  # fmt: skip
    return makers[algorithm]()


def found_out(algorithm: str, model: object, spec: dict[str, object]) -> dict[str, object]:
    """Return what depends on the data alone and a plan has to be told."""
    if algorithm == "logistic_regression_newton":
        return {"iterations": int(np.max(model.n_iter_))}
    if algorithm == "kmeans":
        return {"iterations": int(model.n_iter_)}
    if algorithm == "svm_rbf":
        return {"support_share": float(model.n_support_.sum()) / int(spec["n"])}
    return {}


def resident(kind: str) -> int:
    """Return this process's resident bytes now (``VmRSS``) or at their peak (``VmHWM``)."""
    status = Path("/proc/self/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--fit"]:
        import warnings

        warnings.simplefilter("ignore")
        print(json.dumps(fit(arguments[1], json.loads(arguments[2]))))
    else:
        main(arguments)
