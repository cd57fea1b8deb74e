"""``storage``: what patterns of a corpus, databases that hold them, and data of a training take."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from shutil import get_terminal_size

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import solve, storage
from capacity_tui.engine.errors import Place
from capacity_tui.engine.present import storage as storage_texts
from capacity_tui.engine.units import parse_count, parse_quantity
from capacity_tui.tui.cli.options import options, output_options
from capacity_tui.tui.cli.output import Output, interrupted, progress, tell, tell_problems
from capacity_tui.tui.cli.plan_sources import GivenPlan, machine_for, plan_options


@click.command()
@options("storage bench")
@output_options("table", "json", "yaml")
def bench(
    backend: str | None, uri: str | None, documents: str, chunk: int, folder: Path | None, output: Output
) -> None:
    """Store patterns in a database and find them: rates, latencies, and the size beside what was estimated.

    The size of all is estimated from a tenth of the patterns. Nothing stays.
    """
    chosen = backend or ("mongodb" if uri else "sqlite")
    for option, value, of in (("--uri", uri, "mongodb"), ("--folder", folder, "sqlite")):
        if value is not None and chosen != of:
            raise click.UsageError(f"{option} belongs to the back-end {of}, not to {chosen}")
    question = storage.BenchQuestion(chosen, parse_count(documents), chunk, uri or "", folder)
    measured = storage.measure_database(question, lambda step: tell(step) if step else None)
    output.report(
        lambda: storage_texts.database_bench_as_dict(measured), lambda: storage_texts.database_bench_parts(measured)
    )


@click.command()
@options("storage estimate")
@output_options("table", "json", "yaml")
def estimate(levels: int, output: Output, **values: str | None) -> None:
    """Estimate what the patterns of a corpus take to keep, by level and in all.

    Two answers stand beside each other: a rule by which 60 % of the first level's patterns are repetitions, and 30 %
    less at each further one; and the number of different patterns that a Zipf law makes expect. The range holds both.
    """
    question, catalog = _question(levels, values), catalogs.load_catalog()
    estimated, grown = storage.pattern_storage(question, catalog), storage.growth(question, catalog)
    tell_problems(catalog.pattern_storage.problems)
    output.report(
        lambda: storage_texts.pattern_storage_as_dict(estimated, grown),
        lambda: storage_texts.pattern_storage_parts(estimated, grown),
    )


def _question(levels: int, values: dict[str, str | None]) -> storage.PatternQuestion:
    """Return what the options ask; those that are left out the catalogue assumes."""

    def number(option: str, unit: str = "") -> float | None:
        text = values[option]
        return None if text is None else parse_quantity(text, unit, place=_place(option))

    def by_level(option: str, unit: str = "") -> tuple[float, ...]:
        texts = (values[option] or "").split(",")
        return tuple(parse_quantity(text, unit, place=_place(option)) for text in texts if text.strip())

    def _place(option: str) -> Place:
        return Place(field=f"--{option.replace('_', '-')}")

    return storage.PatternQuestion(
        number("samples") or 0.0,
        number("tokens") or 0.0,
        number("chunk") or 0.0,
        levels,
        number("fan_in"),
        by_level("alpha"),
        by_level("dedup", "share"),
        number("dedup_decay", "share"),
        number("overhead", "share"),
        by_level("pattern_bytes", "B"),
        by_level("kinds"),
    )


_WIDTH, _MARGIN = 72, 2


@click.command()
@click.argument("source", metavar="FILE|DIR|-")
@options("storage fit")
@output_options("table", "json", "yaml")
def fit(
    source: str,
    chunk: int,
    levels: int,
    fan_in: int | None,
    numbers: str | None,
    kept: int,
    svg: Path | None,
    ascii_only: bool,
    output: Output,
) -> None:
    """Measure how a text repeats itself: exponent of its frequencies, and the share of patterns that are repetitions.

    Text is taken apart into words and signs; a folder is read with all below it, .jsonl files have a text a line,
    .npy files tokens as numbers. Memory is bounded; Ctrl-C stops and tells what was counted by then. Exponents are
    the likeliest ones, and where no law holds it says why.
    """
    begun = time.monotonic()
    corpus = _fitted(source, storage.FitQuestion(chunk, levels, fan_in, kept, numbers))
    seconds = time.monotonic() - begun
    if svg is not None:
        Output(path=svg).write(storage_texts.corpus_svg(corpus), (source,))
    if output.is_data:
        output.data(storage_texts.corpus_as_dict(corpus, seconds))
        return
    plain = ascii_only or "utf" not in (sys.stdout.encoding or "").casefold()
    width = min(_WIDTH, get_terminal_size((_WIDTH + _MARGIN, 0)).columns - _MARGIN)
    picture = "".join(f"{line}\n" for line in storage_texts.corpus_picture(corpus, width, plain))
    output.write(output.parts_text(storage_texts.corpus_parts(corpus, seconds)) + picture, (source,))


def _fitted(source: str, question: storage.FitQuestion) -> storage.CorpusFit:
    """Return what a text is like; what was read is shown meanwhile on a terminal."""
    with interrupted() as stopped, progress("reading the text") as shown:
        show = shown.telling(lambda read: f"{storage_texts.progress_line(read)}; ctrl-c stops")
        corpus = storage.fit_corpus(source, question, show, stopped)
    if not corpus.complete:
        tell("stopped: these are the counts of the part that was read")
    return corpus


@click.command()
@plan_options()
@output_options("table", "json", "yaml")
def plan(given: GivenPlan, output: Output) -> None:
    """Say what a training keeps and moves: its data, how they reach the devices, checkpoints, caches, main memory.

    What the plan leaves open of its data the balanced mode chooses; a plan that says how or where its data lie also
    has their reading and decoding in the time of its steps.
    """
    machine = machine_for(given.plan)
    needs = storage.storage_plan(solve.answer(given.plan, machine), machine)
    output.report(lambda: storage_texts.storage_plan_as_dict(needs), lambda: storage_texts.storage_plan_parts(needs))
