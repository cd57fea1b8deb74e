"""``storage fit``: exponent and deduplication of a text, level by level."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write
from capacity_tui.tui.headless.questions import interrupted

if TYPE_CHECKING:
    from capacity_tui.engine.storage import CorpusFit, FitQuestion
    from capacity_tui.engine.storage import Read as CorpusRead

_TELL_SECONDS = 0.2
_WIDTH, _MARGIN = 72, 2


@click.command()
@click.argument("source", metavar="FILE|DIR|-")
@click.option("--chunk", default=15, show_default=True, metavar="N", help="Tokens of a pattern of the first level.")
@click.option("--levels", default=4, show_default=True, metavar="N", help="Levels of patterns.")
@click.option("--fan-in", type=int, metavar="N", help="Patterns of a level in one of the next; as a chunk has tokens.")
@click.option("--numbers", metavar="TYPE", help="Files hold tokens as numbers: uint16, uint32, int32 or int64.")
@click.option("--kept", default=1 << 20, show_default=True, metavar="N",
              help="Different patterns of a level that are counted exactly; of more, a sample is.")  # fmt: skip
@click.option("--svg", type=click.Path(path_type=Path), help="Write the frequencies over their ranks as a picture.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@format_option("table", "json", "yaml")
@output_option
def fit(
    source: str,
    chunk: int,
    levels: int,
    fan_in: int | None,
    numbers: str | None,
    kept: int,
    svg: Path | None,
    ascii_only: bool,
    wanted: str | None,
    output: Path | None,
) -> None:
    """Measure how a text repeats itself: exponent of its frequencies, and the share of patterns that are repetitions.

    Text is taken apart into words and signs; a folder is read with all below it, .jsonl files have a text a line,
    .npy files tokens as numbers. Memory is bounded; Ctrl-C stops and tells what was counted by then. Exponents are
    the likeliest ones, and where no law holds it says why.
    """
    from capacity_tui.engine.present.storage import corpus_as_dict, corpus_parts, corpus_picture, corpus_svg
    from capacity_tui.engine.storage import FitQuestion
    from capacity_tui.tui.headless.tables.layout import rich_parts

    begun = time.monotonic()
    found = _fitted(source, FitQuestion(chunk, levels, fan_in, kept, numbers))
    seconds = time.monotonic() - begun
    if svg is not None:
        write(corpus_svg(found), svg, (source,))
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(corpus_as_dict(found, seconds), form, output)
        return
    plain = ascii_only or "utf" not in (sys.stdout.encoding or "").casefold()
    width = min(_WIDTH, get_terminal_size((_WIDTH + _MARGIN, 0)).columns - _MARGIN)
    picture = "".join(f"{line}\n" for line in corpus_picture(found, width, plain))
    write(as_text(rich_parts(corpus_parts(found, seconds)), output is not None) + picture, output, (source,))


def _fitted(source: str, question: FitQuestion) -> CorpusFit:
    """Return what a text is like; what was read is told meanwhile on a terminal."""
    from capacity_tui.engine.storage import fit_corpus

    seen = sys.stderr.isatty()
    try:
        with interrupted() as stopped:
            found = fit_corpus(source, question, _Progress() if seen else None, stopped)
    finally:
        if seen:
            click.echo("\r\x1b[K", err=True, nl=False)
    if not found.complete:
        tell("stopped: these are the counts of the part that was read")
    return found


class _Progress:
    """One line of what was read, on stderr."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, read: CorpusRead) -> None:
        from capacity_tui.engine.present.storage import progress_line as corpus_progress

        if time.monotonic() - self._told > _TELL_SECONDS:
            self._told = time.monotonic()
            click.echo(f"\r\x1b[K{corpus_progress(read)}; ctrl-c stops"[:79], err=True, nl=False)
