"""Options of commands that watch a run: where what they see goes while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def outlet_options(command: CommandT) -> CommandT:
    """Add ``--jsonl`` and ``--serve`` to a command, as its arguments ``jsonl`` and ``serve``."""
    serve = click.option(
        "--serve",
        metavar="[HOST:]PORT",
        help="Serve Prometheus at /metrics; beyond this machine with a token in CAPACITY_TUI_METRICS_TOKEN.",
    )
    jsonl = click.option(
        "--jsonl", metavar="FILE", type=click.Path(path_type=Path), help="Append all of it as JSON lines; - for stdout."
    )
    return jsonl(serve(command))
