"""``fleet``: the group of its commands, one file for each or for a few that go together."""

from __future__ import annotations

import click

from capacity_tui.tui.headless.lazy import LazyGroup, homes_of

_HOMES = homes_of(
    __package__ or "",
    {
        "checking": "check",
        "migrating": "migrate promises run set",
        "prices": "prices",
        "regions": "regions",
        "recommend": "recommend",
        "schedule": "schedule",
        "serve": "serve",
        "sizes": "sizes",
        "workload_sets": "sets",
    },
)


@click.group(cls=LazyGroup, homes=_HOMES)
def fleet() -> None:
    """Compare instances: which machines, at what price, and is it worth moving."""
