"""Plans as what starts them elsewhere: manifests of Kubernetes, tasks of SkyPilot and dstack, a Compose file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import product

from capacity_tui.engine.catalog import Catalog, counted, named_release
from capacity_tui.engine.estimate import Answer, figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.frameworks.commands import PORT, SERVERS, newest_checkpoint, resuming, script_words
from capacity_tui.engine.present.frameworks.exports import exported
from capacity_tui.engine.present.frameworks.job import Job
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard import CHECKPOINT
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import FP16_BYTES, HOUR_SECONDS

LONGEST_NAME = 50  # Of an object of Kubernetes, with room for what is put behind it
_PROCESSORS, _SHARED_GIB = counted("container-processors"), counted("container-shared-memory")
_DISK_GIB, _DISK_MODELS = counted("container-disk"), counted("container-disk-models")
_GIB, _MIB_OF_GIB = 2.0**30, 2.0**10
_RESTARTS, _MARGIN = round(counted("container-restarts")), counted("container-time")


_OVER_NODES: Mapping[str, str] = {
    "sglang": "export NODE_RANK={rank} HEAD={head}:{port}\n{command}",
    "vllm": (
        'if [ "{rank}" = 0 ]; then\nray start --head --port={port}\n{command}\n'
        "else\nray start --block --address={head}:{port}\nfi"
    ),
}
SPANS_NODES = frozenset(_OVER_NODES)  # Engines whose processes find each other over nodes


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a plan does not say of where it runs."""

    words: tuple[str, ...] = ()  # the command that trains; a placeholder where it is empty
    queue: str = ""  # local queue of Kueue; empty for none
    topology: str = ""  # label of nodes that all of a job share, such as a rack's; empty for any
    product: str = ""  # what GPU feature discovery calls the device; empty for any
    name: str = ""  # of it all; model and task where empty
    image: str = ""  # what containers are started of; one with the plan's software where empty
    claim: str = ""  # persistent volume claim that holds the folder of checkpoints; empty for none
    checkpoints: str = ""  # folder that the command leaves checkpoints in, as a container sees it; empty where unknown
    seconds: int | None = None  # after which it may be ended; by the upper end of its predicted time where None


@dataclass(frozen=True, slots=True)
class Container:
    """What a plan asks of each of its nodes, as rows of ``exports.yaml`` read it."""

    job: Job
    name: str
    device: str  # id of the device in the catalogue
    vendor: str
    device_gib: float
    wishes: Wishes
    host_gib: float
    weights_gib: float
    model_gib: float
    seconds: int | None
    alternatives: tuple[str, ...] = ()  # other devices that run the same files, as clouds call them

    @property
    def trains(self) -> bool:
        """Whether it ends by itself."""
        return not self.job.plan.is_inference

    @property
    def software(self) -> str:
        """The engine that serves, or the maker of the device it trains on."""
        return self.vendor if self.trains else named_release(self.job.plan.inference.engine)[0]

    @property
    def gpus(self) -> int | None:
        """Devices of one; None where processors do the work."""
        return None if self.job.on_cpu else self.job.per_node

    @property
    def image(self) -> object:
        """What is started."""
        return self.wishes.image or exported("container", self.job, container=self)["image"]

    @property
    def port(self) -> object:
        """Where it answers; None where nobody asks."""
        return exported("container", self.job, container=self).get("port") if not self.trains else None

    @property
    def published(self) -> list[str]:
        """The same as Compose maps it."""
        return [] if self.port is None else [f"{self.port}:{self.port}"]

    @property
    def mounts(self) -> list[dict[str, str]]:
        """Where a container finds its volumes."""
        mounts = [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108 - what loaders and NCCL use
        return [*mounts, {"name": "checkpoints", "mountPath": self.wishes.checkpoints}] if self.wishes.claim else mounts

    @property
    def volumes(self) -> list[dict[str, object]]:
        """Shared memory, and the claim with the checkpoints."""
        volumes: list[dict[str, object]] = [
            {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": f"{self.shared_gib}Gi"}}
        ]
        kept: dict[str, object] = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": self.wishes.claim}}
        return [*volumes, kept] if self.wishes.claim else volumes

    @property
    def processors(self) -> str:
        """Processors of a node, the loader's beside those that feed the devices."""
        return f"{self.job.per_node * (_PROCESSORS + (self.job.loader_workers or 0)):.0f}"

    @property
    def memory_gib(self) -> int:
        """Main memory of a node, GiB: what the plan keeps there, weights while they are read, and shared memory."""
        return math.ceil((self.host_gib + self.weights_gib) * self.job.per_node + self.shared_gib)

    @property
    def shared_gib(self) -> int:
        """Shared memory of a node, GiB."""
        return round(_SHARED_GIB) * self.job.per_node

    @property
    def disk(self) -> int:
        """Disk of a node, GiB: the checkpoint, and what is written of it."""
        return math.ceil(max(_DISK_GIB, _DISK_MODELS * self.model_gib))

    @property
    def restarts(self) -> int:
        """How many times it is started again."""
        most = self.job.plan.recovery.max_restarts
        return most if isinstance(most, int) else _RESTARTS

    @property
    def duration(self) -> str | None:
        """After which dstack may end it."""
        return None if self.seconds is None else f"{math.ceil(self.seconds / HOUR_SECONDS)}h"

    @property
    def gpu(self) -> str:
        """What clouds call the device; its name in the catalogue where no word is known."""
        return str(exported("cloud_names", self.job, container=self).get("accelerator", self.device.upper()))

    @property
    def accelerators(self) -> str | None:
        """Devices of a node as SkyPilot writes them."""
        return None if self.gpus is None else f"{self.gpu}:{self.gpus}"

    @property
    def choices(self) -> list[dict[str, object]] | None:
        """What SkyPilot may take as well: other devices, and capacity on demand where no spot capacity is left."""
        devices = (self.gpu, *self.alternatives) if self.alternatives else ()
        accelerators = [{"accelerators": f"{device}:{self.gpus}"} for device in devices] or [{}]
        capacity = [{"use_spot": True}, {"use_spot": False}] if self.job.plan.pricing.spot else [{}]
        choices: list[dict[str, object]] = [{**one, **other} for one, other in product(accelerators, capacity)]
        return choices if len(choices) > 1 else None

    @property
    def variable(self) -> bool:
        """Whether the command asks for the checkpoint in MODEL."""
        return not self.trains and not self.job.on_hub

    def torchrun(self, *meeting: str) -> str:
        """Return the command of one node: torchrun's, with where its nodes meet, or that of the engine."""
        if not self.trains:
            return SERVERS[self.software].command(self.job).rstrip("\n")
        words = script_words(self.wishes.words)
        if not words[0].endswith(".py"):
            return resuming(words)
        options = meeting if self.job.nodes > 1 else ("--standalone",)
        return " ".join(("torchrun", f"--nproc-per-node={self.job.per_node}", *options, resuming(words)))

    def _between(self, nodes: str, rank: str, head: str) -> str:
        """Return the command of one of several nodes, by the variables that say which it is and where the first is."""
        if not self.trains and self.job.nodes > 1:
            return _OVER_NODES[self.software].format(rank=rank, head=head, port=PORT, command=self.torchrun())
        command = self.torchrun(
            f"--nnodes={nodes}", f"--node-rank={rank}", f"--master-addr={head}", f"--master-port={PORT}"
        )
        return self._resumed(command) if self._asks_for_checkpoint else command

    @property
    def _asks_for_checkpoint(self) -> bool:
        return any(f"{{{CHECKPOINT}}}" in word for word in self.wishes.words)

    def _resumed(self, command: str) -> str:
        return f"{newest_checkpoint(self.wishes.checkpoints)}exec {command}"

    @property
    def command(self) -> list[str]:
        """What a container of Kubernetes or Compose runs."""
        if self.trains:
            head = f"{self.name}-workers-0-0.{self.name}"
            text = self._between(str(self.job.nodes), "$JOB_COMPLETION_INDEX", head)
        else:
            text = self._between("$LWS_GROUP_SIZE", "$LWS_WORKER_INDEX", "$LWS_LEADER_ADDRESS")
        return ["bash", "-c", text]

    @property
    def trainer_command(self) -> list[str]:
        """What Kubeflow's trainer runs, which sets the variables of torchrun itself."""
        words = script_words(self.wishes.words)
        command = ["torchrun", *words] if words[0].endswith(".py") else [*words]
        return ["bash", "-c", self._resumed(resuming(command))] if self._asks_for_checkpoint else command

    @property
    def script(self) -> str:
        """What SkyPilot runs on each node."""
        head = '"$(echo "$SKYPILOT_NODE_IPS" | head -n1)"'
        return self._between("$SKYPILOT_NUM_NODES", "$SKYPILOT_NODE_RANK", head)

    @property
    def lines(self) -> list[str]:
        """What dstack runs on each node."""
        return [self._between("$DSTACK_NODES_NUM", "$DSTACK_NODE_RANK", "$DSTACK_MASTER_NODE_IP")]


def container_of(answer: Answer, job: Job, catalog: Catalog, wishes: Wishes) -> Container:
    """Return what a plan asks of each of its nodes."""
    device, estimate = answer.resolved.cluster.device, answer.estimate
    row = catalog.accelerators.get(device.id)
    time = figure(estimate, Figure.RELIABILITY_CALENDAR_SECONDS).value
    longest = mean(time.high) if isinstance(time, Interval) else None
    seconds = None if longest is None else round(longest * _MARGIN + HOUR_SECONDS)
    name = wishes.name or f"{job.plan.model.name or 'model'}-{job.plan.task or 'train'}"
    return Container(
        job=job,
        name=object_name(name),
        device=device.id,
        vendor="" if row is None else row.vendor,
        device_gib=0.0 if row is None else row.memory_mib / _MIB_OF_GIB,
        wishes=wishes,
        host_gib=mean(estimate.memory.host_bytes) / _GIB,
        weights_gib=mean(estimate.memory.parts.get("weights", 0.0)) / _GIB,
        model_gib=mean(estimate.model.parameters) * FP16_BYTES / _GIB,
        seconds=seconds if wishes.seconds is None else wishes.seconds,
    )


def object_name(text: str) -> str:
    """Return a text as Kubernetes names objects: lower case letters, digits and dashes, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", text.casefold()).lstrip("-0123456789")[:LONGEST_NAME].strip("-")
    return name or "job"
