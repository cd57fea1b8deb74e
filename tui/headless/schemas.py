"""``schema``: JSON schemas of plan and catalogue files, for editors."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.output import as_text, output_option, write


@click.command()
@click.argument("name", required=False, shell_complete=completion.schemas)
@output_option
def schema(name: str | None, output: Path | None) -> None:
    """Print the JSON schema of plan files, or of a file of the catalogue; without a NAME list them.

    Editors complete and check files by it that have this line at the top, with the path of what -o wrote:
    `# yaml-language-server: $schema=plan.schema.json`.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.present.reference import schema_names, schema_text

    catalog = load_catalog()
    if name is not None:
        write(schema_text(name, catalog), output)
        return
    from capacity_tui.tui.headless.tables.layout import pairs

    write(as_text([pairs(schema_names(catalog).items())]), output)
