"""``plans``: the plans the user saved under a name."""

from __future__ import annotations

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.output import as_text, format_option, say, tell, write

_NOTHING = "no plans are saved yet; `w` on the screen saves one"


@click.command()
@click.option("--list", "listing", is_flag=True, help="List the saved plans, the latest first (the default).")
@click.option("--rename", nargs=2, metavar="OLD NEW", shell_complete=completion.saved_plans, help="Rename one.")
@click.option("--delete", metavar="NAME", shell_complete=completion.saved_plans, help="Delete one.")
@format_option("table", "json", "yaml")
def plans(listing: bool, rename: tuple[str, str] | None, delete: str | None, wanted: str | None) -> None:
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
        _list(wanted)


def _list(wanted: str | None) -> None:
    from capacity_tui.engine.plan.files import list_plans

    found = list_plans()
    if wanted in ("json", "yaml"):
        from capacity_tui.engine.present import to_json, to_yaml

        data = [{"name": plan.name, "changed": plan.changed.isoformat(), "path": str(plan.path)} for plan in found]
        write(to_json(data) if wanted == "json" else to_yaml(data), None)
        return
    from capacity_tui.tui.headless.tables.layout import table

    if not found:
        tell(_NOTHING)
        return
    rows = [(plan.name, f"{plan.changed:%Y-%m-%d %H:%M} UTC", str(plan.path)) for plan in found]
    write(as_text([table(("name", "changed", "file"), rows)]), None)
