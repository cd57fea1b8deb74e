"""``storage``: the group of its commands, one file for each."""

from __future__ import annotations

import click

from capacity_tui.tui.headless.lazy import LazyGroup, homes_of

_HOMES = homes_of(__package__ or "", {"bench": "bench", "estimate": "estimate", "fit": "fit", "plan": "plan"})


@click.group(cls=LazyGroup, homes=_HOMES)
def storage() -> None:
    """Estimate storage: patterns of a corpus, databases that hold them, data of a training."""
