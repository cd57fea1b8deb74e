"""Which families of models have parameters of their own, and which those are."""

from __future__ import annotations

from capacity_tui.engine.catalog.names import key_of
from capacity_tui.engine.workload.classical.specs import SPECS
from capacity_tui.engine.workload.families import Kind
from capacity_tui.engine.workload.networks.specs import network_spec_type
from capacity_tui.engine.workload.plugins import load_plugins
from capacity_tui.engine.workload.spec import Spec

_BY_KEY = {key_of(name): spec_type for name, spec_type in SPECS.items()}


def spec_type_of(name: str | None, kind: Kind) -> type[Spec] | None:
    """Return the class of a model's own parameters; None for transformers, whose sizes are overrides."""
    if name is None or kind == "transformer":
        return None
    if kind == "plugin":
        plugin = load_plugins().find(name)
        return None if plugin is None else plugin.spec_type
    return network_spec_type(name) if kind == "network" else _BY_KEY.get(key_of(name))
