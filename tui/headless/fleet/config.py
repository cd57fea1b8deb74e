"""The ``--config`` option of the ``fleet`` commands: JSON files of instances, sizes and workloads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def config_option(command: CommandT) -> CommandT:
    """Add the ``--config`` option, as the argument ``config`` that ``load_catalog`` takes."""
    return click.option(
        "--config",
        metavar="DIR|FILE",
        type=click.Path(path_type=Path),
        help="Lay gpu_instances.json, model_config.json, workloads.json of a folder, or one file, over what is known.",
    )(command)
