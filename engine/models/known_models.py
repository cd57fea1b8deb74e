"""Families of models, and what is known of those with parameters of their own: tasks, and what a plan may say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Literal

from capacity_tui.engine.catalog import Catalog, key_of, nearest, with_left_out
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.classical import CLASSICAL_SPECS
from capacity_tui.engine.models.plugins import ModelPlugin, load_plugins
from capacity_tui.engine.models.spec import Spec, knob_of
from capacity_tui.engine.models.transformer.architecture import (
    BEST_USES,
    is_modern,
    read_overrides,
    transformer_spec_type,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Knob

if TYPE_CHECKING:
    from capacity_tui.engine.models.networks.specs import NetworkSpec

Kind = Literal["transformer", "network", "classical", "plugin"]
Task = Literal["train", "finetune", "infer", "fit"]


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of model that shares its formulas."""

    id: str
    kind: Kind
    task: Task  # task of a plan that names none

    @property
    def is_transformer(self) -> bool:
        """Whether it is made of transformer layers."""
        return self.kind == "transformer"

    @property
    def is_network(self) -> bool:
        """Whether it is a network of other layers."""
        return self.kind == "network"


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
_FAMILY_BY_KEY = {key_of(name): family for name, family in FAMILIES.items()}
_CLASSICAL_KEYS = frozenset(key_of(name) for name in CLASSICAL)


def is_classical(name: object) -> bool:
    """Return whether a model's name, however it is spelt, is that of a classical algorithm."""
    return isinstance(name, str) and key_of(name) in _CLASSICAL_KEYS


def family_of(name: str | None, catalog: Catalog) -> Family:
    """Return the family of a model name; a plan with a model file has none and is a transformer."""
    if name is None:
        return FAMILIES["transformer_decoder"]
    family = _FAMILY_BY_KEY.get(key_of(name))
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
        near = nearest_models(name, catalog)
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


def refuse_training(name: str | None, catalog: Catalog) -> None:
    """Refuse to train a part of a model whose training needs the rest of it."""
    row_id = None if name is None else catalog.architectures.find_id(name)
    if row_id is not None and (reason := catalog.architectures[row_id].untrained):
        hint = "serve it, or name the model whose training is alike"
        raise PlanError(f"{row_id} is not trained by itself", reason, hint, Place(field=Key.MODEL_NAME))


def plugin_problems(catalog: Catalog) -> tuple[CapacityError, ...]:
    """Return which models of other packages cannot be used, and why."""
    plugins = load_plugins()
    names = (
        PlanError(f"the model {plugin.name!r} of {plugin.package} has the name of another model", hint="rename it")
        for key, plugin in plugins.models.items()
        if key in _FAMILY_BY_KEY or catalog.architectures.find_id(plugin.name) or catalog.networks.find_id(plugin.name)
    )
    return (*plugins.problems, *names)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A family, a network of layers or a model of another package."""

    id: str
    title: str  # what it is, in a few words
    kind: Kind
    complexity: str  # how its work grows
    best_use: str  # what it is the right choice for; empty where unknown
    spec_type: type[Spec]
    # defaults that its row of the catalogue gives to parameters
    sizes: Mapping[str, object] = field(default_factory=dict)
    beyond: str = ""  # what to use beyond its limits; empty where there is no such advice

    def parameters(self) -> Iterator[tuple[str, Knob, object]]:
        """Yield name, knob and default of each parameter; None where the default follows from others."""
        for name, info in self.spec_type.model_fields.items():
            knob = knob_of(info)
            if knob is not None:
                yield name, knob, self.sizes.get(name, info.get_default())

    def example(self) -> dict[str, object]:
        """Return ``model.spec`` of a plan with every default that has a value."""
        defaults = (
            (name, list(default) if isinstance(default, tuple) else default) for name, _, default in self.parameters()
        )
        return {name: default for name, default in defaults if default not in (None, [])}


def nearest_models(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return what models there are of names like one that nothing has: families, language models, then networks."""
    return nearest(name, FAMILIES) + catalog.architectures.nearest(name) + catalog.networks.nearest(name)


def known_models(catalog: Catalog) -> tuple[KnownModel, ...]:
    """Return all of them: algorithms, networks, bare transformers, models of other packages."""
    return tuple(make() for _, make in _all(catalog))


def find_known_model(name: str, catalog: Catalog) -> KnownModel | None:
    """Return the model of a name, regardless of case, spaces and hyphens; None for catalogue architectures."""
    network_key = key_of(catalog.networks.find_id(name) or name)
    return next((make() for id_, make in _all(catalog) if key_of(id_) == network_key), None)


def _all(catalog: Catalog) -> Iterator[tuple[str, Callable[[], KnownModel]]]:
    """Yield the name of each, and what puts together what is known of it."""
    yield from ((name, partial(_classical, name, catalog)) for name in CLASSICAL)
    yield from ((name, partial(_family_network, name)) for name in NETWORKS)
    yield from ((name, partial(_network, name, catalog)) for name in catalog.networks)
    yield from ((name, partial(_transformer, name)) for name in TRANSFORMERS)
    yield from ((plugin.name, partial(_plugin, plugin)) for plugin in load_plugins().models.values())


def _classical(name: str, catalog: Catalog) -> KnownModel:
    row = catalog.algorithms[name]
    return KnownModel(
        name, row.name, "classical", row.complexity, row.best_use, CLASSICAL_SPECS[name], beyond=row.instead
    )


def _network_spec_type(family: str) -> type[NetworkSpec]:
    from capacity_tui.engine.models.networks.specs import network_spec_type  # noqa: PLC0415 - few plans train one

    return network_spec_type(family)


def _family_network(name: str) -> KnownModel:
    spec_type = _network_spec_type(name)
    return KnownModel(name, _summary_line(spec_type), "network", spec_type.complexity, spec_type.best_use, spec_type)


def _network(name: str, catalog: Catalog) -> KnownModel:
    row, spec_type = catalog.networks[name], _network_spec_type(name)
    own = {} if row.is_of_latents else {"c_in": row.channels, "num_classes": row.classes}
    sizes = {"num_classes": row.classes} if row.is_of_sound else {"image_size": row.image_size, **own}
    best_use = row.best_use or spec_type.best_use
    return KnownModel(name, row.name, "network", spec_type.complexity, best_use, spec_type, sizes)


def _transformer(name: str) -> KnownModel:
    spec_type = transformer_spec_type(name)
    return KnownModel(name, _summary_line(spec_type), "transformer", spec_type.complexity, BEST_USES[name], spec_type)


def _plugin(plugin: ModelPlugin) -> KnownModel:
    try:
        complexity = plugin.calculated(plugin.spec_type()).complexity_class
    except PlanError:
        complexity = ""
    title = plugin.title or f"plug-in {plugin.package}"
    return KnownModel(plugin.name, title, "plugin", complexity, plugin.best_use, plugin.spec_type)


def _summary_line(spec_type: type[Spec]) -> str:
    return (spec_type.__doc__ or "").partition("\n")[0].rstrip(".")


_BY_KEY = {key_of(name): name for name in FAMILIES}


def spec_type_of(name: str | None, kind: Kind, spec: Mapping[str, object] | None = None) -> type[Spec] | None:
    """Return the class of a model's own parameters; None for a transformer whose sizes a catalogue or a file gives."""
    if name is None:
        return None
    family = _BY_KEY.get(key_of(name), name)
    if kind == "plugin":
        plugin = load_plugins().find(name)
        return None if plugin is None else plugin.spec_type
    if kind == "transformer":
        return transformer_spec_type(family, modern=_is_modern(family, spec or {})) if family in TRANSFORMERS else None
    return _network_spec_type(family) if kind == "network" else CLASSICAL_SPECS.get(family)


def _is_modern(family: str, spec: Mapping[str, object]) -> bool:
    """Return whether sizes are of the modern kind; invalid sizes are reported where the plan is resolved."""
    try:
        return is_modern(family, read_overrides(spec))
    except PlanError:
        return False
