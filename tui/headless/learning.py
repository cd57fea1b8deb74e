"""``detect --learn``: what would hold the learning of patterns up on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.storage import PatternQuestion
    from capacity_tui.engine.storage.learning import LearningForecast

learn_option = click.option(
    "--learn",
    metavar="SAMPLES[,TOKENS[,CHUNK[,LEVELS]]]",
    help="Say what holds up learning the patterns of a corpus here, such as 1M,500,15,4.",
)
_USUAL = ("500", "15", "4")


def forecast_of(text: str, machine: Machine) -> LearningForecast:
    """Return what would hold up learning what the option says.

    Raises:
        CapacityError: the option cannot be read, or a number is out of its range.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.storage.learning import learning_forecast

    return learning_forecast(asked_of(text), machine, load_catalog())


def asked_of(text: str) -> PatternQuestion:
    """Return what the option asks.

    Raises:
        CapacityError: it cannot be read.
    """
    from capacity_tui.engine.errors import Place
    from capacity_tui.engine.storage import PatternQuestion
    from capacity_tui.engine.units import parse_quantity

    given = text.split(",")
    if len(given) > 1 + len(_USUAL):
        raise click.UsageError(f"--learn takes four numbers at most, not {text!r}")
    numbers = [parse_quantity(each, "", place=Place(field="--learn")) for each in (*given, *_USUAL[len(given) - 1 :])]
    samples, tokens, chunk, levels = numbers
    question = PatternQuestion(samples, tokens, chunk, int(levels))
    question.check()
    return question
