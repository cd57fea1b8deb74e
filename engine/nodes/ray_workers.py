"""Workers of a Ray cluster: chunks as tasks, and those of a lost worker done again."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import HardwareError, MissingPartError
from capacity_tui.engine.nodes.chunks import (
    Chunk,
    Cutting,
    Work,
    outcomes_from_text,
    own_files,
    search_environment,
    sources,
)
from capacity_tui.engine.nodes.ray_nodes import is_local, ray_session
from capacity_tui.engine.nodes.shared_search import Filled, Outcomes, SharedSearch, journal_of
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.search import Answer, Question, answerable

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


# Chunks at a worker: one that it works on, one that waits.
CHUNKS_PER_WORKER = 2

MOMENT_SECONDS = 0.1

MOST_LOSSES = 5
"""How often a chunk may lose its worker before the chunk is taken for what kills it."""

FIRST_PAUSE_SECONDS = 1.0
"""Before a chunk is given again, twice as long each time: Ray may send tasks to a node that it believes to be alive."""

FETCH_SECONDS = 30.0
"""How long an outcome that is there may take to come here: one on a node that was lost never comes."""


class RayWorkers:
    """The workers of a Ray cluster.

    Args:
        work: what all chunks have in common.
    """

    def __init__(self, ray: Any, work: Work) -> None:
        self._ray, self._work = ray, ray.put(pickle.dumps(work))
        self._task = ray.remote(num_cpus=1, max_retries=0)(_task())
        self._running: dict[Any, tuple[Chunk, Filled]] = {}
        self._again: list[tuple[float, Chunk, Filled]] = []
        self._losses: dict[Chunk, int] = {}

    @property
    def room(self) -> int:
        """How many chunks they take at once, those that wait at a worker among them."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1))) * CHUNKS_PER_WORKER

    @property
    def lost(self) -> int:
        """How many chunks lost their worker and were given to another."""
        return sum(self._losses.values())

    def give(self, chunk: Chunk, filled: Filled) -> None:
        """Have a chunk evaluated."""
        self._running[self._task.remote(self._work, astuple(chunk), pickle.dumps(filled))] = (chunk, filled)

    def finished(self) -> Iterator[tuple[Chunk, Outcomes]]:
        """Yield chunks that are done, after a moment at the latest; none where none are.

        Raises:
            HardwareError: a chunk cannot be evaluated by any worker.
            MissingPartError: what the program needs is not installed on a node.
        """
        self._give_again()
        running = list(self._running)
        if not running:
            sleep(MOMENT_SECONDS)
            return
        done, _ = self._ray.wait(running, num_returns=1, timeout=MOMENT_SECONDS)
        more, _ = self._ray.wait(running, num_returns=len(running), timeout=0)
        for reference in {*done, *more}:
            chunk, filled = self._running.pop(reference)
            text = self._result_text(reference, chunk)
            if text is None:
                pause = FIRST_PAUSE_SECONDS * 2.0 ** (self._losses[chunk] - 1)
                self._again.append((monotonic() + pause, chunk, filled))
            else:
                yield chunk, outcomes_from_text(text)

    def stop(self) -> None:
        """Have nothing more evaluated."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)

    def _give_again(self) -> None:
        """Give chunks of lost workers whose pause is over to others."""
        now = monotonic()
        due, self._again = (
            [chunk for chunk in self._again if chunk[0] <= now],
            [chunk for chunk in self._again if chunk[0] > now],
        )
        for _, chunk, filled in due:
            self.give(chunk, filled)

    def _result_text(self, reference: Any, chunk: Chunk) -> str | None:
        """Return a worker's result of a chunk; None where the worker was lost."""
        try:
            text, unlike = self._ray.get(reference, timeout=FETCH_SECONDS)
        except self._ray.exceptions.RayTaskError as error:
            words = str(error.cause or error).strip().splitlines()[-1][:200]
            raise HardwareError("a worker failed", words, "the same search without --ray may tell more") from error
        except self._ray.exceptions.RuntimeEnvSetupError as error:
            words = str(error).strip().splitlines()[0][:200]
            raise HardwareError(
                "the program cannot be brought to a node", words, "see the logs of Ray there"
            ) from error
        except self._ray.exceptions.RayError as error:
            self._losses[chunk] = self._losses.get(chunk, 0) + 1
            if self._losses[chunk] >= MOST_LOSSES:
                words = f"{type(error).__name__}, {MOST_LOSSES} times at the same chunk"
                raise HardwareError(
                    "workers are lost", words, "see the logs of Ray: they may run out of memory"
                ) from error
            return None
        if unlike:
            raise MissingPartError("a node cannot give the same answer", str(unlike))
        return str(text)


@contextmanager
def ray_workers(address: str, work: Work) -> Iterator[RayWorkers]:
    """Connect to the workers of a Ray cluster, and bring the program to its nodes.

    Args:
        work: what all chunks have in common.

    Raises:
        MissingPartError: Ray is not installed.
        LauncherError: the address is invalid, or no cluster answers there.
    """
    with tempfile.TemporaryDirectory(prefix="capacity-tui-") as folder:
        modules = {} if is_local(address) else {"py_modules": [str(_copied(Path(folder)))]}
        with ray_session(address, modules) as ray:
            workers = RayWorkers(ray, work)
            try:
                yield workers
            finally:
                workers.stop()


def _copied(folder: Path) -> Path:
    """Copy what workers need of the program, and return the package that holds it."""
    package = folder / "capacity_tui"
    for name, path in sources():
        target = package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return package


def _task() -> Any:
    """Return what workers run. It travels as it is: where it runs the program may not be installed."""

    def task(work: bytes, chunk: tuple[int, int, int, int], filled: bytes) -> tuple[str, str]:
        try:
            from capacity_tui.engine.nodes.chunks import evaluate  # noqa: PLC0415 - as said above
        except ImportError as error:
            import platform  # noqa: PLC0415 - this function takes no module with it

            return "", f"{platform.node()} lacks {error.name}; install capacity-tui, or that, where its workers run"
        return evaluate(work, chunk, filled)

    return task


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An answer that workers found.

    Attributes:
        resumed: chunks that an earlier search of the same had done.
        lost: chunks that lost their worker and were done again.
    """

    answer: Answer
    resumed: int
    lost: int


def search_on_ray(
    address: str,
    question: Question,
    machine: Machine | None = None,
    progress: Callable[[Answer], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    cutting: Cutting | None = None,
) -> SharedAnswer:
    """Return the best configurations of a question, found by the workers of a Ray cluster.

    The answer is that of a search here, to the last bit. What is done is kept until the search is complete: started
    again, the same search resumes from there.

    Args:
        address: ``HOST:PORT`` of a cluster, ``auto``, ``local`` or ``local:N``.
        machine: the detected machine, for plans that run on it.
        progress: gets the best so far now and then.
        stopped: polled for whether to stop.

    Raises:
        CapacityError: the question makes no sense or nothing of it can be estimated, or the cluster cannot be used.
    """
    catalog, user_files, cut = load_catalog(), own_files(), cutting or Cutting()
    rests_on = search_environment(question)
    journal = journal_of(question, machine, rests_on, user_files, cut)
    shared = SharedSearch(question, catalog, machine, journal, cut)
    with ray_workers(address, Work(answerable(question), machine, user_files, rests_on, cut)) as workers:
        answer = shared.run(workers, progress, stopped)
        lost = workers.lost
    if answer.complete:
        journal.remove()
    return SharedAnswer(answer, shared.resumed, lost)
