"""Names of the model families that are no catalogue architectures."""

from __future__ import annotations

from capacity_tui.engine.catalog.names import key_of

CLASSICAL = (
    "linear_regression_normal",
    "linear_regression_qr",
    "logistic_regression_newton",
    "logistic_regression_sgd",
    "svm_linear",
    "svm_rbf",
    "decision_tree",
    "random_forest",
    "xgboost_like",
    "kmeans",
    "pca_svd",
)
"""Algorithms that are fitted to a table of numbers; their task is ``fit``."""
NETWORKS = ("mlp", "simple_cnn", "resnet50")
"""Networks trained sample by sample."""
TRANSFORMERS = ("transformer_encoder", "transformer_decoder")
"""Transformers described by their shape alone."""

_CLASSICAL_KEYS = frozenset(key_of(name) for name in CLASSICAL)


def is_classical(name: object) -> bool:
    """Return whether a model's name, however it is spelt, is that of a classical algorithm."""
    return isinstance(name, str) and key_of(name) in _CLASSICAL_KEYS
