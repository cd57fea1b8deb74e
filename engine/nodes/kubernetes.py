"""Nodes of a Kubernetes cluster, as its API server tells ``kubectl``: nothing runs on them."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from threading import Event, Timer

from pydantic import BaseModel, Field, ValidationError

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.machine import match_accelerator
from capacity_tui.engine.nodes.inventory import DEVICES, MEMORY, PARTITIONED, Inventory, NodeFacts
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

_SERVER_SECONDS = 30.0
_MOST_BYTES = 256 * 2**20
"""Of an answer; a node is some 20 kB, a pod 10."""
_MIB = 2**20
_SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?")


class _Names(BaseModel):
    """The content of ``profiles/kubernetes.yaml``: names of resources, and labels by what they say."""

    devices: frozenset[str]
    slices: str
    labels: Mapping[str, tuple[str, ...]]
    holders: tuple[str, ...]


@cache
def _names() -> _Names:
    return _Names.model_validate(parse_shipped(files("capacity_tui.profiles") / "kubernetes.yaml"))


class _Taint(BaseModel):
    key: str
    effect: str = ""


class _Condition(BaseModel):
    type: str
    status: str
    reason: str = ""


class _Metadata(BaseModel):
    name: str
    labels: Mapping[str, str] = Field(default_factory=dict)


class _NodeSpec(BaseModel):
    unschedulable: bool = False
    taints: tuple[_Taint, ...] = ()


class _NodeStatus(BaseModel):
    capacity: Mapping[str, str] = Field(default_factory=dict)
    allocatable: Mapping[str, str] = Field(default_factory=dict)
    conditions: tuple[_Condition, ...] = ()


class _Node(BaseModel):
    metadata: _Metadata
    spec: _NodeSpec = Field(default_factory=_NodeSpec)
    status: _NodeStatus = Field(default_factory=_NodeStatus)


class _Nodes(BaseModel):
    items: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """The cluster of a context of ``kubectl``.

    Attributes:
        context: its name in the configuration of ``kubectl``; the current one where empty.
    """

    context: str = ""
    seconds: float = _SERVER_SECONDS

    @property
    def name(self) -> str:
        """What reaches the nodes."""
        return "Kubernetes"

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes.

        Raises:
            LauncherError: there is no kubectl, or the API server does not answer, refuses or makes no sense.
        """
        return tuple(node.metadata.name for node in self._nodes())

    def run(self, order: Order, nodes: Sequence[str], cancelled: Event | None = None) -> Iterator[NodeAnswer]:
        """Yield that no command runs on nodes: Kubernetes starts containers, not commands."""
        del order, cancelled
        yield from (NodeAnswer(node, failure="Kubernetes runs containers, no commands on nodes") for node in nodes)

    def inventory(self, name: str) -> Inventory:
        """Return what its API server tells of the nodes; those that are not ready are named and left out.

        Args:
            name: what plans are to call the cluster.

        Raises:
            LauncherError: likewise, or no node is ready.
        """
        nodes = self._nodes()
        silent = {node.metadata.name: why for node in nodes if (why := _not_ready(node))}
        ready = [node for node in nodes if node.metadata.name not in silent]
        if not ready:
            reason = next(iter(silent.values()), "there are none")
            raise LauncherError("no node is ready", f"{len(nodes)} known; {reason}", "`kubectl get nodes` tells more")
        return Inventory(
            name=name,
            reached_by=self.name,
            seen=datetime.now(UTC).replace(microsecond=0),
            nodes=tuple(_facts(node) for node in ready),
            silent=silent,
        )

    def _nodes(self) -> tuple[_Node, ...]:
        text = self._text("get", "nodes", "--output=json")
        try:
            return _Nodes.model_validate_json(text).items
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            hint = "see whether `kubectl get nodes -o json` prints nodes"
            raise LauncherError("kubectl: the answer makes no sense", where[:200], hint) from error

    def _text(self, *words: str) -> str:
        """Return what kubectl prints.

        Raises:
            LauncherError: it is not there, hangs, is refused, or never ends.
        """
        if shutil.which("kubectl") is None:
            raise LauncherError("kubectl is not installed here", hint="run this where kubectl reaches the cluster")
        context = (f"--context={self.context}",) if self.context else ()
        command = ("kubectl", *context, f"--request-timeout={self.seconds:g}s", *words)
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603 - kubectl itself
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
            timer = Timer(self.seconds, process.kill)
            timer.start()
            output = b""
            try:
                output = b"" if process.stdout is None else process.stdout.read(_MOST_BYTES + 1)
                is_late = not timer.is_alive()
            finally:
                timer.cancel()
                if len(output) > _MOST_BYTES:
                    process.kill()
                code = process.wait()
                if process.stdout is not None:
                    process.stdout.close()
            errors.seek(0)
            complaint = errors.read(_MIB).decode(errors="replace").strip().splitlines()
        if is_late:
            hint = "`kubectl version` tells whether the server answers"
            raise LauncherError(f"kubectl: no answer within {self.seconds:g} s", hint=hint)
        if len(output) > _MOST_BYTES:
            raise LauncherError(f"kubectl: more than {format_bytes(_MOST_BYTES)} of an answer")
        if code != 0:
            why = complaint[-1][:200] if complaint else f"exit code {code}"
            raise LauncherError(f"kubectl: {why}", hint="`kubectl auth can-i list nodes` tells what you may see")
        return output.decode(errors="replace")


def _not_ready(node: _Node) -> str:
    """Return why a node takes no containers; empty where it does."""
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return f"not ready: {ready.reason}" if ready.reason else "not ready"
    return ""


def _facts(node: _Node) -> NodeFacts:
    labels, capacity, allocatable = node.metadata.labels, node.status.capacity, node.status.allocatable
    there, usable = _gpus(capacity), _gpus(allocatable)
    slices = _names().slices
    mig = {
        key.removeprefix(slices): int(_amount(value)) for key, value in allocatable.items() if key.startswith(slices)
    }
    parts = {key: count for key, count in mig.items() if count}
    product = _label(labels, "product").partition("-MIG-")[0]
    memory_mib = _label(labels, "memory_mib")
    device, device_name = _device(product, int(memory_mib) * _MIB if memory_mib.isdecimal() and not parts else None)
    counted = _label(labels, "count")
    devices = max(there, int(counted) if counted.isdecimal() else 0) if there or parts or product else 0
    memory = int(_amount(capacity.get("memory", "0")))
    traits = {
        DEVICES: f"{devices} x {device_name}" if devices else "",
        "processor": f"{capacity['cpu']} processors" if "cpu" in capacity else "",
        MEMORY: format_bytes(memory) if memory else "",
        "driver": _label(labels, "driver"),
        "runtime": _label(labels, "runtime"),
        PARTITIONED: ", ".join(f"{count} x {key}" for key, count in sorted(parts.items())),
    }
    return NodeFacts(
        node=node.metadata.name,
        device=device,
        device_name=device_name,
        devices=devices,
        memory_bytes=memory,
        processor_name=_label(labels, "machine"),
        traits={trait: value for trait, value in traits.items() if value},
        troubles=tuple(_troubles(node, there, usable)),
        holders=tuple(labels[key] for key in _names().holders if key in labels),
    )


def _label(labels: Mapping[str, str], kind: str) -> str:
    """Return the first label of a kind that a node has, empty without one."""
    return next((labels[key] for key in _names().labels[kind] if labels.get(key)), "")


def _troubles(node: _Node, there: int, usable: int) -> Iterator[str]:
    if node.spec.unschedulable:
        yield "cordoned: it takes no new containers"
    for condition in node.status.conditions:
        if condition.type != "Ready" and condition.status == "True":
            yield f"{condition.type}: {condition.reason}" if condition.reason else condition.type
    tainted = defaultdict(list)
    for taint in node.spec.taints:
        if taint.key not in _names().devices and not taint.key.startswith("node.kubernetes.io/"):
            tainted[taint.effect].append(taint.key)
    for effect, keys in tainted.items():
        yield f"tainted {effect}: {', '.join(keys)}"
    if usable < there:
        yield f"{usable} of {there} devices can be had"


def _gpus(resources: Mapping[str, str]) -> int:
    return sum(int(_amount(resources[key])) for key in _names().devices if key in resources)


def _amount(text: str) -> float:
    """Return a quantity of Kubernetes, such as ``2113548Ki``; 0 for what is none."""
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * _SUFFIXES.get(match[2] or "", 1) if match else 0.0


def _device(product: str, memory_bytes: int | None) -> tuple[str, str]:
    """Return the catalogue id and the driver's name of a label, in which blanks are dashes as those of the name."""
    if not product:
        return "", ""
    words = product.split("-")
    names = (
        "".join(itertools.chain.from_iterable(zip(words, (*marks, ""), strict=True)))
        for marks in itertools.product(" -", repeat=min(len(words) - 1, 8))
        if len(marks) == len(words) - 1
    )
    for name in names:
        if device_id := match_accelerator(name, memory_bytes).value:
            return device_id, name
    return "", " ".join(words)
