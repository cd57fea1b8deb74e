"""Families of models: which one a plan names, and what task it defaults to."""

from __future__ import annotations

from typing import Literal

from capacity_tui.engine.catalog import Catalog, key_of, nearest, with_left_out
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.plugins import load_plugins
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO

Kind = Literal["transformer", "network", "classical", "plugin"]
Task = Literal["train", "finetune", "infer", "fit"]


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of model that shares its formulas.

    Attributes:
        task: task of a plan that names none.
    """

    id: str
    kind: Kind
    task: Task


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
NETWORKS = ("mlp", "simple_cnn", "rnn", "gru", "lstm")
TRANSFORMERS = ("transformer_decoder", "transformer_encoder")
FAMILIES = {
    **{name: Family(name, "classical", "fit") for name in CLASSICAL},
    **{name: Family(name, "network", "train") for name in NETWORKS},
    **{name: Family(name, "transformer", "train") for name in TRANSFORMERS},
}
_BY_KEY = {key_of(name): family for name, family in FAMILIES.items()}
_CLASSICAL_KEYS = frozenset(key_of(name) for name in CLASSICAL)


def is_classical(name: object) -> bool:
    """Return whether a model's name, however it is spelt, is that of a classical algorithm."""
    return isinstance(name, str) and key_of(name) in _CLASSICAL_KEYS


def family_of(name: str | None, catalog: Catalog) -> Family:
    """Return the family of a model name; a plan with a model file has none and is a transformer.

    Raises:
        PlanError: no model or family is called that.
    """
    if name is None:
        return FAMILIES["transformer_decoder"]
    family = _BY_KEY.get(key_of(name))
    if family is not None:
        return family
    network = catalog.networks.find_id(name)
    if network is not None:
        return Family(network, "network", "train")
    row_id = catalog.architectures.find_id(name)
    plugin = load_plugins().find(name) if row_id is None else None
    if plugin is not None:
        return Family(plugin.name, "plugin", "fit")
    if row_id is None:
        near = nearest(name, FAMILIES) + catalog.architectures.nearest(name) + catalog.networks.nearest(name)
        hint = f"nearest known: {', '.join(near[:4])}" if near else "list them with: capacity-tui models --list"
        problems = (*catalog.architectures.problems, *catalog.networks.problems)
        place = Place(field=Key.MODEL_NAME)
        raise PlanError(f"no model is called {name!r}"[:200], hint=with_left_out(hint, name, problems), place=place)
    if catalog.architectures[row_id].kind == "cnn":
        hint = "add them to networks.yaml in the catalogue folder"
        raise PlanError("the layers of this network are not known", row_id, hint, Place(field=Key.MODEL_NAME))
    return Family(row_id, "transformer", "train")


def presumed_family(name: str | None, catalog: Catalog) -> Family:
    """Return the family of a model name, the decoder's where the name is open or unknown."""
    try:
        return family_of(None if name == AUTO else name, catalog)
    except PlanError:
        return FAMILIES["transformer_decoder"]


def plugin_problems(catalog: Catalog) -> tuple[CapacityError, ...]:
    """Return which models of other packages cannot be used, and why."""
    plugins = load_plugins()
    names = (
        PlanError(f"the model {plugin.name!r} of {plugin.package} has the name of another model", hint="rename it")
        for key, plugin in plugins.models.items()
        if key in _BY_KEY or catalog.architectures.find_id(plugin.name) or catalog.networks.find_id(plugin.name)
    )
    return (*plugins.problems, *names)
