"""Options of commands, as ``options.yaml`` has them by command, and what goes with those of several commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import files, nodes, present
from capacity_tui.engine import models as model_shapes
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.runs import history as histories
from capacity_tui.tui.cli.output import Output, tell, tell_problems

Command = Callable[..., object]
_NEVER_TEXT = frozenset((".pdf", ".doc", ".docx", ".odt", ".xls", ".xlsx", ".ods", ".png", ".jpg", ".jpeg", ".gif"))
"""Names of files that only other programs can write; text under such a name would open nowhere."""
CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_KINDS: Mapping[str, object] = {"whole": int, "number": float, "name of file": click.Path()}


def options(block: str, **kinds: object) -> Callable[[CommandT], CommandT]:
    """Return what gives a command the options of a block of the file, in the order of its help.

    Args:
        kinds: types of values that only code knows, by the names that the command has for the values.
    """
    return with_options(*(_option(name, row, kinds.get(name)) for name, row in _blocks()[block].items()))


def with_options(*options: Callable[[CommandT], CommandT]) -> Callable[[CommandT], CommandT]:
    """Return what gives a command some options, in the order of its help."""

    def decorated(command: CommandT) -> CommandT:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


@cache
def _blocks() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return catalogs.parse_shipped(Path(__file__).with_name("options.yaml"))


def _option(name: str, row: Mapping[str, Any], kind: object) -> Callable[[CommandT], CommandT]:
    """Return an option of the name under which the command gets its value: the words of a row are those of Click."""
    words = {**row}
    flags = words.pop("flags", f"--{name.replace('_', '-')}")
    if "complete" in words:
        words["shell_complete"] = complete(words.pop("complete"))
    if "choice" in words:
        kind = click.Choice(words.pop("choice"))
    elif "path" in words:
        kind = click.Path(path_type=Path, **words.pop("path"))
    elif "range" in words:
        kind = click.FloatRange(**words.pop("range"))
    elif "whole_range" in words:
        kind = click.IntRange(**words.pop("whole_range"))
    elif "type" in words:
        kind = _KINDS[words.pop("type")]
    return click.option(*([flags] if isinstance(flags, str) else flags), name, type=kind, **words)


def complete(names: str) -> Callable[..., list[str]]:
    """Return what completes a word by the names of a kind that begin like it."""
    return partial(_begun, _NAMES[names])


def _begun(
    names: Callable[[], Iterable[str]], context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    del context, parameter
    return [name for name in names() if name.startswith(incomplete)]


def _models() -> Iterable[str]:
    catalog = catalogs.load_catalog()
    return dict.fromkeys((*(model.id for model in model_shapes.known_models(catalog)), *catalog.architectures))


def _devices() -> Iterable[str]:
    catalog = catalogs.load_catalog()
    return (*catalog.accelerators, *catalog.processors)


_NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "models": _models,
    "devices": _devices,
    "settings": lambda: [f"{name}=" for name in plans.field_names()],  # ready for a value
    "fields": lambda: list(plans.field_names()),
    "saved plans": lambda: [plan.name for plan in plan_files.list_plans()],
    "schemas": lambda: present.schema_names(catalogs.load_catalog()),
}


def output_options(*choices: str, to_file: bool = True) -> Callable[[Command], Command]:
    """Return the options that say where results go and in which form, as the argument ``output`` of a command.

    Args:
        choices: forms of ``--format``; none for a command that has but one.
        to_file: whether there is ``-o`` too.
    """
    form = click.option("--format", "wanted", type=click.Choice(choices), help="Form of the output.")

    def decorated(command: Command) -> Command:
        @wraps(command)
        def with_output(output: Path | None = None, wanted: str | None = None, **others: object) -> object:
            return command(output=Output(wanted, output, choices), **others)

        options = (*((form,) if choices else ()), *((_output_option,) if to_file else ()))
        wrapped: Command = with_options(*options)(with_output)
        return wrapped

    return decorated


def _text_file(_: click.Context, __: click.Parameter, output: Path | None) -> Path | None:
    """Return where to write, unless its name promises what is not text."""
    if output is not None and output.suffix.lower() in _NEVER_TEXT:
        raise click.BadParameter(f"{output.suffix} files cannot be written: --help says what --format can")
    return output


_output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=_text_file,
    help="Write here instead; the suffix can say the form.",
)


def keep_entries(entries: Iterable[histories.RunRecord], no_history: bool = False) -> None:
    """Keep entries; what goes wrong with that is reported in one line, and stops nothing."""
    if no_history:
        return

    try:
        place = chosen_history()
    except CapacityError as error:
        tell(f"capacity-tui: not kept in the history: {error.one_line()}")
        return
    if not place.is_on:
        return
    for note in dict.fromkeys(histories.record_run(entry, place) for entry in entries):
        if note:
            tell(f"capacity-tui: {note}; --no-history keeps nothing")


def keep_estimates(answers: Iterable[estimates.Answer], no_history: bool) -> None:
    """Keep what was estimated of plans, as ``keep_entries`` does."""
    if not no_history:
        keep_entries(histories.history_entry(answer) for answer in answers)


def opened_history(store: str | None = None) -> histories.History:
    return histories.History(chosen_history(store))


def tell_notes(history: histories.History) -> None:
    """Tell what happened to a history, once."""
    for note in history.notes:
        tell(f"capacity-tui: {note}")
    history.notes.clear()


def chosen_history(store: str | None = None) -> histories.HistoryPlace:
    """Return where the history is kept."""
    if store or os.environ.get(histories.VARIABLE):
        return histories.history_place(store)

    try:
        text = files.settings_file().read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    # A command that only estimates should not wait for settings to be parsed that say nothing of the history.
    if "history" not in text:
        return histories.history_place()
    from capacity_tui.tui.settings import load

    return histories.history_place(setting=load(files.settings_file()).history)


P = ParamSpec("P")
R = TypeVar("R")


def reaching(command: Callable[Concatenate[nodes.Launcher, P], R]) -> Callable[P, R]:
    """Give a command the options that say how nodes are reached, and hand it the launcher that they choose."""

    @wraps(command)
    def with_launcher(choose: Callable[[], nodes.Launcher], /, *words: P.args, **options: P.kwargs) -> R:
        return command(choose(), *words, **options)

    return reaching_later(with_launcher)


def reaching_later(command: Callable[Concatenate[Callable[[], nodes.Launcher], P], R]) -> Callable[P, R]:
    """Give a command the options that say how nodes are reached, and hand it what chooses the launcher when asked."""

    @options("reaching nodes")
    @wraps(command)
    def with_choice(*words: P.args, **options: P.kwargs) -> R:
        slurm, ray, hosts = (options.pop(name) for name in ("slurm", "ray", "hosts"))
        is_kubernetes, context, namespace = (options.pop(name) for name in ("kubernetes", "context", "namespace"))
        for option, value in (("--context", context), ("--namespace", namespace)):
            if value is not None and not is_kubernetes:
                raise click.UsageError(f"{option} is one of kubectl: give --kubernetes too")

        def choose() -> nodes.Launcher:
            return nodes.chosen_launcher(
                bool(slurm),
                None if ray is None else str(ray),
                hosts if isinstance(hosts, Path) else None,
                str(context or "") if is_kubernetes else None,
                str(namespace or ""),
            )

        return command(choose, *words, **options)

    return with_choice


RowT = TypeVar("RowT", bound="catalogs.Row")


def listing_options(command: Command) -> Command:
    """Add the options that every catalogue has, and words without an option, by which it is filtered too."""
    for option in (
        click.option("--filter", "text", metavar="TEXT", default="", help="Only rows that contain every word of it."),
        click.option("--list", is_flag=True, expose_value=False, help="List the rows (the default)."),
        output_options("table", "json", "yaml"),
    ):
        command = option(command)

    @wraps(command)
    def with_words(words: tuple[str, ...], text: str, **others: object) -> object:
        return command(text=" ".join((*words, text)).strip(), **others)

    return click.argument("words", nargs=-1, metavar="[TEXT]...")(with_words)


def named_or_matching(rows: catalogs.Table[RowT], text: str) -> list[RowT]:
    """Return rows whose fields or other names, but for remarks and configurations, contain every word; else the one."""
    others: dict[str, list[str]] = {}
    for alias, row_id in rows.aliases.items():
        others.setdefault(row_id, []).append(alias)
    matches = [
        row for row in rows.values() if contains(" ".join(map(str, (*_searched(row), *others.get(row.id, ())))), text)
    ]
    named = None if matches else rows.find_id(text)
    return matches if named is None else [rows[named]]


def _searched(row: catalogs.Row) -> Iterable[object]:
    return (value for name, value in row if not name.endswith(("notes", "source", "used_by", "config")))


def contains(row: str, text: str) -> bool:
    folded = row.casefold()
    return all(word in folded for word in text.casefold().split())


def fields(row: catalogs.Row) -> Mapping[str, object]:
    return row.model_dump(mode="json", exclude_none=True)


# Units by the word of a field's name that says them.
_UNITS = {
    "gbs": "GB/s",
    "gbit": "Gb/s",
    "gb": "GB",
    "gib": "GiB",
    "mib": "MiB",
    "tflops": "TFLOP/s",
    "gflops": "GFLOP/s",
    "tops": "TOP/s",
    "ghz": "GHz",
    "mts": "MT/s",
    "us": "µs",
    "w": "W",
}


def write_details(row: catalogs.Row, output: Output, more: Iterable[tuple[str, str]] = ()) -> None:
    """Write all that is known about one row: fields as files of the catalogue name them, with their units.

    Args:
        more: what people want to know besides, which no field of the row says.
    """
    if output.is_data:
        output.data(fields(row))
        return
    output.pairs([*_entries(fields(row)), *more])


def _entries(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each field that says something with its value; of blocks by name, such as regions, each by itself."""
    for key, value in data.items():
        if isinstance(value, dict) and value and all(isinstance(block, dict) for block in value.values()):
            yield from ((f"{key}: {block_name}", _cell(key, block)) for block_name, block in value.items())
        elif value not in ([], {}):
            yield key, _cell(key, value)


def _cell(key: str, value: object) -> str:
    if isinstance(value, dict):
        filled = {name: entry for name, entry in value.items() if entry not in ([], {})}
        return ", ".join(f"{name} {_cell(name, entry)}" for name, entry in filled.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    unit = next((_UNITS[word] for word in key.split("_") if word in _UNITS), "")
    return f"{value:.12g} {unit}".rstrip()


def write_listing(
    rows: catalogs.Table[RowT], columns: Sequence[present.Column[RowT]], details: str | None, text: str, output: Output
) -> None:
    """Write one row with all that is known, or those that match a text."""
    tell_problems(rows.problems)
    if details is not None:
        write_details(rows.find(details), output)
        return
    matches = named_or_matching(rows, text)
    if output.is_data:
        output.data([fields(row) for row in matches])
        return
    write_table(present.columns_part(columns, matches, is_list=True), output, rows.nearest(text))


def write_table(table: present.TablePart, output: Output, near: Sequence[str]) -> None:
    """Write a table; where it has no rows, say which names are near."""
    output.parts([table])
    if not table.rows:
        tell_nothing(near)


def tell_nothing(near: Sequence[str]) -> None:
    """Say that no row matches, and which names are near to what was typed."""
    close = f"; nearest: {', '.join(near)}" if near else ""
    tell(f"nothing matches{close}; say nothing more to see everything")
