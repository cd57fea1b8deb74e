"""What the engine tells of the storage of a plan, in the words of the screen."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.api import Answer, Machine, RunSpace, format_bytes, format_percent, format_seconds, run_space
from capacity_tui.tui.compared import Row


def stored_rows(machine: Machine | None, found: Answer) -> tuple[Row, ...]:
    """Return what a plan keeps on disk, and what there is room for here; nothing for serving.

    Args:
        machine: where it would be kept; None for nowhere in particular.
        found: the plan with its estimate.
    """
    space = None if machine is None else run_space(machine, found)
    return () if space is None else tuple(_rows(space))


def _rows(space: RunSpace) -> Iterator[Row]:
    data = format_bytes(space.data_bytes) if space.data_bytes else "n/a (how long the job is, is open)"
    yield Row("data", "Data set", data, help="Token ids of the whole job, as data loaders keep them.")
    if space.download_seconds is not None:
        arrives = format_seconds(space.download_seconds)
        yield Row("arrival", "arrives in", arrives, indent=1, help="The data over the network at its full speed.")
    yield Row(
        "checkpoints",
        "Checkpoints",
        format_bytes(space.checkpoint_bytes),
        help="All that are kept at once: the one that is written, the last one, and one to fall back to.",
    )
    if space.free_bytes:
        share = space.needed_bytes / space.free_bytes
        yield Row(
            *("disk", f"of {space.mount}", format_percent(share)),
            share=share,
            interval=f"{format_bytes(space.free_bytes)} free",
            help="Data and checkpoints, of what is free on the local disk of this machine that has most room.",
        )
