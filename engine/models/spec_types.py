"""Which families of models have parameters of their own, and which those are."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.models.classical.specs import SPECS
from capacity_tui.engine.models.families import FAMILIES, TRANSFORMERS, Kind
from capacity_tui.engine.models.networks.specs import network_spec_type
from capacity_tui.engine.models.plugins import load_plugins
from capacity_tui.engine.models.spec import Spec
from capacity_tui.engine.models.transformer.architecture import read_overrides
from capacity_tui.engine.models.transformer.bare_family import is_modern
from capacity_tui.engine.models.transformer.transformer_spec import transformer_spec_type

_BY_KEY = {key_of(name): name for name in FAMILIES}


def spec_type_of(name: str | None, kind: Kind, spec: Mapping[str, object] | None = None) -> type[Spec] | None:
    """Return the class of a model's own parameters; None for a transformer whose sizes a catalogue or a file gives.

    Args:
        name: the model.
        kind: its kind.
        spec: what a plan gives of them, where defaults that follow from it matter.
    """
    if name is None:
        return None
    family = _BY_KEY.get(key_of(name), name)
    if kind == "plugin":
        plugin = load_plugins().find(name)
        return None if plugin is None else plugin.spec_type
    if kind == "transformer":
        return transformer_spec_type(family, modern=_is_modern(family, spec or {})) if family in TRANSFORMERS else None
    return network_spec_type(family) if kind == "network" else SPECS.get(family)


def _is_modern(family: str, spec: Mapping[str, object]) -> bool:
    """Tell whether sizes are of the modern kind; what cannot be read is told where the plan is resolved."""
    try:
        return is_modern(family, read_overrides(spec))
    except PlanError:
        return False
