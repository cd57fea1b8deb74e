"""Advice of the engine as lines that can be taken."""

from __future__ import annotations

from capacity_tui.engine.api import Offer
from capacity_tui.tui.what_if import Advice, Effect

_FIRST = "memory."


def advice_of(offer: Offer) -> Advice:
    """Return an offer in the words of the screen, what it does to memory before all else."""
    told = sorted(offer.effects, key=lambda effect: not effect.metric.key.startswith(_FIRST))
    effects = tuple(
        Effect(f"{effect.metric.brief or effect.metric.label} {effect.text} {effect.percent}".rstrip(), effect.gain)
        for effect in told
    )
    return Advice(offer.title, offer.change, offer.verdict, effects, offer.caution)
