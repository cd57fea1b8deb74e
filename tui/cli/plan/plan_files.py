"""``examples``, ``plans`` and ``schema``: plans that ship, saved plans, and JSON schemas for editors."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.cli import options
from capacity_tui.tui.cli.output import Output, output_options, say, tell


@click.command()
@click.argument("into", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--list", "listing", is_flag=True, help="List the examples (the default).")
@click.option("--show", metavar="NAME", help="Print one.")
@click.option("--write", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Write them all to a folder.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@output_options("table", "json", to_file=False)
def examples(
    into: Path | None, listing: bool, show: str | None, folder: Path | None, force: bool, output: Output
) -> None:
    """List, print or write the example plans, to DIR where it is given; `plan NAME` estimates one."""
    del listing
    folder = folder or into
    from capacity_tui.engine.plan.files import example_names, example_text, example_title

    if show is not None:
        output.write(example_text(show))
        return
    if folder is not None:
        _write_all(folder, force)
        return
    titles = {name: example_title(name) for name in example_names()}
    if output.is_data:
        output.data(titles)
        return
    from capacity_tui.tui.cli.rich_tables import pairs

    output.show([pairs(titles.items())])


def _write_all(folder: Path, force: bool) -> None:
    """Write every example that is not there yet, or all of them."""
    from capacity_tui.engine.files import make_folder, write_atomically
    from capacity_tui.engine.plan.files import example_names, example_text

    make_folder(folder)
    for name in example_names():
        path = folder / f"{name}.yaml"
        if path.exists() and not force:
            tell(f"kept {path}: it is there already; --force replaces it")
            continue
        write_atomically(path, example_text(name), overwrite=force)
        tell(f"wrote {path}")


_NOTHING = "no plans are saved yet; `w` on the screen saves one"


@click.command()
@click.option("--list", "listing", is_flag=True, help="List the saved plans, the latest first (the default).")
@click.option("--rename", nargs=2, metavar="OLD NEW", shell_complete=options.saved_plans, help="Rename one.")
@click.option("--delete", metavar="NAME", shell_complete=options.saved_plans, help="Delete one.")
@output_options("table", "json", "yaml", to_file=False)
def plans(listing: bool, rename: tuple[str, str] | None, delete: str | None, output: Output) -> None:
    """List, rename or delete saved plans; `plan NAME` estimates one."""
    if sum((listing, rename is not None, delete is not None)) > 1:
        raise click.UsageError("--list, --rename and --delete are one thing at a time")
    from capacity_tui.engine.plan.files import delete_plan, rename_plan

    if rename is not None:
        say(f"renamed to {rename_plan(*rename)}")
    elif delete is not None:
        delete_plan(delete)
        say(f"deleted {delete}")
    else:
        _list(output)


def _list(output: Output) -> None:
    from capacity_tui.engine.plan.files import list_plans

    saved = list_plans()
    if output.is_data:
        data = [{"name": plan.name, "changed": plan.changed.isoformat(), "path": str(plan.path)} for plan in saved]
        output.data(data)
        return
    from capacity_tui.tui.cli.rich_tables import table

    if not saved:
        tell(_NOTHING)
        return
    rows = [(plan.name, f"{plan.changed:%Y-%m-%d %H:%M} UTC", str(plan.path)) for plan in saved]
    output.show([table(("name", "changed", "file"), rows)])


@click.command()
@click.argument("name", required=False, shell_complete=options.schemas)
@output_options()
def schema(name: str | None, output: Output) -> None:
    """Print the JSON schema of plan files, or of a file of the catalogue; without a NAME list them.

    Editors complete and check files by it that have this line at the top, with the path of what -o wrote:
    `# yaml-language-server: $schema=plan.schema.json`.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.present import schema_names, schema_text

    catalog = load_catalog()
    if name is not None:
        output.write(schema_text(name, catalog))
        return
    from capacity_tui.tui.cli.rich_tables import pairs

    output.show([pairs(schema_names(catalog).items())])
