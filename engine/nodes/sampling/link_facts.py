"""What collectives over nodes say of the network between them, as a link that plans can name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.files import config_folder, make_folder, write_atomically
from capacity_tui.engine.sampling import Sample, fit_passes

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The network between nodes, as collectives reach it.

    Attributes:
        bandwidth: B/s in one direction that collectives reach between two nodes.
        hop_seconds: one step of a collective from node to node.
        error: median of how far the timings are from what these two say.
        nodes: over how many nodes the largest group was.
        date: when, ISO day.
    """

    bandwidth: float
    hop_seconds: float
    error: float
    nodes: int
    date: str
    software: str


def link_facts(samples: Sequence[Sample], software: str) -> LinkFacts | None:
    """Return what timings between nodes say of the network; None where there are too few.

    Args:
        samples: collectives, each with its ``nodes``.
    """
    fit = fit_passes(samples)
    if fit is None:
        return None
    return LinkFacts(
        bandwidth=fit.bandwidth,
        hop_seconds=fit.hop_seconds,
        error=fit.error,
        nodes=max(sample.shape["nodes"] for sample in samples),
        date=max(sample.date for sample in samples),
        software=software,
    )


def keep_link(name: str, facts: LinkFacts, folder: Path | None = None) -> Path:
    """Keep a measured network as a link of the user's own catalogue, and return its file.

    Args:
        name: what plans call it, as ``hardware.interconnect`` or as the ``link`` of a level.
        folder: the user's catalogue, the usual one by default.

    Raises:
        LauncherError: the name cannot be one.
        StorageError: it cannot be written.
    """
    if _NAME.fullmatch(name) is None:
        raise LauncherError(f"{name[:60]!r} is no name of a link", hint="take small letters, digits, - and .")
    path = (folder or config_folder() / "catalog") / "links" / f"{name}.yaml"
    make_folder(path.parent)
    row = {
        "name": f"{name}, measured",
        "kind": "inter-node",
        "per": "node",
        "per_direction_gbs": facts.bandwidth * 1e-9,
        "latency_us": facts.hop_seconds * 1e6,
        "measured": True,
        "error": facts.error,
        "source": f"cluster sample over {facts.nodes} nodes, {facts.software}",
        "checked": facts.date,
        "confidence": "B",
    }
    write_atomically(path, yaml.safe_dump({name: row}, sort_keys=False), overwrite=True)
    return path
