"""``examples``: the plans that come with the program."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless.output import as_text, format_option, tell, write


@click.command()
@click.argument("into", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--list", "listing", is_flag=True, help="List the examples (the default).")
@click.option("--show", metavar="NAME", help="Print one.")
@click.option("--write", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Write them all to a folder.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@format_option("table", "json")
def examples(
    into: Path | None, listing: bool, show: str | None, folder: Path | None, force: bool, wanted: str | None
) -> None:
    """List, print or write the example plans, to DIR where it is given; `plan NAME` estimates one."""
    del listing
    folder = folder or into
    from capacity_tui.engine.plan.files import example_names, example_text, example_title

    if show is not None:
        write(example_text(show), None)
        return
    if folder is not None:
        _write_all(folder, force)
        return
    titles = {name: example_title(name) for name in example_names()}
    if wanted == "json":
        from capacity_tui.engine.present import to_json

        write(to_json(titles), None)
        return
    from capacity_tui.tui.headless.tables.layout import pairs

    write(as_text([pairs(titles.items())]), None)


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
