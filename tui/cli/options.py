"""Options that several commands share, and shell completion of the names they take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click


def architectures(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the models that begin like this."""
    del context, parameter
    from capacity_tui.engine.catalog import load_catalog

    return [name for name in load_catalog().architectures if name.startswith(incomplete)]


def models(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the models and families that begin like this."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.models import known_models

    known = [model.id for model in known_models(load_catalog())]
    fitting = [name for name in known if name.startswith(incomplete)]
    return list(dict.fromkeys((*fitting, *architectures(context, parameter, incomplete))))


def devices(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the accelerators and processors that begin like this."""
    del context, parameter
    from capacity_tui.engine.catalog import load_catalog

    catalog = load_catalog()
    return [name for name in (*catalog.accelerators, *catalog.processors) if name.startswith(incomplete)]


def fields(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the plan fields that begin like this, ready for a value."""
    del context, parameter
    from capacity_tui.engine.plan import field_names

    return [f"{name}=" for name in field_names() if name.startswith(incomplete)]


def names_of_fields(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the plan fields that begin like this."""
    del context, parameter
    from capacity_tui.engine.plan import field_names

    return [name for name in field_names() if name.startswith(incomplete)]


def saved_plans(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the saved plans that begin like this."""
    del context, parameter
    from capacity_tui.engine.plan.files import list_plans

    return [plan.name for plan in list_plans() if plan.name.startswith(incomplete)]


def schemas(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of schemas that begin like this."""
    del context, parameter
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.present import schema_names

    return [name for name in schema_names(load_catalog()) if name.startswith(incomplete)]


CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def config_option(command: CommandT) -> CommandT:
    """Add the ``--config`` option, as the argument ``config`` that ``load_catalog`` takes."""
    return click.option(
        "--config",
        metavar="DIR|FILE",
        type=click.Path(path_type=Path),
        help="Lay gpu_instances.json, model_config.json, workloads.json of a folder, or one file, over what is known.",
    )(command)
