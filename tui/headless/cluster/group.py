"""``cluster``: the group of its commands, one file for each."""

from __future__ import annotations

import click

from capacity_tui.tui.headless.lazy import LazyGroup, homes_of

_HOMES = homes_of(
    __package__ or "", {"inventory": "detect show", "jobs": "jobs", "sample": "sample", "submit": "submit"}
)


@click.group(cls=LazyGroup, homes=_HOMES)
def cluster() -> None:
    """Plan for the cluster people already have: what its nodes are, what they reach, what runs on them.

    Nodes are reached through Slurm, a Ray cluster, or the user's own ssh.
    """
