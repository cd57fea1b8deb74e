"""What a model class has beyond the sizes in its configuration: read from ``profiles/traits.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml


@dataclass(frozen=True, slots=True)
class Traits:
    """Shape fields by family, by model class and by catalogue id.

    Attributes:
        families: sizes of a family named in place of a model.
        classes: what a model class adds to Llama's structure.
        models: what one catalogue row adds to its class.
    """

    families: Mapping[str, Mapping[str, object]]
    classes: Mapping[str, Mapping[str, object]]
    models: Mapping[str, Mapping[str, object]]


@cache
def load_traits() -> Traits:
    """Read the traits that come with the program."""
    text = (files("capacity_tui.profiles") / "traits.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    return Traits(content["families"], content["classes"], content["models"])
