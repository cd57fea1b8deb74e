"""``export``: a plan as the files that start it on clusters, in clouds, with launchers and engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.cli.output import Output, output_options, tell
from capacity_tui.tui.cli.plan_sources import changed_plan, machine_for, plan_flags, settings_option, source_of

if TYPE_CHECKING:
    from capacity_tui.engine.plan.line import PlanFlags


@click.command()
@click.argument("target", required=False, metavar="[TARGET]")
@click.argument("file", required=False, metavar="[FILE]", type=click.Path())
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@plan_flags
@settings_option
@click.option("-o", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Write the files to a folder.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--queue", metavar="NAME", default="", help="Local queue of Kueue that jobs of Kubernetes wait in.")
@click.option("--topology", metavar="LABEL", default="", help="Label of Kubernetes' nodes that all of a job share.")
@click.option("--product", metavar="NAME", default="", help="Product, as node labels have it, that nodes must have.")
@click.option("--image", metavar="NAME", default="", help="Image that containers are started of.")
@click.option("--claim", metavar="NAME", default="", help="Volume claim of Kubernetes with the folder --checkpoints.")
@click.option("--checkpoints", metavar="DIR", default="", help="Where the command leaves checkpoints, in containers.")
@output_options("table", "json", to_file=False)
def export(
    target: str | None,
    file: str | None,
    words: tuple[str, ...],
    flags: PlanFlags,
    settings: tuple[str, ...],
    folder: Path | None,
    force: bool,
    queue: str,
    topology: str,
    product: str,
    image: str,
    claim: str,
    checkpoints: str,
    output: Output,
) -> None:
    """Write a plan for what starts it: kubernetes, skypilot, dstack, compose, torchrun, vllm and others.

    Without a TARGET they are listed. FILE is a plan, an example, a saved plan or a line in quotes; behind -- stands the
    command that trains.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.files import make_folder, write_atomically
    from capacity_tui.engine.present.frameworks import TARGETS, Wishes, export_files
    from capacity_tui.engine.solve import answer
    from capacity_tui.engine.solve.modes import fill

    if target is None:
        if output.is_data:
            output.data(dict(TARGETS))
        else:
            from capacity_tui.tui.cli.rich_tables import pairs

            output.show([pairs(TARGETS.items())])
        return
    catalog = load_catalog()
    plan = changed_plan(source_of(file, flags).plan(), settings)
    machine = machine_for(plan)
    answered = answer(fill(plan, "balanced", machine, catalog).plan, machine, catalog)
    wishes = Wishes(words, queue, topology, product, image=image, claim=claim, checkpoints=checkpoints)
    files = export_files(target, answered, catalog, wishes)
    if folder is not None:
        make_folder(folder)
        for name, text in files.items():
            write_atomically(folder / name, text, overwrite=force)
        for name in files:
            tell(f"wrote {folder / name}")
    elif output.is_data:
        output.data(dict(files))
    else:
        output.write("\n".join(f"# {name}\n{text}" if len(files) > 1 else text for name, text in files.items()))
