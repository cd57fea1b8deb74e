"""Workers of a Ray cluster: actors that stay warm for the next search, and chunks of a lost one done again."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from hashlib import sha256
from time import monotonic, sleep
from typing import Any, NamedTuple

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import HardwareError, MissingPartError
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.nodes.chunks import (
    Chunk,
    Cutting,
    Work,
    files_of_user,
    outcomes_from_text,
    search_environment,
    sources,
)
from capacity_tui.engine.nodes.ray_nodes import is_local, ray_session
from capacity_tui.engine.nodes.shared_search import Filled, Outcomes, SharedSearch, journal_of
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.search import Answer, Question, answerable

CHUNKS_PER_WORKER = 2  # Chunks at a worker: one that it works on, one that waits
MOMENT_SECONDS = 0.1
LOOK_SECONDS = 2.0  # How often it is looked for nodes that joined or left
WARM_SECONDS = 300.0
"""How long a worker of a cluster waits for another search: it holds memory meanwhile, but no processor."""

MOST_LOSSES = 5  # How often a chunk may lose its worker before the chunk is taken for what kills it
MOST_STARTS = 3  # How often a worker may fail to start, one after the other, before it is not started again
FIRST_PAUSE_SECONDS = 1.0
"""Before a chunk is given again, twice as long each time: Ray may send tasks to a node that it believes to be alive."""

FETCH_SECONDS = 30.0  # How long an outcome that is there may take to come here: one on a node that was lost never comes


@dataclass(slots=True)
class _Worker:
    """A worker of a node."""

    actor: Any
    ready: Any  # what is there once it has loaded the program; None when it has
    chunks: int = 0  # how many it has


class _Given(NamedTuple):
    """A chunk that is to be evaluated, from a moment on."""

    due: float
    chunk: Chunk
    filled: Filled


class RayWorkers:
    """The workers of a Ray cluster, one a processor of each node.

    Args:
        is_kept: whether workers stay for the next search of the same program and the same files of the user.
    """

    def __init__(self, ray: Any, work: Work, *, is_kept: bool) -> None:
        self._ray, self._work, self._is_kept = ray, ray.put(pickle.dumps(work)), is_kept
        self._name = _name_of(work)
        self._program: Any = None
        self._workers: dict[str, _Worker] = {}
        self._running: dict[Any, tuple[str, _Given]] = {}
        self._waiting: list[_Given] = []
        self._losses: dict[Chunk, int] = {}
        self._failures: dict[str, list[str]] = {}
        self._next_look = 0.0
        self._look_for_nodes()

    @property
    def room(self) -> int:
        return max(1, len(self._workers)) * CHUNKS_PER_WORKER

    @property
    def lost(self) -> int:
        """How many chunks lost their worker and were given to another."""
        return sum(self._losses.values())

    def give(self, chunk: Chunk, filled: Filled) -> None:
        self._waiting.append(_Given(0.0, chunk, filled))

    def finished(self) -> Iterator[tuple[Chunk, Outcomes]]:
        """Yield chunks that are done, after a moment at the latest; none where none are.

        Raises:
            HardwareError: a chunk cannot be evaluated by any worker, or no worker starts.
            MissingPartError: what the program needs is not installed on a node.
        """
        self._look_for_nodes()
        self._hand_out()
        awaited = [*self._running, *(worker.ready for worker in self._workers.values() if worker.ready is not None)]
        if not awaited:
            sleep(MOMENT_SECONDS)
            return
        done, _ = self._ray.wait(awaited, num_returns=1, timeout=MOMENT_SECONDS)
        more, _ = self._ray.wait(awaited, num_returns=len(awaited), timeout=0)
        for reference in {*done, *more}:
            if reference not in self._running:
                self._begin(reference)
                continue
            name, given = self._running.pop(reference)
            text = self._result_text(reference, name, given.chunk)
            if text is None:
                pause = FIRST_PAUSE_SECONDS * 2.0 ** (self._losses[given.chunk] - 1)
                self._waiting.append(given._replace(due=monotonic() + pause))
            else:
                yield given.chunk, outcomes_from_text(text)

    def stop(self) -> None:
        """Have nothing more evaluated: what a worker is at ends there, what waits does not begin."""
        for reference in self._running:
            self._ray.cancel(reference, recursive=False)

    def _look_for_nodes(self) -> None:
        """Have a worker for each processor of the nodes that are alive, but those that never start."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 - an optional extra

        if monotonic() < self._next_look:
            return
        self._next_look = monotonic() + LOOK_SECONDS
        for node in self._ray.nodes():
            processors = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
            names = [f"{self._name}-{node['NodeID'][:12]}-{number}" for number in range(processors)]
            for name in names:
                if name not in self._workers and len(self._failures.get(name, ())) < MOST_STARTS:
                    on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                    self._workers[name] = self._worker(name, on_node)
        given_up = [words for words in self._failures.values() if len(words) >= MOST_STARTS]
        if given_up and not self._workers:
            words = given_up[0][-1]
            raise HardwareError(f"no worker starts, after {MOST_STARTS} tries", words, "see the logs of Ray")

    def _worker(self, name: str, on_node: object) -> _Worker:
        """Return the worker of a name, which an earlier search may have left."""
        actor = None
        if self._is_kept:
            try:
                actor = self._ray.get_actor(name)
            except ValueError:
                if self._program is None:
                    self._program = self._ray.put(_archive())
        if actor is None:
            kept = {"name": name, "lifetime": "detached", "get_if_exists": True} if self._is_kept else {}
            made = self._ray.remote(max_restarts=0)(_worker_class()).options(scheduling_strategy=on_node, **kept)
            actor = made.remote(self._program, WARM_SECONDS if self._is_kept else 0.0)
        return _Worker(actor, actor.lacking.remote())

    def _hand_out(self) -> None:
        """Give chunks whose time has come to the workers that have the fewest."""
        now = monotonic()
        while ready := [name for name, one in self._workers.items() if one.ready is None]:
            name = min(ready, key=lambda name: self._workers[name].chunks)
            index = next((index for index, given in enumerate(self._waiting) if given.due <= now), None)
            if index is None or self._workers[name].chunks >= CHUNKS_PER_WORKER:
                return
            given, worker = self._waiting.pop(index), self._workers[name]
            worker.chunks += 1
            reference = worker.actor.evaluate.remote(self._work, astuple(given.chunk), pickle.dumps(given.filled))
            self._running[reference] = (name, given)

    def _begin(self, reference: Any) -> None:
        """Take a worker that is ready among those that get chunks; let go of one that never will be."""
        name = next(name for name, worker in self._workers.items() if worker.ready == reference)
        try:
            lacking = self._ray.get(reference, timeout=FETCH_SECONDS)
        except self._ray.exceptions.RayError as error:
            del self._workers[name]
            self._failures.setdefault(name, []).append(_last_line(error))
            return
        self._failures.pop(name, None)
        if lacking:
            raise MissingPartError("a node cannot give the same answer", str(lacking))
        self._workers[name].ready = None

    def _result_text(self, reference: Any, name: str, chunk: Chunk) -> str | None:
        """Return a worker's result of a chunk; None where the worker was lost."""
        if name in self._workers:
            self._workers[name].chunks -= 1
        try:
            text, unlike = self._ray.get(reference, timeout=FETCH_SECONDS)
        except self._ray.exceptions.RayTaskError as error:
            words = _last_line(error.cause or error)
            raise HardwareError("a worker failed", words, "the same search without --ray may tell more") from error
        except self._ray.exceptions.RayError as error:
            self._workers.pop(name, None)
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
    """Connect to the workers of a Ray cluster; those that are not there yet are started, and get the program.

    Raises:
        MissingPartError: Ray is not installed.
        LauncherError: the address is invalid, or no cluster answers there.
    """
    with ray_session(address) as ray:
        workers = RayWorkers(ray, work, is_kept=not is_local(address))
        try:
            yield workers
        finally:
            workers.stop()


def _last_line(error: BaseException) -> str:
    """Return what an error of Ray says at its end, where the cause stands; before it are frames and ids."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1][:200]


def _name_of(work: Work) -> str:
    """Return what workers are called that have the same program and the same files of the user."""
    digest = sha256(f"{work.rests_on.program} {work.rests_on.numpy}".encode())
    for name in sorted(work.user_files):
        digest.update(name.encode() + work.user_files[name])
    return digest.hexdigest()[:16]


def _archive() -> bytes:
    """Return what workers need of the program, as a ZIP file of its package."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in sources():
            archive.write(path, f"capacity_tui/{name}")
    return content.getvalue()


def _worker_class() -> type:
    """Return what runs at a worker. It travels as it is: where it runs the program may not be installed."""

    class Worker:
        """Evaluates chunks, and ends when nobody has asked for a while.

        Args:
            program: the package that it runs, as a ZIP file; None where it is installed.
            warm_seconds: how long it waits for another question; 0 for as long as the search that started it.
        """

        def __init__(self, program: bytes | None, warm_seconds: float) -> None:
            import sys  # noqa: PLC0415 - this class takes no module with it
            import tempfile  # noqa: PLC0415
            import threading  # noqa: PLC0415
            import time  # noqa: PLC0415
            import zipfile  # noqa: PLC0415
            from io import BytesIO  # noqa: PLC0415

            self._now, self._asked = time.monotonic, time.monotonic()
            self._folder = tempfile.TemporaryDirectory(prefix="capacity-tui-")
            if program is not None:
                zipfile.ZipFile(BytesIO(program)).extractall(self._folder.name)
                sys.path.insert(0, self._folder.name)
            if warm_seconds:
                threading.Thread(target=self._end_after, args=(warm_seconds,), daemon=True).start()

        def lacking(self) -> str:
            """Load the program, and return in words what it lacks here; empty for nothing."""
            import platform  # noqa: PLC0415
            from importlib import import_module  # noqa: PLC0415

            self._asked = float("inf")
            try:
                import_module("capacity_tui.engine.nodes.chunks")
            except ImportError as error:
                return f"{platform.node()} lacks {error.name}; install capacity-tui, or that, where its workers run"
            finally:
                self._asked = self._now()
            return ""

        def evaluate(self, work: bytes, chunk: tuple[int, int, int, int], filled: bytes) -> tuple[str, str]:
            """Return the outcome of a chunk, as ``evaluate`` of chunks does."""
            from capacity_tui.engine.nodes.chunks import evaluate  # noqa: PLC0415 - as said above

            self._asked = float("inf")
            try:
                return evaluate(work, chunk, filled)
            finally:
                self._asked = self._now()

        def _end_after(self, seconds: float) -> None:
            import os  # noqa: PLC0415
            import time  # noqa: PLC0415

            while self._now() - self._asked < seconds:
                time.sleep(1.0)
            self._folder.cleanup()
            os._exit(0)

    return Worker


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An answer that workers found."""

    answer: Answer
    resumed: int  # chunks that an earlier search of the same had done
    lost: int  # chunks that lost their worker and were done again


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

    Raises:
        CapacityError: the question makes no sense or nothing of it can be estimated, or the cluster cannot be used.
    """
    catalog, user_files, cut = load_catalog(), files_of_user(), cutting or Cutting()
    rests_on = search_environment(question)
    journal = journal_of(question, machine, rests_on, user_files, cut)
    shared = SharedSearch(question, catalog, machine, journal, cut)
    with ray_workers(address, Work(answerable(question), machine, user_files, rests_on, cut)) as workers:
        answer = shared.run(workers, progress, stopped)
        lost = workers.lost
    if answer.complete:
        journal.remove()
    return SharedAnswer(answer, shared.resumed, lost)
