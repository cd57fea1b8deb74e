"""Nodes of a Slurm cluster: a step on each of them by ``srun``, and what the controller says of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order, run_on_nodes
from capacity_tui.engine.record import dataclass

_CONTROLLER_SECONDS = 20.0
_START_SECONDS = 30  # A step that does not start within this many seconds will not soon: others use the node
_OUT_OF_USE = (
    "down",
    "drain",
    "fail",
    "inval",
    "maint",
    "not_responding",
    "unknown",
    "powered_down",
    "powering_down",
    "reboot",
    "future",
)
_GPU = "gpu"
_KEY = re.compile(r"(?:^|\s)([A-Za-z_:]+)=")


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as the controller reports it."""

    name: str
    state: str  # of the controller, such as ``idle``, ``mixed+drain`` or ``down``
    reason: str  # why it is out of use; empty where it is not
    cpus: int
    memory_mib: int
    resources: Mapping[str, int]  # generic resources by name, such as ``gpu:h100``
    used: Mapping[str, int]  # those of them that jobs have
    partitions: tuple[str, ...]
    cpus_used: int
    watts: float | None  # what it draws now; None where Slurm does not measure it
    values: Mapping[str, str]  # everything the controller reports, by its names

    @property
    def gpus(self) -> dict[str, int]:
        """How many GPUs it has by the type's name; those without a type under an empty one."""
        return _gpus(self.resources)

    @property
    def gpus_used(self) -> int:
        return sum(_gpus(self.used).values())

    @property
    def is_usable(self) -> bool:
        """Whether jobs can run on it, now or when others have ended."""
        return "*" not in self.state and not any(
            word.startswith(_OUT_OF_USE) for word in re.findall("[a-z_]+", self.state)
        )


@dataclass(frozen=True, slots=True)
class Slurm:
    """The cluster of the controller that this machine's Slurm commands talk to."""

    partition: str = ""  # the queue in which steps are run; the first one of each node where empty

    @property
    def name(self) -> str:
        return "Slurm"

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes; raises LauncherError where the controller does not answer."""
        return tuple(node.name for node in slurm_nodes())

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        """Run a step on each of some nodes; one that has no room at once answers so."""
        known = {node.name: node for node in slurm_nodes()}

        def words(node: str) -> tuple[str, ...]:
            resources = known[node].resources if node in known else {}
            partition = self.partition or next(iter(known[node].partitions), "") if node in known else self.partition
            queue = (f"--partition={partition}",) if partition else ()
            all_of_it = tuple(f"--gres={name}:{count}" for name, count in resources.items())
            minutes = max(1, round(order.seconds / 60) + 1)
            step = ("srun", "--nodes=1", "--ntasks=1", f"--nodelist={node}", f"--immediate={_START_SECONDS}")
            options = ("--job-name=capacity-tui", "--mem=0", "--overcommit", f"--time={minutes}")
            return (*step, *options, *all_of_it, *queue, "--", *order.words)

        out_of_use = {node.name: node for node in known.values() if not node.is_usable}
        yield from (
            NodeAnswer(node, failure=f"Slurm says {': '.join(filter(None, (known[node].state, known[node].reason)))}")
            for node in nodes
            if node in out_of_use
        )
        yield from run_on_nodes(order, [node for node in nodes if node not in out_of_use], words)


def slurm_text(*words: str, standard_input: str = "") -> str:
    """Return what a command of Slurm prints, given what it reads; raises LauncherError where it gives no answer."""
    done = slurm_answer(*words, standard_input=standard_input)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        complaint = lines[-1].removeprefix(f"{words[0]}: ")[:200]
        raise LauncherError(f"{words[0]}: {complaint}", hint="`scontrol ping` shows whether the controller runs")
    return done.stdout


def slurm_answer(*words: str, standard_input: str = "") -> subprocess.CompletedProcess[str]:
    """Return exit code and output of a command of Slurm, also where it refuses; raises LauncherError without Slurm."""
    if shutil.which(words[0]) is None:
        hint = "run this where Slurm's commands are, or name hosts with --hosts FILE"
        raise LauncherError(f"{words[0]} is not installed here", hint=hint)
    try:
        return subprocess.run(  # noqa: S603 - Slurm's own commands
            words, input=standard_input, capture_output=True, text=True, timeout=_CONTROLLER_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        hint = "ask the cluster's administrator, or try again"
        raise LauncherError(f"{words[0]}: no answer within {_CONTROLLER_SECONDS:g} s", hint=hint) from None


def slurm_nodes() -> tuple[SlurmNode, ...]:
    """Return the nodes as the controller reports them; raises LauncherError where it does not answer."""
    return parse_nodes(slurm_text("scontrol", "--details", "--oneliner", "show", "nodes"))


def parse_nodes(text: str) -> tuple[SlurmNode, ...]:
    """Return the nodes of ``scontrol --details --oneliner show nodes``."""
    return tuple(_node(values) for line in text.splitlines() if (values := parse_values(line)).get("NodeName"))


def parse_values(line: str) -> dict[str, str]:
    """Return the ``Name=value`` pairs of a line, if any; a value reaches to the next name, as reasons have blanks."""
    places = list(_KEY.finditer(line))
    ends = (*(match.start() for match in places[1:]), len(line))
    return {match[1]: line[match.end() : end].strip() for match, end in zip(places, ends, strict=False)}


def slurm_racks() -> dict[str, tuple[str, ...]]:
    """Return the switches above each node, the nearest first; none where a controller without a topology refuses."""
    try:
        return racks_of(slurm_text("scontrol", "--oneliner", "show", "topology"))
    except LauncherError:
        return {}


def racks_of(text: str) -> dict[str, tuple[str, ...]]:
    """Return the switches above each node, the nearest first, of ``scontrol --oneliner show topology``."""
    switches = [values for line in text.splitlines() if (values := parse_values(line)).get("SwitchName")]
    switches.sort(key=lambda values: int(values.get("Level", "0") or 0))
    above: dict[str, list[str]] = {}
    for values in switches:
        for node in names_of(values.get("Nodes", "")):
            above.setdefault(node, []).append(values["SwitchName"])
    return {node: tuple(names) for node, names in above.items()}


def names_of(listed: str) -> tuple[str, ...]:
    """Return the names that a list such as ``n[01-03,7],login`` stands for."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", listed):
        names += _expanded(part)
    return tuple(name for name in names if name not in {"", "(null)"})


def _expanded(part: str) -> list[str]:
    bracket = re.search(r"\[([^\]]*)\]", part)
    if bracket is None:
        return [part]
    numbers: list[str] = []
    for piece in bracket[1].split(","):
        first, dash, last = piece.partition("-")
        numbers += [f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1)] if dash else [first]
    return [name for number in numbers for name in _expanded(part[: bracket.start()] + number + part[bracket.end() :])]


def _node(values: Mapping[str, str]) -> SlurmNode:
    return SlurmNode(
        name=values["NodeName"],
        state=values.get("State", "unknown").casefold(),
        reason=values.get("Reason", "").partition(" [")[0],
        cpus=_whole(values.get("CPUTot")),
        memory_mib=_whole(values.get("RealMemory")),
        resources=_resources(values.get("Gres", "")),
        used=_resources(values.get("GresUsed", "")) or _allocated(values.get("AllocTRES", "")),
        partitions=tuple(name for name in values.get("Partitions", "").split(",") if name),
        cpus_used=_whole(values.get("CPUAlloc")),
        watts=_watts(values.get("CurrentWatts")),
        values=values,
    )


def _resources(text: str) -> dict[str, int]:
    """Return the counts of ``gpu:h100:8(S:0-1),...`` by name; parts of one device are no count."""
    counts: dict[str, int] = {}
    for name, count in re.findall(
        r"(?:^|,)([A-Za-z][\w:.\-]*?):(\d+)(?=\(|,|$)", re.sub(r"\((?!null)[^)]*\)", "", text)
    ):
        counts[name] = counts.get(name, 0) + int(count)
    return counts


def _allocated(text: str) -> dict[str, int]:
    """Return the generic resources of ``cpu=64,gres/gpu:h100=8``."""
    pairs = (part.partition("=") for part in text.split(",") if part.startswith("gres/"))
    return {name.removeprefix("gres/"): int(count) for name, _, count in pairs if count.isdigit()}


def _gpus(resources: Mapping[str, int]) -> dict[str, int]:
    parts = ((name.partition(":"), count) for name, count in resources.items())
    return {kind: count for (name, _, kind), count in parts if name == _GPU}


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _watts(text: str | None) -> float | None:
    try:
        return float(text) if text and text not in {"n/s", "0"} else None
    except ValueError:
        return None
