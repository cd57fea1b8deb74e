"""Resources of Kubernetes: names of devices and labels, quantities, and what containers ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, Field

from capacity_tui.engine.catalog import parse_shipped

_SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?")


class Names(BaseModel):
    """The content of ``profiles/kubernetes.yaml``: names of resources, and labels by what they say."""

    devices: frozenset[str]
    slices: str
    labels: Mapping[str, tuple[str, ...]]
    holders: tuple[str, ...]


@cache
def names() -> Names:
    """Return the names."""
    return Names.model_validate(parse_shipped(files("capacity_tui.profiles") / "kubernetes.yaml"))


class _Resources(BaseModel):
    requests: Mapping[str, str | int] = Field(default_factory=dict)
    limits: Mapping[str, str | int] = Field(default_factory=dict)


class Container(BaseModel):
    """A container of a pod, with what it asks for."""

    resources: _Resources = Field(default_factory=_Resources)

    @property
    def asked(self) -> Mapping[str, str | int]:
        """Its requests; what it is limited to is requested too where nothing else is said."""
        return {**self.resources.limits, **self.resources.requests}


def devices_of(container: Container) -> int:
    """Return how many devices or slices of some a container asks for."""
    return devices_in(container.asked) + sum(slices_in(container.asked).values())


def devices_in(resources: Mapping[str, str | int]) -> int:
    """Return how many whole devices some resources are."""
    return sum(int(amount(value)) for key, value in resources.items() if is_device(key))


def slices_in(resources: Mapping[str, str | int]) -> dict[str, int]:
    """Return how many slices of devices some resources are, by profile such as ``1g.10gb``."""
    prefix = names().slices
    counts = {
        key.removeprefix(prefix): int(amount(value)) for key, value in resources.items() if key.startswith(prefix)
    }
    return {profile: count for profile, count in counts.items() if count}


def is_device(resource: str) -> bool:
    """Return whether a resource is that of whole devices."""
    return resource in names().devices


def is_any_device(resource: str) -> bool:
    """Return whether a resource is that of whole devices, or of slices of some."""
    return is_device(resource) or resource.startswith(names().slices)


def amount(text: str | int) -> float:
    """Return a quantity of Kubernetes, such as ``2113548Ki``; 0 for what is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    return float(match[1]) * _SUFFIXES.get(match[2] or "", 1) if match else 0.0
