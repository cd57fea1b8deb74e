"""``storage estimate``: what the patterns of a corpus take to keep, before any is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell_problems, write

if TYPE_CHECKING:
    from capacity_tui.engine.storage import PatternQuestion


@click.command()
@click.option("--samples", required=True, metavar="N", help="Texts, such as 100M.")
@click.option("--tokens", required=True, metavar="N", help="Mean tokens of a text.")
@click.option("--chunk", default="15", show_default=True, metavar="N", help="Tokens of a pattern of the first level.")
@click.option("--levels", default=4, show_default=True, metavar="N", help="Levels of patterns.")
@click.option("--fan-in", metavar="N", help="Patterns of a level in one of the next; as many as a chunk has tokens.")
@click.option("--alpha", metavar="A[,A]", help="Exponent of the law of frequencies; by level, as storage fit tells.")
@click.option("--dedup", metavar="SHARE[,SHARE]", help="Share of the patterns that repeat an earlier one; by level.")
@click.option("--dedup-decay", metavar="SHARE", help="Share by which that falls with each further level.")
@click.option("--overhead", metavar="SHARE", help="What the store adds: indexes, padding, its own.")
@click.option("--pattern-bytes", metavar="N[,N]", help="Bytes of a pattern as a document; by level.")
@click.option("--kinds", metavar="N[,N]", help="Different patterns there could be; by level. By default as many as "
              "leave the rarest one occurrence.")  # fmt: skip
@format_option("table", "json", "yaml")
@output_option
def estimate(levels: int, wanted: str | None, output: Path | None, **said: str | None) -> None:
    """Estimate what the patterns of a corpus take to keep, by level and in all.

    Two answers stand beside each other: a rule by which 60 % of the first level's patterns are repetitions, and 30 %
    less at each further one; and the number of different patterns that a Zipf law makes expect. The range holds both.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.present.storage import pattern_storage_as_dict, pattern_storage_parts
    from capacity_tui.engine.storage import growth as pattern_growth
    from capacity_tui.engine.storage import pattern_storage
    from capacity_tui.tui.headless.tables.layout import rich_parts

    question, catalog = _question(levels, said), load_catalog()
    found, grown = pattern_storage(question, catalog), pattern_growth(question, catalog)
    tell_problems(catalog.pattern_storage.problems)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(pattern_storage_as_dict(found, grown), form, output)
    else:
        write(as_text(rich_parts(pattern_storage_parts(found, grown)), output is not None), output)


def _question(levels: int, said: dict[str, str | None]) -> PatternQuestion:
    """Return what the options ask; those that are left out the catalogue assumes."""
    from capacity_tui.engine.errors import Place
    from capacity_tui.engine.storage import PatternQuestion
    from capacity_tui.engine.units import parse_quantity

    def number(option: str, unit: str = "") -> float | None:
        text = said[option]
        return None if text is None else parse_quantity(text, unit, place=_place(option))

    def by_level(option: str, unit: str = "") -> tuple[float, ...]:
        texts = (said[option] or "").split(",")
        return tuple(parse_quantity(text, unit, place=_place(option)) for text in texts if text.strip())

    def _place(option: str) -> Place:
        return Place(field=f"--{option.replace('_', '-')}")

    return PatternQuestion(
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
