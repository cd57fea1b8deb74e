"""What the pods of a job print, through ``kubectl logs``."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from capacity_tui.engine.nodes.jobs.queues import QueuedJob
from capacity_tui.engine.nodes.kubernetes import Kubectl, LineStream

_RECONNECT_SECONDS = 1.0
_LAST_WORDS_SECONDS = 10.0
_DIGITS = 9


class PodOutput:
    """Writes what the first pod of a job prints, then the next one, and goes on where a connection broke."""

    def __init__(self, kubectl: Kubectl, write: Callable[[str], None]) -> None:
        self._kubectl, self._write = kubectl, write
        self._pod = ""
        self._reader: _PodReader | None = None

    def __enter__(self) -> Callable[[QueuedJob], None]:
        """Return what is told of the job at every poll."""
        return self._look

    def __exit__(self, *_: object) -> None:
        """End the connection."""
        if self._reader is not None:
            self._reader.stop()

    def _look(self, job: QueuedJob) -> None:
        if self._reader is not None and (job.printed_by != self._pod or job.is_over):
            self._reader.finish()
            self._reader = None
        if job.printed_by and job.printed_by != self._pod:
            self._pod = job.printed_by
            self._reader = _PodReader(self._kubectl, self._pod, self._write)
            if job.is_over:
                self._reader.finish()


class _PodReader:
    """Reads the output of one pod in a thread."""

    def __init__(self, kubectl: Kubectl, pod: str, write: Callable[[str], None]) -> None:
        self._kubectl, self._pod, self._write = kubectl, pod, write
        self._is_over, self._is_stopped = Event(), Event()
        self._stream: LineStream | None = None
        self._thread = Thread(target=self._read, name=f"output of {pod}", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the last lines of a pod that is over."""
        self._is_over.set()
        self._thread.join(_LAST_WORDS_SECONDS)
        self.stop()

    def stop(self) -> None:
        """Read no more."""
        self._is_stopped.set()
        self._is_over.set()
        if self._stream is not None:
            self._stream.end()
        self._thread.join(_RECONNECT_SECONDS)

    def _read(self) -> None:
        last = ""
        while not self._is_stopped.is_set():
            is_final = self._is_over.is_set()
            since = (f"--since-time={last}",) if last else ()
            self._stream = self._kubectl.stream("logs", "--follow", "--timestamps", *since, f"pod/{self._pod}")
            for line in self._stream:
                stamp, _, text = line.partition(" ")
                if _comparable(stamp) > _comparable(last):
                    self._write(text)
                    last = stamp
            if is_final:
                return
            self._is_over.wait(_RECONNECT_SECONDS)


def _comparable(stamp: str) -> str:
    """Return a time in RFC 3339 with all digits of a second, so that later ones are larger."""
    whole, _, rest = stamp.removesuffix("Z").partition(".")
    return f"{whole}.{rest:0<{_DIGITS}}" if whole else ""
