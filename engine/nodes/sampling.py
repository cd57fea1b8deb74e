"""Collectives between nodes, and kernels on one node of each kind, timed through a launcher."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import yaml

from capacity_tui.engine.catalog import Catalog, keep_rows
from capacity_tui.engine.cluster import Device, device_key, match_hardware
from capacity_tui.engine.errors import CapacityError, LauncherError
from capacity_tui.engine.files import data_folder, make_folder, write_atomically
from capacity_tui.engine.machine import MeasuredEfficiency
from capacity_tui.engine.machine.vendors import LIST
from capacity_tui.engine.nodes.inventory import Inventory
from capacity_tui.engine.nodes.launcher import Launcher, NodeAnswer, Order
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.sampling import (
    CASE_SECONDS,
    COLLECTIVES,
    FOLDER,
    NODE_MODULE,
    RANK_MODULE,
    STDOUT,
    Group,
    NodeTask,
    Sample,
    SampleFile,
    Task,
    Timing,
    fit_passes,
    fit_samples,
    read_samples,
    sample_of,
)

NODE_COUNTS = (2, 4, 8)  # Sizes of groups of nodes that collectives are timed over
# What starting Python and torch on a node may take, and a case beyond the time that it is given.
START_SECONDS, SLOWNESS = 120.0, 6.0

# Where the first node can be met, and what it computes with; the address is that of the way out, nothing is sent. The
# port is below those that systems give to outgoing connections (from 32768 on Linux), which could take it meanwhile.
_LOOK = """
import contextlib, json, random, socket, subprocess
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
    try:
        way.connect(("192.0.2.1", 9))
        address = way.getsockname()[0]
    except OSError:
        address = socket.gethostbyname(socket.gethostname())
for port in random.sample(range(20000, 30000), 100):
    with socket.socket() as free, contextlib.suppress(OSError):
        free.bind(("", port))
        break
try:
    gpus = subprocess.run(LISTING, capture_output=True, text=True, timeout=20).stdout.count("GPU ")
except (OSError, subprocess.TimeoutExpired):
    gpus = 0
print(json.dumps([address, port, gpus]))
""".replace("LISTING", repr(LIST))


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the processes of a group find each other."""

    address: str
    port: int
    gpus: int  # devices of the first node; 0 where it computes with processors

    @property
    def backend(self) -> str:
        """What passes messages: NCCL between GPUs, Gloo between processors."""
        return "nccl" if self.gpus else "gloo"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """What collectives over some nodes took."""

    nodes: tuple[str, ...]
    group: Group
    samples: tuple[Sample, ...] = ()  # timings; the shape of each says its bytes, its processes and its nodes
    failure: str = ""  # why there are no samples; empty where there are


def node_counts(nodes: int) -> tuple[int, ...]:
    """Return the sizes of groups of nodes that collectives are timed over."""
    return tuple(count for count in NODE_COUNTS if count <= nodes)


def sample_group(launcher: Launcher, nodes: Sequence[str], sizes: Sequence[int], python: str) -> NodeGroup:
    """Time collectives over nodes; the failure of one is reported, and ends none of the others."""
    rendezvous = _meeting(launcher, nodes[0], python)
    if isinstance(rendezvous, str):
        return NodeGroup(tuple(nodes), Group(len(nodes), "gloo"), failure=f"{nodes[0]}: {rendezvous}")
    per_node = max(1, rendezvous.gpus)
    group = Group(per_node * len(nodes), rendezvous.backend, len(nodes))
    cases = [(name, size) for name in COLLECTIVES for size in sizes]
    seconds = START_SECONDS + SLOWNESS * CASE_SECONDS * len(cases)
    tasks = {
        node: [
            _task(group, index * per_node + device, device, rendezvous, cases, seconds) for device in range(per_node)
        ]
        for index, node in enumerate(nodes)
    }
    answers = _together(launcher, tasks, python, seconds)
    failed = [f"{answer.node}: {answer.failure}" for answer in answers if answer.failure]
    if failed:
        return NodeGroup(tuple(nodes), group, failure="; ".join(failed))
    return NodeGroup(tuple(nodes), group, tuple(_samples(answers[0].output, group)))


def _task(group: Group, rank: int, device: int, meeting: Meeting, cases: list[tuple[str, int]], seconds: float) -> Task:
    url, target = f"tcp://{meeting.address}:{meeting.port}", STDOUT if rank == 0 else None
    return Task(
        backend=group.backend,
        rank=rank,
        size=group.size,
        device=device,
        meeting=url,
        cases=cases,
        target=target,
        seconds=seconds,
    )


def _meeting(launcher: Launcher, node: str, python: str) -> Meeting | str:
    """Return where the processes meet; or in words why that is not known."""
    (answer,) = launcher.run(Order((python, "-c", _LOOK)), [node])
    if answer.failure:
        return answer.failure
    try:
        address, port, gpus = json.loads(answer.output)
        return Meeting(str(address), int(port), int(gpus))
    except (ValueError, TypeError):
        return "answered something other than was asked"


def _together(
    launcher: Launcher, tasks: Mapping[str, list[Task]], python: str, seconds: float
) -> tuple[NodeAnswer, ...]:
    """Run the processes of all nodes side by side, and return the answers in the order of the nodes."""
    with ThreadPoolExecutor(len(tasks), "collectives") as threads:

        def answer_of(node: str) -> NodeAnswer:
            words = ("env", "OMP_NUM_THREADS=1", python, "-m", RANK_MODULE, json.dumps(tasks[node]))
            (answer,) = launcher.run(Order(words, seconds=seconds), [node])
            return answer

        return tuple(threads.map(answer_of, tasks))


def _samples(output: str, group: Group) -> Iterator[Sample]:
    """Yield what the first process wrote down, a line each."""
    for line in output.splitlines():
        if line.startswith("["):
            name, size, timing = json.loads(line)
            if timing is not None:
                yield sample_of(str(name), int(size), group, Timing(**timing))


_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The network between nodes, as collectives reach it."""

    bandwidth: float  # B/s in one direction that collectives reach between two nodes
    hop_seconds: float  # one step of a collective from node to node
    error: float  # median of how far the timings are from what these two say
    nodes: int  # number of nodes of the largest group
    date: str  # ISO day of the newest timing
    software: str


def link_facts(samples: Sequence[Sample], software: str) -> LinkFacts | None:
    """Return what timings of collectives between nodes say of the network; None where there are too few."""
    fit = fit_passes(samples)
    if fit is None:
        return None
    nodes, date = max(sample.shape["nodes"] for sample in samples), max(sample.date for sample in samples)
    return LinkFacts(fit.bandwidth, fit.hop_seconds, fit.error, nodes, date, software)


def keep_link(name: str, facts: LinkFacts, folder: Path | None = None) -> Path:
    """Keep a measured network as a link of the user's own catalogue, and return its file.

    Args:
        name: its id, for ``hardware.interconnect`` or the ``link`` of a level.

    Raises:
        LauncherError: the name cannot be one.
        StorageError: it cannot be written.
    """
    if _NAME.fullmatch(name) is None:
        raise LauncherError(f"{name[:60]!r} is no name of a link", hint="take small letters, digits, - and .")
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
    return keep_rows("links", f"{name}.yaml", yaml.safe_dump({name: row}, sort_keys=False), folder)


# From what latency rules to what bandwidth rules (bytes, the whole buffer).
NETWORK_SIZES = tuple(2**power for power in range(12, 30, 2))
QUICK_NETWORK_SIZES = (2**13, 2**20, 2**24)


@dataclass(frozen=True, slots=True)
class SampledNetwork:
    """Timings of collectives over groups of nodes, the smallest first, and the network they describe, if any."""

    groups: tuple[NodeGroup, ...]
    link: LinkFacts | None


def sample_network(
    launcher: Launcher, python: str, sizes: Sequence[int], started: Callable[[NodeGroup], None]
) -> SampledNetwork:
    """Time collectives over 2, 4 and 8 nodes, as far as the cluster has them.

    Args:
        python: a Python of the nodes that has this program and torch.
        sizes: bytes of the whole buffer.
        started: called with each group when it is done.

    Raises:
        LauncherError: the launcher cannot be used, or reaches one node alone.
    """
    nodes = launcher.nodes()
    counts = node_counts(len(nodes))
    if not counts:
        raise LauncherError("one node alone has no network to others", hint="`sample collectives` times its own links")
    groups = []
    for count in counts:
        groups.append(sample_group(launcher, nodes[:count], sizes, python))
        started(groups[-1])
    samples = [sample for group in groups for sample in group.samples]
    backend = next((group.group.backend for group in groups if group.samples), "")
    return SampledNetwork(tuple(groups), link_facts(samples, backend))


_TABLE = "measured_devices"
QUICK_SECONDS, WHOLE_SECONDS = 600.0, 7200.0
"""What a small and the whole grid may take on a node: some hundred to some thousand cases of a second at most."""


@dataclass(frozen=True, slots=True)
class SampledKind:
    """What the devices of one kind of node reach."""

    device: str  # id of the hardware; what its driver calls it where the catalogue does not know it
    nodes: int  # number of nodes of this kind
    node: str = ""  # the one whose kernels were timed; empty for none
    samples: int = 0
    measured: MeasuredEfficiency | None = None
    failure: str = ""  # why nothing was timed; empty where something was


@dataclass(frozen=True, slots=True)
class NodeKernels:
    """Kernels that are timed on nodes of a kept cluster."""

    launcher: Launcher
    inventory: Inventory
    python: str  # a Python of the nodes that has this program, and torch where they have GPUs
    catalog: Catalog
    quick: bool = False
    kernels: tuple[str, ...] = ()  # names of kernels; all where empty

    def sample_kinds(self) -> Iterator[SampledKind]:
        """Time them on one node of each kind; the failure of one is reported, and ends none of the others.

        The samples are kept as those of this machine are, below the name of the cluster.

        Raises:
            LauncherError: the launcher cannot be used.
        """
        reachable = self.launcher.nodes()
        for kind in self.inventory.kinds:
            typical = kind.typical
            row_id = typical.device if typical.devices else typical.processor
            node = next((facts.node for facts in (typical, *kind.whole) if facts.node in reachable), "")
            sampled = SampledKind(row_id or typical.family, len(kind.nodes), node)
            if not row_id:
                yield replace(sampled, node="", failure="not in the catalogue")
            elif not typical.devices and typical.sockets > 1:
                reason = f"a process takes all {typical.sockets} processors of a node"
                yield replace(sampled, node="", failure=reason)
            elif not node:
                yield replace(sampled, failure=f"{self.launcher.name} reaches none of its nodes")
            else:
                yield self._sampled(sampled, bool(typical.devices))

    def _sampled(self, kind: SampledKind, has_gpus: bool) -> SampledKind:
        task: NodeTask = {"where": "gpu" if has_gpus else "cpu", "quick": self.quick, "kernels": list(self.kernels)}
        words = (self.python, "-m", NODE_MODULE, json.dumps(task))
        order = Order(words, seconds=QUICK_SECONDS if self.quick else WHOLE_SECONDS)
        (answer,) = self.launcher.run(order, [kind.node])
        if answer.failure:
            return replace(kind, failure=answer.failure)
        try:
            device = match_hardware(kind.device, self.catalog).device
            samples = _kept_samples(self.inventory.name, device, answer.output)
            return replace(kind, samples=len(samples.samples), measured=fit_samples(device, [samples]))
        except CapacityError as error:
            return replace(kind, failure=error.one_line())


def keep_measured_kind(cluster: str, kind: SampledKind) -> Path | None:
    """Keep what devices of a cluster reach, for plans that name it; return the file, None where nothing was measured.

    Raises:
        StorageError: it cannot be written.
    """
    measured = kind.measured
    if measured is None:
        return None
    row_id = f"{cluster}-{kind.device}"
    row = {
        "name": f"{kind.device} of {cluster}",
        "cluster": cluster,
        **{name: value for name, value in asdict(measured).items() if name not in ("date", "runs")},
        "source": f"cluster sample --kernels on {kind.node}, {kind.samples} timings",
        "checked": measured.date,
        "confidence": "B",
    }
    # Through JSON, since YAML distinguishes tuples from lists.
    text = yaml.safe_dump({row_id: json.loads(json.dumps(row))}, sort_keys=False)
    return keep_rows(_TABLE, f"{row_id}.yaml", text)


def _kept_samples(cluster: str, device: Device, text: str) -> SampleFile:
    """Keep what a node printed, and return its samples."""
    path = data_folder() / FOLDER / cluster / f"{device_key(device)}.jsonl"
    make_folder(path.parent)
    write_atomically(path, text, overwrite=True)
    return read_samples(path)
