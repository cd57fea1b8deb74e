"""All that is generated: names of files below the repository, and their texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from click.shell_completion import get_completion_class

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.present import schema_names, schema_text
from capacity_tui.tui.cli import COMPLETION_VARIABLE
from capacity_tui.tui.cli.program import PROGRAM, group
from tools.reference.commands import all_commands
from tools.reference.commands_page import commands_page
from tools.reference.field_table_schema import field_table_schema
from tools.reference.manual_page import manual_page
from tools.reference.plan_page import plan_page

COMPLETIONS = {"bash": PROGRAM, "zsh": f"_{PROGRAM}", "fish": f"{PROGRAM}.fish"}  # The file that each shell looks for
COMMANDS_PAGE, PLAN_PAGE = "docs/commands.md", "docs/plan-file.md"
MANUAL_PAGE = f"docs/man/{PROGRAM}.1"


def generated() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file."""
    yield PLAN_PAGE, plan_page()
    yield COMMANDS_PAGE, commands_page(all_commands())
    yield MANUAL_PAGE, manual_page(all_commands())
    yield from schemas()
    for shell, file in COMPLETIONS.items():
        yield f"docs/completions/{file}", completion(shell)


def schemas() -> Iterator[tuple[str, str]]:
    """Yield the schemas of plans and of every table of the catalogue, with the names that ship."""
    shipped = Catalog(Path("none"))
    for name in schema_names(shipped):
        yield f"docs/schemas/{name}.schema.json", schema_text(name, shipped)
    yield "docs/schemas/fields.schema.json", field_table_schema()


def completion(shell: str) -> str:
    """Return the script by which a shell completes the program's words."""
    kind = get_completion_class(shell)
    if kind is None:
        raise ValueError(f"no completion for {shell}")
    return kind(group, {}, PROGRAM, COMPLETION_VARIABLE).source().strip() + "\n"
