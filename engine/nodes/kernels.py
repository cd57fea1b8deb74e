"""Kernels on one node of each kind of a kept cluster, which say what its devices reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event

import yaml

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Device, device_key, match_hardware
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import config_folder, data_folder, make_folder, write_atomically
from capacity_tui.engine.machine import MeasuredEfficiency
from capacity_tui.engine.nodes.inventory import Inventory
from capacity_tui.engine.nodes.launcher import Launcher, Order
from capacity_tui.engine.runs.sampling import FOLDER, NODE_MODULE, NodeTask, SampleFile, fit_samples, read_samples

_TABLE = "measured_devices"
QUICK_SECONDS, WHOLE_SECONDS = 600.0, 7200.0
"""What a small and the whole grid may take on a node: some hundred to some thousand cases of a second at most."""


@dataclass(frozen=True, slots=True)
class SampledKind:
    """What the devices of one kind of node reach.

    Attributes:
        device: id of the hardware; what its driver calls it where the catalogue does not know it.
        nodes: how many nodes are of this kind.
        node: the one whose kernels were timed; empty for none.
        measured: what they say; None where nothing could be timed.
        failure: why, in words; empty where something was.
    """

    device: str
    nodes: int
    node: str = ""
    samples: int = 0
    measured: MeasuredEfficiency | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class NodeKernels:
    """Kernels that are timed on nodes of a kept cluster.

    Attributes:
        python: a Python of the nodes that has this program, and torch where they have GPUs.
        catalog: what the devices are nominally.
        kernels: which; all where empty.
    """

    launcher: Launcher
    inventory: Inventory
    python: str
    catalog: Catalog
    quick: bool = False
    kernels: tuple[str, ...] = ()

    def each_kind(self, cancelled: Event | None = None) -> Iterator[SampledKind]:
        """Time them on one node of each kind; the failure of one is reported, and ends none of the others.

        The samples are kept as those of this machine are, below the name of the cluster.

        Raises:
            LauncherError: the launcher cannot be used.
        """
        there = self.launcher.nodes()
        for kind in self.inventory.kinds:
            typical = kind.typical
            row_id = typical.device if typical.devices else typical.processor
            node = next((facts.node for facts in (typical, *kind.whole) if facts.node in there), "")
            whole = SampledKind(row_id or typical.family, len(kind.nodes), node)
            if not row_id:
                yield replace(whole, node="", failure="not in the catalogue")
            elif not typical.devices and typical.sockets > 1:
                reason = f"a process takes all {typical.sockets} processors of a node"
                yield replace(whole, node="", failure=reason)
            elif not node:
                yield replace(whole, failure=f"{self.launcher.name} reaches none of its nodes")
            else:
                yield self._sampled(whole, bool(typical.devices), cancelled)

    def _sampled(self, kind: SampledKind, has_gpus: bool, cancelled: Event | None) -> SampledKind:
        task: NodeTask = {"where": "gpu" if has_gpus else "cpu", "quick": self.quick, "kernels": list(self.kernels)}
        words = (self.python, "-m", NODE_MODULE, json.dumps(task))
        order = Order(words, seconds=QUICK_SECONDS if self.quick else WHOLE_SECONDS)
        (answer,) = self.launcher.run(order, [kind.node], cancelled)
        if answer.failure:
            return replace(kind, failure=answer.failure)
        try:
            device = match_hardware(kind.device, self.catalog).device
            samples = _kept(self.inventory.name, device, answer.output)
            return replace(kind, samples=len(samples.samples), measured=fit_samples(device, [samples]))
        except CapacityError as error:
            return replace(kind, failure=error.one_line())


def keep_measured_kind(cluster: str, kind: SampledKind, folder: Path | None = None) -> Path | None:
    """Keep what devices of a cluster reach, for plans that name it; return the file, None where nothing was measured.

    Args:
        kind: what was measured on one of its nodes.
        folder: the user's catalogue, the usual one by default.

    Raises:
        StorageError: it cannot be written.
    """
    measured = kind.measured
    if measured is None:
        return None
    row_id = f"{cluster}-{kind.device}"
    path = (folder or config_folder() / "catalog") / _TABLE / f"{row_id}.yaml"
    make_folder(path.parent)
    row = {
        "name": f"{kind.device} of {cluster}",
        "cluster": cluster,
        **{name: value for name, value in asdict(measured).items() if name != "date"},
        "source": f"cluster sample --kernels on {kind.node}, {kind.samples} timings",
        "checked": measured.date,
        "confidence": "B",
    }
    # Through JSON, since YAML distinguishes tuples from lists.
    write_atomically(path, yaml.safe_dump({row_id: json.loads(json.dumps(row))}, sort_keys=False), overwrite=True)
    return path


def _kept(cluster: str, device: Device, text: str) -> SampleFile:
    """Keep what a node printed, and return it as it can be read.

    Raises:
        StorageError: it cannot be written.
    """
    path = data_folder() / FOLDER / cluster / f"{device_key(device)}.jsonl"
    make_folder(path.parent)
    write_atomically(path, text, overwrite=True)
    return read_samples(path)
