"""What a plan may say about each classical algorithm, with the defaults of the usual libraries."""

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from capacity_tui.engine.models.spec import LARGEST_ROWS, LARGEST_SIZE, Automatic, Rows, Share, Size, Spec
from capacity_tui.engine.schema import Knob

_PRECISIONS = {"float32": "fp32", "single": "fp32", "float64": "fp64", "double": "fp64"}


def _precision(value: object) -> object:
    return _PRECISIONS.get(value, value) if isinstance(value, str) else value


class ClassicalSpec(Spec):
    """What every algorithm has: a table of numbers, and the cores that work on it."""

    n: Annotated[Rows, Knob("Rows", "power-of-two", "data", "rows", 1, LARGEST_ROWS, help="training samples")] = 100_000
    p: Annotated[Size, Knob("Features", "power-of-two", "data", "", 1, LARGEST_SIZE, help="columns after encoding")] = (
        100
    )
    density: Annotated[
        Share, Knob("Density", "number", "data", "", 0, 1, 0.05, help="share of values that are not zero")
    ] = 1.0
    precision: Annotated[
        Literal["fp32", "fp64", "auto"] | None,
        BeforeValidator(_precision),
        Knob(
            "Precision",
            "choice",
            "data",
            choices=("fp32", "fp64"),
            automatic=True,
            help="type of the numbers; fp64 on CPUs and fp32 on GPUs unless given",
            role="setting",
        ),
    ] = None
    n_jobs: Annotated[
        Size | Automatic | None,
        Knob(
            "Cores",
            "power-of-two",
            "data",
            "cores",
            1,
            4096,
            automatic=True,
            help="all of the machine unless given",
            role="setting",
            needs=("processors",),
            keeps_result=True,
        ),
    ] = None


class LinearRegressionNormal(ClassicalSpec):
    """Least squares by the normal equations: Gram matrix and Cholesky."""

    condition: Annotated[
        Annotated[float, Field(ge=1, le=1e300)] | None,
        Knob("Condition number", "number", "algorithm", "", 1, 1e300, 10, help="of the data, where it is known"),
    ] = None


class LinearRegressionQR(ClassicalSpec):
    """Least squares by orthogonal factorization."""


class LogisticRegressionNewton(ClassicalSpec):
    """Logistic regression by Newton's method with a Cholesky solve."""

    other_names: ClassVar[Mapping[str, str]] = {"k": "iterations", "max_iter": "iterations"}

    iterations: Annotated[
        Size, Knob("Iterations", "integer", "algorithm", "", 1, 10_000, help="Newton steps until it converges")
    ] = 7


class LogisticRegressionSGD(ClassicalSpec):
    """Logistic regression by stochastic gradient descent."""

    other_names: ClassVar[Mapping[str, str]] = {"k": "epochs", "max_iter": "epochs"}

    epochs: Annotated[Size, Knob("Epochs", "power-of-two", "algorithm", "", 1, 10**6, help="passes over the data")] = (
        100
    )
    batch_size: Annotated[
        Size, Knob("Batch", "power-of-two", "algorithm", "rows", 1, 2**20, help="rows of one update; 1 in scikit-learn")
    ] = 1


class LinearSVM(ClassicalSpec):
    """Linear support vector machine by dual coordinate descent."""

    other_names: ClassVar[Mapping[str, str]] = {"k": "iterations", "max_iter": "iterations"}

    iterations: Annotated[
        Size, Knob("Iterations", "power-of-two", "algorithm", "", 1, 10**6, help="passes until it converges")
    ] = 100


class KernelSVM(ClassicalSpec):
    """Support vector machine with a radial basis function kernel, by sequential minimal optimization."""

    other_names: ClassVar[Mapping[str, str]] = {"cache_size": "cache_mb"}

    support_share: Annotated[
        Share, Knob("Support vectors", "number", "algorithm", "", 0, 1, 0.05, help="share of the rows that end as such")
    ] = 0.3
    max_support_vectors: Annotated[
        Rows | None,
        Knob(
            "At most",
            "power-of-two",
            "algorithm",
            "rows",
            1,
            LARGEST_ROWS,
            help="support vectors, whatever their share",
        ),
    ] = None
    cache_mb: Annotated[
        Annotated[float, Field(gt=0, le=1e7)],
        Knob(
            "Kernel cache", "power-of-two", "algorithm", "MB", 1, 10_000_000, help="columns of the kernel matrix kept"
        ),
    ] = 200.0
    gamma: Annotated[
        Annotated[float, Field(gt=0)] | Literal["scale", "auto"],
        Knob("Gamma", "text", "algorithm", help="width of the kernel; changes the support vectors, not the formulas"),
    ] = "scale"

    @property
    def support_vectors(self) -> float:
        """Rows that the fitted model keeps."""
        most = self.n if self.max_support_vectors is None else min(self.n, self.max_support_vectors)
        return max(1.0, min(self.support_share * self.n, float(most)))


class TreeSpec(ClassicalSpec):
    """What trees have: how deep they grow."""

    max_depth: Annotated[
        Size | None, Knob("Depth", "integer", "algorithm", "", 1, 1000, help="levels of a tree; until leaves are pure")
    ] = None


class DecisionTree(TreeSpec):
    """One classification or regression tree (CART), every split tried."""

    min_samples_split: Annotated[
        Size, Knob("Rows to split", "integer", "algorithm", "rows", 2, LARGEST_SIZE, help="smaller nodes become leaves")
    ] = 2


class RandomForest(TreeSpec):
    """Trees on bootstrap samples, each split tried on some of the features."""

    other_names: ClassVar[Mapping[str, str]] = {"trees": "n_estimators", "n_trees": "n_estimators"}

    n_estimators: Annotated[Size, Knob("Trees", "power-of-two", "algorithm", "", 1, 10**6, help="of the ensemble")] = (
        100
    )
    max_features: Annotated[
        Size | Literal["sqrt", "all"], Knob("Features a split", "text", "algorithm", help="a number, sqrt, or all")
    ] = "sqrt"
    min_samples_split: Annotated[
        Size, Knob("Rows to split", "integer", "algorithm", "rows", 2, LARGEST_SIZE, help="smaller nodes become leaves")
    ] = 2

    @property
    def features(self) -> float:
        """Features that a split is tried on."""
        if self.max_features == "all":
            return float(self.p)
        return (
            max(1.0, math.floor(math.sqrt(self.p))) if self.max_features == "sqrt" else min(self.max_features, self.p)
        )


class BoostedTrees(ClassicalSpec):
    """Gradient boosting with second-order gradients; splits from histograms or exact."""

    other_names: ClassVar[Mapping[str, str]] = {
        "trees": "n_estimators",
        "n_trees": "n_estimators",
        "tree_method": "method",
        "max_bin": "n_bins",
        "max_bins": "n_bins",
        "num_leaves": "max_leaves",
        "colsample_bytree": "colsample",
        "num_class": "n_classes",
    }

    method: Annotated[
        Literal["hist", "exact"],
        Knob(
            "Splits", "choice", "algorithm", choices=("hist", "exact"), help="from histograms, or from sorted columns"
        ),
    ] = "hist"
    n_estimators: Annotated[Size, Knob("Trees", "power-of-two", "algorithm", "", 1, 10**6, help="of the ensemble")] = (
        100
    )
    max_depth: Annotated[Size, Knob("Depth", "integer", "algorithm", "", 1, 64, help="levels of a tree")] = 6
    max_leaves: Annotated[
        Size | None,
        Knob(
            "Leaves", "power-of-two", "algorithm", "", 2, LARGEST_SIZE, help="most leaves of a tree grown leaf by leaf"
        ),
    ] = None
    n_bins: Annotated[
        Size, Knob("Bins", "power-of-two", "algorithm", "", 2, 65536, help="of a feature's histogram")
    ] = 256
    subsample: Annotated[
        Share, Knob("Rows a tree", "number", "algorithm", "", 0, 1, 0.1, help="share that a tree sees")
    ] = 1.0
    colsample: Annotated[
        Share, Knob("Features a tree", "number", "algorithm", "", 0, 1, 0.1, help="share that a tree sees")
    ] = 1.0

    n_classes: Annotated[
        Size, Knob("Classes", "integer", "algorithm", "", 1, 10_000, help="a tree a round for each of three or more")
    ] = 2

    @property
    def trees_of_a_round(self) -> int:
        """Trees that a round of boosting adds: one, or one for each of several classes."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def trees(self) -> float:
        """Trees of the whole ensemble."""
        return float(self.n_estimators * self.trees_of_a_round)

    @property
    def leaves(self) -> float:
        """Leaves of one tree, as far as the rows allow."""
        full = 2.0 ** min(self.max_depth, 60)
        return min(full, float(self.max_leaves or full), float(self.n))


class KMeans(ClassicalSpec):
    """Lloyd's algorithm, started by k-means++."""

    other_names: ClassVar[Mapping[str, str]] = {"n_clusters": "k"}

    k: Annotated[Size, Knob("Clusters", "power-of-two", "algorithm", "", 1, 10**6, help="centres")] = 10
    max_iter: Annotated[
        Size, Knob("At most", "integer", "algorithm", "iterations", 1, 10**6, help="converged or not")
    ] = 300
    iterations: Annotated[
        Size | None, Knob("Iterations", "integer", "algorithm", "", 1, 10**6, help="until it converges, for one start")
    ] = None
    n_init: Annotated[
        Size, Knob("Starts", "integer", "algorithm", "", 1, 10_000, help="from other centres; the best is kept")
    ] = 1
    tol: Annotated[
        Annotated[float, Field(ge=0)], Knob("Tolerance", "number", "algorithm", help="changes only the iterations")
    ] = 1e-4


class PCA(ClassicalSpec):
    """Principal components by singular value decomposition."""

    other_names: ClassVar[Mapping[str, str]] = {"k": "n_components", "svd_solver": "method"}

    n_components: Annotated[
        Size | None, Knob("Components", "power-of-two", "algorithm", "", 1, LARGEST_SIZE, help="kept; all unless given")
    ] = None
    method: Annotated[
        Literal["auto", "full", "covariance", "randomized"],
        Knob(
            "Method",
            "choice",
            "algorithm",
            choices=("auto", "full", "covariance", "randomized"),
            help="all singular values, eigenvalues of the covariance, a random projection, or what suits the shape",
        ),
    ] = "auto"
    power_iterations: Annotated[
        Size | None,
        Knob(
            "Power iterations",
            "integer",
            "algorithm",
            "",
            1,
            100,
            help="of the randomized method; 7 for few components and 4 for many unless given",
        ),
    ] = None
    oversampling: Annotated[
        Size,
        Knob("Oversampling", "integer", "algorithm", "", 1, 1000, help="directions more, of the randomized method"),
    ] = 10

    @property
    def solver(self) -> Literal["full", "covariance", "randomized"]:
        """The method, where it is open as scikit-learn 1.5 and later choose it by the shape of the data."""
        if self.method != "auto":
            return self.method
        if self.p <= 1000 and self.n >= 10 * self.p:
            return "covariance"
        few = self.n_components is not None and self.n_components < 0.8 * min(self.n, self.p)
        return "randomized" if few and max(self.n, self.p) > 500 else "full"

    @property
    def components(self) -> float:
        """Components that are kept."""
        most = float(min(self.n, self.p))
        return min(most, float(self.n_components or (most if self.solver != "randomized" else 10)))

    @property
    def iterations(self) -> float:
        """Power iterations, as scikit-learn chooses them: more where components are few."""
        few = self.components < 0.1 * min(self.n, self.p)
        return float(self.power_iterations or (7 if few else 4))


CLASSICAL_SPECS: Mapping[str, type[ClassicalSpec]] = {
    "linear_regression_normal": LinearRegressionNormal,
    "linear_regression_qr": LinearRegressionQR,
    "logistic_regression_newton": LogisticRegressionNewton,
    "logistic_regression_sgd": LogisticRegressionSGD,
    "svm_linear": LinearSVM,
    "svm_rbf": KernelSVM,
    "decision_tree": DecisionTree,
    "random_forest": RandomForest,
    "xgboost_like": BoostedTrees,
    "kmeans": KMeans,
    "pca_svd": PCA,
}
