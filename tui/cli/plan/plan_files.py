"""``validate``, ``audit``, ``examples``, ``plans``, ``schema`` and ``export``: plans as files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import compat, files, fleet, models, present, solve
from capacity_tui.engine.catalog.fleet_files import is_fleet_file
from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.present import frameworks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import modes
from capacity_tui.tui.cli.options import complete, options, output_options
from capacity_tui.tui.cli.output import Output, fault_data, location_as_dict, progress, say, tell, tell_faults
from capacity_tui.tui.cli.plan.plan import DOES_NOT_FIT
from capacity_tui.tui.cli.plan_sources import changed_plan, imported_of, machine_for, plan_flags, source_of, sources_of


@dataclass(frozen=True, slots=True)
class _Checked:
    """What there is to say of one file."""

    name: str  # the file, or what stands for it
    faults: tuple[CapacityError, ...] = ()  # what is wrong with it
    remarks: tuple[tuple[Place, str], ...] = ()  # what it says in vain, and where

    @property
    def exit_code(self) -> int:
        return max((fault.exit_code for fault in self.faults), default=0)

    def tell(self, *, may_be_valid: bool = True) -> None:
        """Tell what is wrong, or that nothing is, and what is said in vain."""
        tell_faults(self.faults)
        if may_be_valid and not self.faults:
            say(f"{self.name}: valid")
        for place, reason in self.remarks:
            tell(f"capacity-tui: {place}: {reason}")


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@plan_flags
@output_options("table", "json", to_file=False)
def validate(files: tuple[str, ...], flags: plan_lines.PlanFlags, output: Output) -> int:
    """Check plans, and JSON files of instances, sizes and workloads, and say what is wrong where.

    Without a FILE or flags only your own catalogue is checked.
    """
    catalog = catalogs.load_catalog()
    catalogues = _Checked("the catalogues", (*catalog.problems, *models.plugin_problems(catalog)))
    names = sources_of(files, flags) if files or flags.is_given else ()
    if output.is_data:
        return _write_data(catalogues, [_checked(name, flags, catalog) for name in names], output)
    catalogues.tell(may_be_valid=not names)
    codes = []
    for name in names:
        checked = _checked(name, flags, catalog)
        checked.tell()
        codes.append(checked.exit_code)
    return max(codes, default=catalogues.exit_code)


def _checked(name: str | None, flags: plan_lines.PlanFlags, catalog: catalogs.Catalog) -> _Checked:
    """Return what is wrong with a file, and what it sets in vain."""
    if name is not None and name.endswith(".json") and (fleet_file := _checked_fleet_file(Path(name))) is not None:
        return fleet_file

    called = name or "the flags"
    try:
        source = source_of(name, flags)
        faults = tuple(solve.faults(source, catalog, machine_for))
        vain = () if faults else tuple(solve.remarks(source, catalog, machine_for))
    except CapacityError as error:
        return _Checked(called, (error,))
    return _Checked(called, faults, tuple((place, f"changes nothing here: {reason}") for place, reason in vain))


def _checked_fleet_file(path: Path) -> _Checked | None:
    """Return what is wrong with a file of instances, sizes or workloads; None where it is no such file."""
    if not path.is_file() or not is_fleet_file(path):
        return None
    checked = fleet.check_fleet_files(path)
    return _Checked(str(path), tuple(checked.faults), tuple((remark.place, remark.words) for remark in checked.remarks))


def _write_data(catalogues: _Checked, files: list[_Checked], output: Output) -> int:
    decisive = files or [catalogues]
    data: dict[str, object] = {
        "valid": not any(checked.faults for checked in decisive),
        "files": [
            {
                "file": checked.name,
                "valid": not checked.faults,
                "faults": [*map(fault_data, checked.faults)],
                "remarks": [{**location_as_dict(place), "detail": reason} for place, reason in checked.remarks],
            }
            for checked in files
        ],
        "catalogue": [*map(fault_data, catalogues.faults)],
    }
    output.data(data)
    return max(checked.exit_code for checked in decisive)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@plan_flags
@options("audit")
@output_options("table", "json")
def audit(files: tuple[str, ...], flags: plan_lines.PlanFlags, ignored: bool, output: Output) -> int:
    """Tell what configurations of other tools will do: what fits, what contradicts itself, what is wasted.

    FILE is a configuration of DeepSpeed, the Hugging Face Trainer, Accelerate, Axolotl, vLLM or another tool, a shell
    script that starts one, or a folder of them. All of them together are one run. Flags say what they leave out.
    """
    imported = imported_of(files, flags)
    with progress("estimating"):
        report = solve.audit(imported, machine_for(imported.plan))
    if output.form == "json":
        output.write(present.to_json(present.audit_as_dict(report)), files)
    else:
        output.parts(present.audit_parts(report, ignored=ignored), files)
    return 0 if report.runs else DOES_NOT_FIT


@click.command()
@click.argument("into", required=False, metavar="[DIR|NAME]", type=click.Path(path_type=Path))
@options("examples")
@output_options("table", "json", to_file=False)
def examples(
    into: Path | None,
    listing: bool,
    show: str | None,
    folder: Path | None,
    modules: Path | None,
    force: bool,
    output: Output,
) -> None:
    """List the example plans, write them all to DIR, or print the one of a NAME; `plan NAME` estimates one."""
    folder = folder or into
    if not listing and show is None and folder is None and Path(sys.argv[0]).stem == _OF_THE_GUIDE:
        folder = Path("examples")

    if show is None and into is not None and str(into) in plan_files.example_names() and not into.exists():
        show = str(into)
    if show is not None:
        output.write(plan_files.example_text(show))
        return
    if modules is not None:
        _write_all(modules, compat.document_modules(), force)
        return
    if folder is not None:
        _write_all(
            folder, {f"{name}.yaml": plan_files.example_text(name) for name in plan_files.example_names()}, force
        )
        return
    titles = {name: plan_files.example_title(name) for name in plan_files.example_names()}
    if output.is_data:
        output.data(titles)
        return
    output.pairs(titles.items())


_OF_THE_GUIDE = "ml-capacity"  # The program's name in the ML Capacity Planner's guide, whose `examples` writes them


def _write_all(folder: Path, texts: Mapping[str, str], force: bool) -> None:
    files.make_folder(folder)
    lines: list[str] = []
    for name, text in texts.items():
        path = folder / name
        if path.exists() and not force:
            lines.append(f"kept {path}: it is there already; --force replaces it")
            continue
        files.write_atomically(path, text, overwrite=force)
        lines.append(f"wrote {path}")
    for line in lines:  # afterwards: who reads only the first lines still gets every file
        tell(line)


_NOTHING = "no plans are saved yet; `w` on the screen saves one"


@click.command()
@options("plans")
@output_options("table", "json", "yaml", to_file=False)
def plans(listing: bool, rename: tuple[str, str] | None, delete: str | None, output: Output) -> None:
    """List, rename or delete saved plans; `plan NAME` estimates one."""
    if sum((listing, rename is not None, delete is not None)) > 1:
        raise click.UsageError("--list, --rename and --delete are one thing at a time")

    if rename is not None:
        say(f"renamed to {plan_files.rename_plan(*rename)}")
    elif delete is not None:
        plan_files.delete_plan(delete)
        say(f"deleted {delete}")
    else:
        _list(output)


def _list(output: Output) -> None:
    saved = plan_files.list_plans()
    if output.is_data:
        output.data(
            [{"name": plan.name, "changed": plan.changed.isoformat(), "path": str(plan.path)} for plan in saved]
        )
    elif not saved:
        tell(_NOTHING)
    else:
        rows = [(plan.name, f"{plan.changed:%Y-%m-%d %H:%M} UTC", str(plan.path)) for plan in saved]
        output.table(("name", "changed", "file"), rows)


@click.command()
@click.argument("name", required=False, shell_complete=complete("schemas"))
@output_options()
def schema(name: str | None, output: Output) -> None:
    """Print the JSON schema of plan files, or of a file of the catalogue; without a NAME list them.

    Editors complete and check files by it that have this line at the top, with the path of what -o wrote:
    `# yaml-language-server: $schema=plan.schema.json`.
    """
    catalog = catalogs.load_catalog()
    if name is not None:
        output.write(present.schema_text(name, catalog))
    else:
        output.pairs(present.schema_names(catalog).items())


@click.command()
@click.argument("target", required=False, metavar="[TARGET]")
@click.argument("file", required=False, metavar="[FILE]", type=click.Path())
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@plan_flags
@options("export")
@output_options("table", "json", to_file=False)
def export(
    target: str | None,
    file: str | None,
    words: tuple[str, ...],
    flags: plan_lines.PlanFlags,
    settings: tuple[str, ...],
    folder: Path | None,
    force: bool,
    output: Output,
    **wishes: Any,
) -> None:
    """Write a plan for what starts it: kubernetes, skypilot, dstack, compose, torchrun, vllm and others.

    Without a TARGET they are listed. FILE is a plan, an example, a saved plan or a line in quotes; behind -- stands the
    command that trains.
    """
    if target is None:
        if output.is_data:
            output.data(dict(frameworks.TARGETS))
        else:
            output.pairs(frameworks.TARGETS.items())
        return
    catalog = catalogs.load_catalog()
    plan = changed_plan(source_of(file, flags).plan(), settings)
    if target in frameworks.TOOLS and plan.training.framework is None and not plan.is_inference:
        plan = changed_plan(plan, (f"{Key.TRAINING_FRAMEWORK}={target}",))
        tell(f"capacity-tui: planned for {frameworks.TARGETS[target]}, as the plan names no software")
    machine = machine_for(plan)
    answered = solve.answer(modes.fill(plan, "balanced", machine, catalog).plan, machine, catalog)
    written = frameworks.export_files(target, answered, catalog, frameworks.Wishes(words, **wishes))
    if folder is not None:
        files.make_folder(folder)
        for name, text in written.items():
            files.write_atomically(folder / name, text, overwrite=force)
        for name in written:
            tell(f"wrote {folder / name}")
    elif output.is_data:
        output.data(dict(written))
    else:
        output.write("\n".join(f"# {name}\n{text}" if len(written) > 1 else text for name, text in written.items()))
