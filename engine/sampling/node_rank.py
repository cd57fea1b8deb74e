"""Times kernels on a node for another machine, which reads what is printed: a line of software, then one a sample."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Literal, TypedDict, cast

from capacity_tui.engine.sampling.kernel_cases import KERNELS, Kernel
from capacity_tui.engine.sampling.kernel_samples import (
    LIMIT_SECONDS,
    QUICK_LIMIT_SECONDS,
    sample_kernels,
    sampling_backend,
    sampling_grid,
)
from capacity_tui.engine.sampling.samples import sample_files

NODE_MODULE = "capacity_tui.engine.sampling.node_rank"


class NodeTask(TypedDict):
    """What a node times.

    Attributes:
        where: ``gpu`` or ``cpu``.
        kernels: which; all where empty.
    """

    where: Literal["gpu", "cpu"]
    quick: bool
    kernels: list[str]


def main(task: NodeTask) -> None:
    """Time the kernels of a task, and print the samples as their file has them.

    Raises:
        MissingPartError: torch is not there, or cannot use the GPU.
    """
    backend = sampling_backend(task["where"])
    wanted = frozenset(cast("list[Kernel]", task["kernels"]) or KERNELS)
    limit = QUICK_LIMIT_SECONDS if task["quick"] else LIMIT_SECONDS
    with tempfile.TemporaryDirectory(prefix="capacity-tui-") as folder:
        cases = sampling_grid(backend, task["quick"], wanted)
        for _ in sample_kernels(backend, "node", cases, limit_seconds=limit, folder=Path(folder)):
            pass
        for file in sample_files("node", Path(folder)):
            sys.stdout.write(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
