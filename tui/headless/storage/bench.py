"""``storage bench``: how fast a database of patterns is, and what it takes on disk."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write


@click.command()
@click.option("--backend", metavar="NAME", help="sqlite or mongodb; what --uri says, else sqlite.")
@click.option("--uri", metavar="URI", help="The MongoDB to measure; a collection is made in it, and dropped.")
@click.option("--documents", metavar="N", default="1000", show_default=True, help="Patterns to store, 1000 or more.")
@click.option("--chunk", metavar="N", type=int, default=15, show_default=True, help="Words of a pattern.")
@click.option("--folder", metavar="DIR", type=click.Path(path_type=Path), help="Where the SQLite file lies meanwhile.")
@format_option("table", "json", "yaml")
@output_option
def bench(
    backend: str | None,
    uri: str | None,
    documents: str,
    chunk: int,
    folder: Path | None,
    wanted: str | None,
    output: Path | None,
) -> None:
    """Store patterns in a database and find them: rates, latencies, and the size beside what was estimated.

    The size of all is estimated from a tenth of the patterns. Nothing stays.
    """
    from capacity_tui.engine.present.storage import database_bench_as_dict, database_bench_parts
    from capacity_tui.engine.storage.databases import BenchQuestion, measure_database
    from capacity_tui.engine.units import parse_count

    chosen = backend or ("mongodb" if uri else "sqlite")
    for option, value, of in (("--uri", uri, "mongodb"), ("--folder", folder, "sqlite")):
        if value is not None and chosen != of:
            raise click.UsageError(f"{option} belongs to the back-end {of}, not to {chosen}")
    question = BenchQuestion(chosen, parse_count(documents), chunk, uri or "", folder)
    found = measure_database(question, lambda step: tell(step) if step else None)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(database_bench_as_dict(found), form, output)
        return
    from capacity_tui.tui.headless.tables.layout import rich_parts

    write(as_text(rich_parts(database_bench_parts(found)), output is not None), output)
