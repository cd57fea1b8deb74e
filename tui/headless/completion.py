"""Shell completion of names: catalogue rows, plan fields, saved plans."""

from __future__ import annotations

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
    found = [name for name in known if name.startswith(incomplete)]
    return list(dict.fromkeys((*found, *architectures(context, parameter, incomplete))))


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
    from capacity_tui.engine.present.reference import schema_names

    return [name for name in schema_names(load_catalog()) if name.startswith(incomplete)]
